"""Several Newton steps in the leaves of a tree."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

import reference_leaves
import sglb
from law import FixedStructure
from problems import boosted
from sglb import SGLBClassifier, SGLBRegressor, leaves
from sglb.bins import Bins
from sglb.errors import StepTooLong
from sglb.leaves import PART_ROWS, LeafRule
from sglb.losses import Logistic, Softmax, get_loss
from sglb.samplers import Move
from sglb.slopes import STORED_ROWS
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.trace import Trace
from sglb.training_set import TrainingSet
from sglb.transition import Transition


class Same:
    """A sampler that makes one move again and again."""

    def __init__(self, move):
        self.move = lambda step: move


class Case:
    """Two classes, a share of `positive` ones, and a chain on them."""

    def __init__(self, n_rows, *, weighted=False, positive=0.5, offset=0.0, loss="logistic"):
        rng = np.random.default_rng(n_rows)
        X = rng.normal(size=(n_rows, 4))
        score = X[:, 0] * X[:, 1] + rng.normal(size=n_rows)
        y = score if loss == "squared" else (score > np.quantile(score, 1 - positive)) * 1.0
        weight = rng.uniform(0.2, 3.0, n_rows) if weighted else None
        self.bins = Bins.fit(X, 16)
        self.rows = TrainingSet.build(self.bins.encode(X), self.bins.n_codes, Target.of(y, weight))
        self.loss, self.offset = get_loss(loss), np.full(1, offset)

    def run(self, steps, move=None, *, n_trees=1, l2=1.0, seed=3, rule=None, threads=1, after=None):
        return boosted(
            self.rows,
            self.loss,
            Same(move or Move(1.0)),
            rule or GreedySearch(3, l2=l2, newton=True, n_threads=threads),
            LeafRule("newton", l2, steps),
            after or Trace(self.bins, 3, self.offset),
            n_steps=n_trees,
            seed=seed,
            n_threads=threads,
        )

    def one_tree(self, *arguments, **options):
        """The leaf values of the first tree, and the leaf of each row."""
        trace = self.run(*arguments, **options)
        structure = trace.structure(0)
        leaf = reference_leaves.leaf_indices(self.rows.code_columns, *structure)
        return trace.values[0, : structure.n_leaves, 0], leaf

    def objective(self, leaf, value, l2):
        """What the Newton steps of a leaf make small, by leaf."""
        z = self.offset + value[leaf]
        rows = np.logaddexp(0, z) - self.rows.target.values * z
        return np.bincount(leaf, rows, len(value)) + 0.5 * l2 * value**2

    def slopes(self, leaf, value):
        p = expit(self.offset + value[leaf])
        return (p - self.rows.target.values)[None], (p * (1 - p))[None]


@pytest.mark.parametrize("n_steps", [1, 2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, -3.0, 12.0])
@pytest.mark.parametrize("n_rows", [300, STORED_ROWS + 1])
def test_each_step_begins_where_the_last_one_came_to(n_steps, weighted, offset, n_rows):
    case = Case(n_rows, weighted=weighted, offset=offset)
    for noise in (0.0, 2.0):
        values, leaf = case.one_tree(n_steps, Move(0.3, noise))
        facts, weight = (leaf, len(values)), case.rows.target.kernel_weight
        path = None
        slopes = case.slopes(leaf, np.zeros(len(values)))
        for _ in range(n_steps - 1):
            path = reference_leaves.start_path(len(values), 1) if path is None else path
            path = reference_leaves.approach(*facts, *slopes, weight, 1.0, path, 2.0)
            slopes = case.slopes(leaf, path[0, :, 0])
        expected = reference_leaves.leaf_values(
            *facts, *slopes, weight, 0.3, noise, 1.0, 3, 0, path, 2.0
        )
        np.testing.assert_allclose(values, expected[:, 0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 8.0, -30.0])
def test_many_steps_lead_to_the_minimum(offset):
    """From far away too, where the logistic loss is almost straight and a first step too long."""
    case = Case(2_000, positive=0.2, offset=offset)
    values, leaf = case.one_tree(60)
    for j, value in enumerate(values):
        y = case.rows.target.values[leaf == j]

        def objective(x, y=y):
            z = offset + x
            return (np.logaddexp(0, z) - y * z).sum() + 0.5 * x * x

        best = minimize_scalar(objective, bracket=(-40, 40), tol=1e-12)
        assert objective(value) <= best.fun * (1 + 1e-9)


def test_every_step_lowers_the_loss_of_training():
    case = Case(5_000, positive=0.05)
    losses = []
    for n_steps in (1, 2, 3, 4):
        values, leaf = case.one_tree(n_steps, l2=0.0)
        losses.append(
            (np.logaddexp(0, values[leaf]) - case.rows.target.values * values[leaf]).mean()
        )
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 1.01 * losses[1]


@pytest.mark.parametrize("n_steps", [3, 20])
@pytest.mark.parametrize("l2", [0.0, 3.0])
@pytest.mark.parametrize("positive", [0.5, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("offset", [0.0, -3.0])
def test_steps_on_part_of_the_rows_lead_nearer_to_the_minimum(
    monkeypatch, positive, offset, l2, n_steps
):
    """In no leaf further away from it, and all in all well beyond one step, though a leaf of which
    a part knows too little takes no other.
    """
    case = Case(60_000, positive=positive, offset=offset)
    monkeypatch.setattr(leaves, "PART_ROWS", 60_000)
    (single, leaf), (best, _) = (case.one_tree(n, l2=l2) for n in (1, 40))
    monkeypatch.setattr(leaves, "PART_ROWS", 6_000)
    part, _ = case.one_tree(n_steps, l2=l2)

    def excess(value):
        return case.objective(leaf, value, l2) - case.objective(leaf, best, l2)

    assert (excess(part) <= excess(np.zeros(len(best)))).all()
    assert excess(part).sum() < 0.6 * excess(single).sum()


def count_approaches(monkeypatch):
    """A list that grows by one with each early step of all leaves."""
    calls, approach = [], leaves._core.advance_path

    def counted(*arguments):
        calls.append(None)
        approach(*arguments)

    monkeypatch.setattr(leaves._core, "advance_path", counted)
    return calls


def test_steps_on_part_of_the_rows_end_where_it_has_no_more_to_say(monkeypatch):
    calls = count_approaches(monkeypatch)
    case = Case(60_000, positive=0.1)
    case.run(20)
    assert len(calls) == 19  # all rows can tell more and more
    calls.clear()
    monkeypatch.setattr(leaves, "PART_ROWS", 6_000)
    case.run(20)
    # From p = 1/2 to 1/10 Newton's steps are 1.6, .5, .1, .003 long: the fourth ends it, and the
    # first, being the whole way, never does.
    assert 2 <= len(calls) <= 6
    calls.clear()
    case.run(2)
    assert len(calls) == 1


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_leaf_that_takes_no_early_step_takes_the_one_it_would_take_alone(monkeypatch, noise):
    """Longer than the reach where the learning rate leaves little of it: p is far from 1/20."""
    case, move = Case(60_000, positive=0.05, offset=-6.0), Move(0.1, noise)
    alone, _ = case.one_tree(1, move)
    monkeypatch.setattr(leaves, "PART_ROWS", 60)  # fewer than the 64 that a leaf wants
    calls = count_approaches(monkeypatch)
    assert np.array_equal(case.one_tree(5, move)[0], alone)
    assert len(calls) == 1  # once is enough to see that nothing moves
    if not noise:
        assert np.abs(alone).max() > 0.1 * Logistic().trust_radius


def test_one_heavy_row_does_not_keep_all_leaves_from_early_steps(monkeypatch):
    monkeypatch.setattr(leaves, "PART_ROWS", 6_000)
    case = Case(60_000, positive=0.1)
    weight = np.ones(case.rows.n_rows)
    weight[7] = 1000.0
    case.rows = TrainingSet.build(
        case.rows.code_columns, case.bins.n_codes, Target.of(case.rows.target.values, weight)
    )
    best, single, three = (case.one_tree(n)[0] for n in (40, 1, 3))
    assert np.abs(three - best).max() < 0.5 * np.abs(single - best).max()


@pytest.mark.parametrize("seed", [0, 1])
def test_rare_rows_of_the_other_class_do_not_send_a_leaf_anywhere(seed, monkeypatch):
    """A Newton step divides by p (1 - p), which is next to nothing where a model is sure."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40_000, 6))
    score = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=len(X))
    y = score > np.quantile(score, 0.995)
    model = SGLBClassifier(
        n_estimators=40, learning_rate=0.5, random_state=seed, n_jobs=1, sampler="plain"
    )
    assert np.abs(model.fit(X, y).trace_.values).max() == pytest.approx(1.0)
    monkeypatch.setattr(Logistic, "trust_radius", math.inf)
    assert np.abs(model.fit(X, y).trace_.values).max() > 5.0


