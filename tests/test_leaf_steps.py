"""Several Newton steps in the leaves of a tree."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

import sglb
from reference_leaves import leaf_indices
from reference_noise import LEAF, core_normals
from sglb import SGLBClassifier, SGLBRegressor
from sglb.bins import Bins
from sglb.boosting import STORED_ROWS, LeafRule, boost
from sglb.ensemble import Ensemble
from sglb.losses import get_loss
from sglb.samplers import Move
from sglb.structure import GreedySearch
from sglb.training_set import TrainingSet

LEAST_CURVATURE = 1e-3


class Same:
    """A sampler that makes one move again and again."""

    def __init__(self, move):
        self.move = lambda step: move


class Case:
    """Two classes, 5 % to 50 % of them ones, and a chain on them."""

    def __init__(self, n_rows, *, weighted=False, positive=0.5, offset=0.0, loss="logistic"):
        rng = np.random.default_rng(n_rows)
        X = rng.normal(size=(n_rows, 4))
        score = X[:, 0] * X[:, 1] + rng.normal(size=n_rows)
        y = score if loss == "squared" else (score > np.quantile(score, 1 - positive)) * 1.0
        weight = rng.uniform(0.2, 3.0, n_rows) if weighted else None
        self.bins = Bins.fit(X, 16)
        self.rows = TrainingSet.build(self.bins.encode(X), self.bins.n_codes, y, weight)
        self.loss, self.offset = get_loss(loss), np.full(1, offset)

    def run(self, steps, move=None, *, n_trees=1, l2=1.0, seed=3, rule=None, threads=1, after=None):
        return boost(
            self.rows,
            self.loss,
            Same(move or Move(1.0)),
            rule or GreedySearch(3, l2=l2, newton=True, n_threads=threads),
            LeafRule("newton", l2, steps),
            after or Ensemble(self.bins, 3, self.offset),
            n_steps=n_trees,
            seed=seed,
            n_threads=threads,
        )

    def one_tree(self, *arguments, **options):
        """The leaf values of the first tree, and the leaf of each row."""
        chain = self.run(*arguments, **options)
        structure = chain.structure(0)
        leaf = leaf_indices(self.rows.code_columns, *structure)
        return chain.values[0, : structure.n_leaves, 0], leaf


def newton(rows, leaf, n_leaves, steps, *, l2, offset, learning_rate, noise):
    """The same in NumPy."""
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    W = np.bincount(leaf, weight, n_leaves)
    value, last = np.zeros(n_leaves), np.full(n_leaves, np.inf)
    for number in range(steps):
        p = expit(offset + value[leaf])
        G = np.bincount(leaf, weight * (p - rows.y), n_leaves) + l2 * value
        H = np.bincount(leaf, weight * p * (1 - p), n_leaves)
        C = np.maximum(H, LEAST_CURVATURE * H.sum() / W.sum() * W) + l2
        step = -G / C
        most = np.abs(np.where((step < 0) == (last < 0), last, last / 2))
        last = np.where(W > 0, np.clip(step, -most, most), 0.0)
        value = value + last
        if number == steps - 1 and noise:
            value -= np.where(W > 0, noise / np.sqrt(C) * core_normals(3, 0, LEAF, 0, n_leaves), 0)
    return learning_rate * value


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, -3.0, 12.0])
@pytest.mark.parametrize("n_rows", [300, STORED_ROWS + 1])
def test_leaf_values_equal_their_twin(steps, weighted, offset, n_rows):
    case = Case(n_rows, weighted=weighted, offset=offset)
    for noise in (0.0, 2.0):
        values, leaf = case.one_tree(steps, Move(0.3, noise))
        expected = newton(
            case.rows, leaf, len(values), steps,
            l2=1.0, offset=offset, learning_rate=0.3, noise=noise,
        )  # fmt: skip
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 8.0, -30.0])
def test_many_steps_lead_to_the_minimum(offset):
    """From far away too, where the logistic loss is almost straight and a first step too long."""
    case = Case(2_000, positive=0.2, offset=offset)
    values, leaf = case.one_tree(60)
    for j, value in enumerate(values):
        y = case.rows.y[leaf == j]

        def objective(x, y=y):
            z = offset + x
            return (np.logaddexp(0, z) - y * z).sum() + 0.5 * x * x

        best = minimize_scalar(objective, bracket=(-40, 40), tol=1e-12)
        assert objective(value) <= best.fun * (1 + 1e-9)


def test_every_step_lowers_the_loss_of_training():
    case = Case(5_000, positive=0.05)
    losses = []
    for steps in (1, 2, 3, 4):
        values, leaf = case.one_tree(steps, l2=0.0)
        losses.append((np.logaddexp(0, values[leaf]) - case.rows.y * values[leaf]).mean())
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 1.01 * losses[1]


def test_the_squared_loss_is_at_its_minimum_after_one_step():
    case = Case(400, loss="squared")
    once, thrice = (case.one_tree(steps)[0] for steps in (1, 3))
    np.testing.assert_allclose(thrice, once, rtol=1e-12, atol=1e-12)


class Repeat:
    """A structure rule that has one answer."""

    def __init__(self, structure):
        self.structure = structure

    def grow(self, *_):
        return self.structure


def test_noise_is_that_of_one_step():
    """Later steps must not pull the leaves back to where the noise moved them from."""
    case, sigma, n_draws = Case(1_000), 0.5, 200
    quiet, leaf = case.one_tree(3)
    rule = Repeat(case.run(3).structure(0))
    noisy = [case.one_tree(3, Move(1.0, sigma), seed=s, rule=rule)[0] for s in range(n_draws)]
    p = expit(quiet[leaf])
    # The last step begins almost at the minimum, and has the curvature of that place.
    expected = sigma / np.sqrt(np.bincount(leaf, p * (1 - p)) + 1.0)
    found = np.std(noisy, axis=0)
    # The standard deviation of n normals is off by sigma / sqrt(2 n); 5 of these in one of 8
    # leaves: 5e-6.
    assert (np.abs(found / expected - 1) < 5 / math.sqrt(2 * n_draws)).all()


@pytest.mark.parametrize("n_rows", [1_000, STORED_ROWS + 10_000])
def test_threads_do_not_change_a_bit(n_rows):
    case = Case(n_rows, weighted=True)
    expected = case.run(3, Move(0.1, 1.0, 0.99, 0.7), n_trees=3).values
    for threads in (2, 3, 4):
        found = case.run(3, Move(0.1, 1.0, 0.99, 0.7), n_trees=3, threads=threads).values
        assert np.array_equal(found, expected)


def test_a_chain_goes_on_as_if_it_had_not_stopped():
    case, move = Case(1_000), Move(0.1, 1.0, 0.99)
    whole = case.run(2, move, n_trees=10)
    parts = case.run(2, move, n_trees=4, after=case.run(2, move, n_trees=6))
    assert np.array_equal(parts.values, whole.values)


def test_gains_are_those_of_the_first_step():
    """What a split is worth is seen at the start, not where the leaves are almost right."""
    case = Case(1_000)
    assert np.array_equal(case.run(1).arrays()["gains"], case.run(3).arrays()["gains"])


def table(n_rows=2_000, n_classes=2):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(n_rows, 5))
    score = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


SMALL = {"n_estimators": 20, "learning_rate": 0.3, "random_state": 0, "n_jobs": 1}


def test_two_steps_learn_faster():
    X, y = table()
    one, two = (
        SGLBClassifier(**SMALL, leaf_steps=steps).fit(X, y).predict_proba(X) for steps in (1, 2)
    )
    rows = np.arange(len(y))
    assert -np.log(two[rows, y]).mean() < -np.log(one[rows, y]).mean()


def test_a_loss_in_python_takes_the_same_steps():
    class Mine:
        convex = True
        loss = staticmethod(lambda y, raw: np.logaddexp(0, raw) - y * raw)
        gradient = staticmethod(lambda y, raw: expit(raw) - y)
        hessian = staticmethod(lambda y, raw: expit(raw) * expit(-raw))

    X, y = table()
    own, built_in = (
        SGLBClassifier(**SMALL, sampler="plain", init="zero", leaf_steps=3, loss=loss).fit(X, y)
        for loss in (Mine(), "logistic")
    )
    np.testing.assert_allclose(
        own.decision_function(X), built_in.decision_function(X), rtol=1e-6, atol=1e-6
    )


def test_gradient_leaves_and_several_outputs_take_one_step():
    X, y = table(200)
    with pytest.raises(ValueError, match=r"leaf_steps=2 needs Newton leaves.*'logistic'"):
        SGLBClassifier(leaf_steps=2, leaf_method="gradient").fit(X, y)
    with pytest.raises(ValueError, match=r"leaf_steps=2 needs Newton leaves.*'absolute'"):
        SGLBRegressor(leaf_steps=2, loss="absolute").fit(X, y)
    with pytest.raises(ValueError, match=r"leaf_steps=2 needs a loss of one output.*'softmax'.* 3"):
        SGLBClassifier(leaf_steps=2).fit(*table(200, 3))
    with pytest.raises(ValueError, match=r"leaf_steps=0 is not allowed"):
        SGLBClassifier(leaf_steps=0).fit(X, y)


def test_steps_are_saved(tmp_path):
    X, y = table(200)
    model = SGLBClassifier(**SMALL, leaf_steps=4).fit(X, y)
    model.save(tmp_path / "model.sglb")
    assert sglb.load(tmp_path / "model.sglb").leaf_steps == 4