def test_the_squared_loss_is_at_its_minimum_after_one_step():
    case = Case(400, loss="squared")
    once, thrice = (case.one_tree(n_steps)[0] for n_steps in (1, 3))
    np.testing.assert_allclose(thrice, once, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_rows", [1_000, STORED_ROWS + 1])
def test_noise_is_that_of_one_step(n_rows, monkeypatch):
    """Later steps must not pull the leaves back, nor measure the noise where they have come to, nor
    by the weight of a part of the rows.
    """
    monkeypatch.setattr(leaves, "PART_ROWS", 5_000)
    case, sigma, n_draws = Case(n_rows, positive=0.05), 0.5, 200
    quiet, leaf = case.one_tree(3)
    rule = FixedStructure(case.run(3).structure(0))
    noisy = [case.one_tree(3, Move(1.0, sigma), seed=s, rule=rule)[0] for s in range(n_draws)]
    # p is 1/2 before the first step; a leaf without rows has no noise.
    expected = sigma / np.sqrt(0.25 * np.bincount(leaf) + 1.0)[np.unique(leaf)]
    result = np.std(noisy, axis=0)[np.unique(leaf)]
    # The standard deviation of n normals is off by sigma / sqrt(2 n); 5 of these in one of 8
    # leaves: 5e-6. By the curvature of the end it would be about twice as large.
    assert (np.abs(result / expected - 1) < 5 / math.sqrt(2 * n_draws)).all()
    drift = (np.mean(noisy, axis=0) - quiet)[np.unique(leaf)]
    assert (np.abs(drift) < 5 * expected / math.sqrt(n_draws)).all()


@pytest.mark.parametrize("n_rows", [10_000, STORED_ROWS + 10_000, 2 * PART_ROWS])
def test_threads_do_not_change_a_bit(n_rows):
    case, move = Case(n_rows, weighted=True), Move(0.1, 1.0, Transition.shrink(0.99))
    expected = case.run(3, move, n_trees=3).values
    for threads in (2, 3, 8, 12):
        assert np.array_equal(case.run(3, move, n_trees=3, threads=threads).values, expected)


@pytest.mark.parametrize("n_rows", [1_000, STORED_ROWS + 1])
def test_a_chain_goes_on_as_if_it_had_not_stopped(n_rows, monkeypatch):
    monkeypatch.setattr(leaves, "PART_ROWS", 10_000)
    case, move = Case(n_rows), Move(0.1, 1.0, Transition.shrink(0.99))
    whole = case.run(2, move, n_trees=10)
    parts = case.run(2, move, n_trees=4, after=case.run(2, move, n_trees=6))
    assert np.array_equal(parts.values, whole.values)


@pytest.mark.parametrize("n_rows", [1_000, STORED_ROWS + 1])
def test_gains_are_those_of_the_first_step(n_rows, monkeypatch):
    """What a split is worth is seen at the start, not where the leaves are almost right."""
    case = Case(n_rows)
    first = case.run(1).arrays()["gains"]
    assert np.array_equal(case.run(3).arrays()["gains"], first)
    monkeypatch.setattr(leaves, "PART_ROWS", 10_000)
    # A gain is n/4 times the square of a mean of n numbers of size 1/2, so 10,000 rows tell one of
    # 1,304 of 50,000 with a standard deviation of 2 sqrt(1,304 * 5 / 4), .04 of all gains.
    result = case.run(3).arrays()["gains"]
    np.testing.assert_allclose(result, first, atol=0.2 * first.sum())


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (("gradient", 0.0, 2), "leaf_steps=2 needs leaf_method='newton'"),
        (("newton", 0.0, 0), "leaf_steps=0 must be at least 1"),
        (("exact",), "leaf method 'exact'"),
    ],
)
def test_an_invalid_rule_is_rejected(rule, said):
    with pytest.raises(ValueError, match=said):
        LeafRule(*rule)


def test_several_steps_are_refused_where_they_lead_nowhere():
    with pytest.raises(ValueError, match="one output"):
        LeafRule("newton", 0.0, 2).check(Softmax(3), 1.0)
    with pytest.raises(ValueError, match=r"subsample=0\.5"):
        LeafRule("newton", 0.0, 2).check(get_loss("logistic"), 0.5)
    LeafRule("newton", 0.0, 1).check(Softmax(3), 0.5)


# Estimators.


def table(n_rows=2_000, n_classes=2):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(n_rows, 5))
    score = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


SMALL = {"n_estimators": 20, "learning_rate": 0.3, "random_state": 0, "n_jobs": 1}


def test_two_steps_learn_faster():
    X, y = table()
    single, two = (SGLBClassifier(**SMALL, leaf_steps=n).fit(X, y).predict_proba(X) for n in (1, 2))
    rows = np.arange(len(y))
    assert -np.log(two[rows, y]).mean() < -np.log(single[rows, y]).mean()


def test_categories_and_weights_of_zero_take_several_steps():
    X, y = table(1_000)
    X[:, 4] = np.arange(len(X)) % 40
    weight = np.where(np.arange(len(X)) % 3, 1.0, 0.0)
    model = SGLBClassifier(**SMALL, leaf_steps=3, categorical_features=[4])
    model.fit(X, y, sample_weight=weight)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_loss_in_python_takes_the_same_steps():
    class Mine:
        convex = True
        loss = staticmethod(lambda y, raw: np.logaddexp(0, raw) - y * raw)
        gradient = staticmethod(lambda y, raw: expit(raw) - y)
        hessian = staticmethod(lambda y, raw: expit(raw) * expit(-raw))

    X, y = table()
    user_model, built_in = (
        SGLBClassifier(**SMALL, sampler="plain", init="zero", leaf_steps=3, loss=loss).fit(X, y)
        for loss in (Mine(), "logistic")
    )
    np.testing.assert_allclose(
        user_model.decision_function(X), built_in.decision_function(X), rtol=1e-6, atol=1e-6
    )


def test_a_step_to_where_the_loss_is_not_finite_is_named():
    class Counts:
        convex = True
        loss = staticmethod(lambda y, raw: np.exp(raw) - y * raw)
        gradient = staticmethod(lambda y, raw: np.exp(raw) - y)
        hessian = staticmethod(lambda y, raw: np.exp(raw))

    X, _ = table(500)
    y = np.full(500, 1000.0) + X[:, 0]
    options = {**SMALL, "n_estimators": 2, "learning_rate": 1e-3, "leaf_method": "newton"}
    options["l2_regularization"] = 3.0
    SGLBRegressor(**options, loss=Counts(), init="zero").fit(X, y)
    with (
        np.errstate(over="ignore"),
        pytest.raises(StepTooLong, match=r"leaf_steps=2: at step 0 .* use leaf_steps=1"),
    ):
        SGLBRegressor(**options, loss=Counts(), init="zero", leaf_steps=2).fit(X, y)


def test_estimators_refuse_several_steps_before_the_work():
    X, y = table(200)
    with pytest.raises(ValueError, match=r"leaf_steps=2 needs leaf_method='newton'"):
        SGLBClassifier(leaf_steps=2, leaf_method="gradient").fit(X, y)
    with pytest.raises(ValueError, match=r"leaf_steps=2 needs leaf_method='newton'"):
        SGLBRegressor(leaf_steps=2, loss="absolute").fit(X, y)
    with pytest.raises(ValueError, match=r"leaf_steps=2 needs a loss of one output.*'softmax'.* 3"):
        SGLBClassifier(leaf_steps=2).fit(*table(200, 3))
    with pytest.raises(ValueError, match=r"leaf_steps=2 needs all rows, and subsample=0\.5"):
        SGLBClassifier(leaf_steps=2, sampler="stochastic", subsample=0.5).fit(X, y)
    with pytest.raises(ValueError, match=r"leaf_steps=0 is not allowed"):
        SGLBClassifier(leaf_steps=0).fit(X, y)


def test_steps_are_saved(tmp_path):
    X, y = table(200)
    model = SGLBClassifier(**SMALL, leaf_steps=4).fit(X, y)
    model.save(tmp_path / "model.sglb")
    assert sglb.load(tmp_path / "model.sglb").leaf_steps == 4
