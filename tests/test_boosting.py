"""The loop: each step is the twin's step, and the chain is the same however it is run."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest

import reference
from problems import THREADS, boosted, grow, make_problem
from sglb import SGLBRegressor, losses, slopes
from sglb.boosting import check_finite
from sglb.callbacks import BaseCallback, Stop
from sglb.chain import Chain
from sglb.errors import ChainDiverged, NonFiniteGradient
from sglb.leaves import LeafRule
from sglb.losses import Logistic, Softmax, Squared, UserLoss
from sglb.samplers import Langevin, Move, Plain, Stochastic
from sglb.shard import Shard
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.trace import States, Trace
from sglb.training_set import TrainingSet
from sglb.transition import Transition

SAMPLERS = {
    "plain": Plain(0.3),
    "stochastic": Stochastic(0.3, subsample=0.4),
    "langevin": Langevin(0.3, temperature=0.5, shrink_rate=0.2),
    "langevin on samples": Langevin(0.3, temperature=2.0, shrink_rate=0.1, subsample=0.6),
    "quiet structures": Langevin(0.3, temperature=0.5, shrink_rate=0.2, structure_noise=0.2),
}
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


@pytest.fixture(params=[slopes.STORED_ROWS, 0], ids=["stored", "on the spot"])
def gradients(request, monkeypatch):
    """Gradients as few rows have them, and as many rows of a bounded loss have them."""
    monkeypatch.setattr(slopes, "STORED_ROWS", request.param)


both_gradients = pytest.mark.usefixtures("gradients")


class Recorder(BaseCallback):
    """Keeps the state after every step."""

    def __init__(self):
        self.states = []

    def start(self, info):
        self.states.append(info.rows.state.copy())

    def step(self, info):
        self.states.append(info.rows.state.copy())

    @property
    def raws(self):
        """Raw scores after every step."""
        return [state[0] for state in self.states]


def make_loss(n_outputs):
    return Squared() if n_outputs == 1 else Softmax(n_outputs)


class Case:
    """A problem and how to run a chain on it."""

    def __init__(
        self, sampler, n_outputs=1, *, n_rows=300, weighted=False, method="gradient", steps=1
    ):
        rng = np.random.default_rng(7)
        self.X, self.bins, self.training_set = make_problem(
            rng, n_rows, weighted=weighted, n_outputs=n_outputs
        )
        self.sampler = sampler
        self.loss = make_loss(n_outputs)
        self.leaves = LeafRule(method, l2=0.7, steps=steps)
        self.offset = self.loss.init(self.training_set.target)
        self.growth = reference.Growth(4, 0.7, n_rows // 2, random_strength=0.3)

    def start(self):
        size = self.sampler.move(0).transition.size
        return Trace(self.bins, self.growth.max_depth, self.offset, size=size)

    def run(self, n_steps, *, trace=None, n_threads=1, callbacks=(), seed=11):
        rule = GreedySearch(
            self.growth.max_depth,
            l2=self.growth.l2,
            newton=self.leaves.method == "newton",
            structure_rows=self.growth.structure_rows,
            random_strength=self.growth.random_strength,
            n_threads=n_threads,
        )
        return boosted(
            self.training_set,
            self.loss,
            self.sampler,
            rule,
            self.leaves,
            self.start() if trace is None else trace,
            n_steps=n_steps,
            seed=seed,
            n_threads=n_threads,
            callbacks=callbacks,
        )

    @property
    def on_the_spot(self):
        """Whether the chain evaluates its loss where gradients are needed."""
        return self.training_set.n_rows > slopes.STORED_ROWS and self.loss.lipschitz is not None

    def slopes(self, raw):
        raw = np.ascontiguousarray(raw)
        gradient, hessian = np.empty_like(raw), np.empty_like(raw)
        self.loss.fill(self.training_set.target.values, raw, gradient, hessian, 1)
        return gradient, hessian

    def twin_step(self, state, step, seed=11):
        gradient, hessian = self.slopes(state[0])
        newton = self.leaves.method == "newton"
        move = self.sampler.move(step)
        # Noise on the scores fades as q / (1 + q), q = N exp(-time).
        q = self.training_set.n_rows * math.exp(-move.learning_rate * step)
        growth = reference.Growth(
            self.growth.max_depth,
            self.growth.l2,
            self.growth.structure_rows,
            self.growth.random_strength * q / (1 + q),
        )
        return reference.take_step(
            self.training_set,
            state,
            self.slopes,
            reference.Bounds(
                self.loss.lipschitz if self.on_the_spot else reference.largest(gradient),
                self.loss.smoothness or reference.largest(hessian),
            ),
            move,
            growth,
            reference.LeafRule(self.leaves.l2, newton, self.leaves.steps, self.loss.trust_radius),
            self.offset,
            seed,
            step,
        )


def assert_same_chain(result, expected):
    assert len(result) == len(expected)
    for name, array in expected.arrays().items():
        assert np.array_equal(result.arrays()[name], array), name
        assert result.arrays()[name].tobytes() == array.tobytes(), name


@both_gradients
@every_sampler
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["gradient", "newton"])
def test_every_step_is_the_step_of_the_twin(sampler, n_outputs, weighted, method):
    assert_steps_of_the_twin(Case(sampler, n_outputs, n_rows=100, weighted=weighted, method=method))


class Momentum:
    """A transition of two parts, with noise of its own on structures."""

    def move(self, step):
        by = Transition([[0.9, 0.4], [-0.1, 0.5]], [1.0, 0.7])
        return Move(0.2, 1.5, by, structure_noise=0.4 + 0.1 * step)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("method", ["gradient", "newton"])
def test_every_step_with_a_state_of_two_parts_is_that_of_the_twin(n_outputs, method):
    case = Case(Momentum(), n_outputs, n_rows=100, weighted=True, method=method)
    assert_steps_of_the_twin(case)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "sampler", [SAMPLERS["langevin"], Momentum()], ids=["langevin", "momentum"]
)
def test_every_step_of_several_newton_steps_is_that_of_the_twin(sampler, weighted):
    case = Case(sampler, n_rows=100, weighted=weighted, method="newton", steps=3)
    case.loss = Logistic()
    labels = case.training_set.target.values > np.median(case.training_set.target.values)
    target = Target.of(labels * 1.0, case.training_set.target.weight)
    case.training_set = replace(case.training_set, target=target)
    case.offset = case.loss.init(target)
    assert_steps_of_the_twin(case)


def assert_steps_of_the_twin(case):
    recorder = Recorder()
    trace = case.run(4, callbacks=[recorder])
    for step in range(4):
        structure, values, gains, state = case.twin_step(recorder.states[step], step)
        result = trace.structure(step)
        for ours, theirs in zip(result, structure, strict=True):
            assert np.array_equal(ours, theirs)
        mine = trace.arrays()["gains"][step, : len(gains)]
        np.testing.assert_allclose(mine, gains, rtol=1e-9, atol=1e-9)
        mine = trace.values[step, : result.n_leaves]
        np.testing.assert_allclose(mine, values, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(recorder.states[step + 1], state, rtol=1e-11, atol=1e-12)
        assert np.array_equal(trace.C[step], case.sampler.move(step).transition.C)


@both_gradients
@every_sampler
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_chain_has_the_same_bytes_for_any_number_of_threads(sampler, n_outputs):
    case = Case(sampler, n_outputs, n_rows=20_000, weighted=True)
    expected = case.run(4)
    for n_threads in THREADS:
        assert_same_chain(case.run(4, n_threads=n_threads), expected)


@both_gradients
@every_sampler
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("method", ["gradient", "newton"])
def test_replaying_the_chain_gives_the_training_scores_bit_for_bit(sampler, n_outputs, method):
    case = Case(sampler, n_outputs, weighted=True, method=method)
    recorder = Recorder()
    trace = case.run(25, callbacks=[recorder])
    codes = case.training_set.code_columns
    for k in (0, 1, 13, 25):
        for n_threads in THREADS:
            assert np.array_equal(trace.at(k).replay(codes, n_threads)[0], recorder.raws[k])
    predicted = trace.predict(case.X)
    assert np.abs(predicted - recorder.raws[-1]).max() <= 1e-6 * np.ptp(recorder.raws[-1])


@every_sampler
def test_a_state_equals_the_chain_stopped_there(sampler):
    case = Case(sampler)
    whole = case.run(20)
    for k in (0, 1, 7, 20):
        stopped = case.run(k)
        assert_same_chain(whole.at(k), stopped)
        assert np.array_equal(whole.predict(case.X, states=[k])[0], stopped.predict(case.X))


@both_gradients
@every_sampler
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_continued_chain_equals_the_unbroken_one(sampler, n_outputs):
    case = Case(sampler, n_outputs)
    whole = case.run(20)
    broken = case.run(3)
    for n_steps in (1, 0, 9, 7):
        # A saved and loaded chain has arrays of exactly its length.
        broken = Trace.from_arrays(case.bins, case.offset, broken.arrays())
        broken = case.run(n_steps, trace=broken)
    assert_same_chain(broken, whole)


def test_the_seed_alone_decides():
    case = Case(SAMPLERS["langevin"])
    assert_same_chain(case.run(5, seed=3), case.run(5, seed=3))
    assert not np.array_equal(case.run(5, seed=3).values, case.run(5, seed=4).values)


def test_without_noise_only_rounding_hangs_on_the_seed():
    case = Case(SAMPLERS["plain"])
    case.growth = reference.Growth(3)
    ours, other = case.run(1, seed=3), case.run(1, seed=4)
    assert np.array_equal(ours.values, other.values)


@pytest.mark.parametrize("n_rows", [1, 2, 31, 33])
@every_sampler
def test_tiny_problems_can_be_boosted(sampler, n_rows):
    case = Case(sampler, n_rows=n_rows)
    recorder = Recorder()
    trace = case.run(5, callbacks=[recorder])
    assert np.array_equal(trace.replay(case.training_set.code_columns)[0], recorder.raws[-1])


def test_a_problem_without_a_split_is_fitted_by_constants():
    case = Case(Plain(1.0))
    case.leaves = LeafRule()
    case.training_set.code_columns[:] = 1
    case.training_set.code_rows[:] = 1
    trace = case.run(2)
    assert trace.depths.tolist() == [0, 0]
    mean = case.training_set.target.values.mean()
    np.testing.assert_allclose(trace.replay(case.training_set.code_columns), mean, rtol=1e-12)


def test_shrink_and_gradient_are_taken_at_the_same_raw():
    # One leaf, squared loss: f1 = rho f0 - eps (f0 - y), by hand with rho = eps = 1/2.
    class Half:
        def move(self, step):
            return Move(learning_rate=0.5, transition=Transition.shrink(0.5))

    case = Case(Half(), n_rows=1)
    case.leaves = LeafRule()
    case.offset = np.zeros(1)
    case.training_set.target.values[:] = 8.0
    recorder = Recorder()
    case.run(3, callbacks=[recorder])
    # 0 -> 4 -> 2 - (4 - 8) / 2 = 4 -> the same again
    assert [raw.item() for raw in recorder.raws] == [0.0, 4.0, 4.0, 4.0]


def test_callbacks_are_called_in_order_and_may_stop_the_chain():
    heard = []

    class Guest(BaseCallback):
        def start(self, info):
            assert info.structure is None
            heard.append(("start", info.step))

        def step(self, info):
            heard.append(("step", info.step))
            assert len(info.trace) == info.step
            assert info.values.shape == (info.structure.n_leaves, 1)
            return Stop("enough") if info.step == 3 else None

        def finish(self, info):
            heard.append(("finish", info.step))

    recorder = Recorder()
    case = Case(SAMPLERS["langevin"])
    trace = case.run(10, callbacks=[Guest(), recorder])
    assert heard == [("start", 0), ("step", 1), ("step", 2), ("step", 3), ("finish", 3)]
    assert len(recorder.raws) == 4  # the other guest saw the last step too
    assert_same_chain(trace, case.run(3))


def test_a_callback_without_a_step_of_its_own_hears_start_and_the_true_end():
    class Ends(BaseCallback):
        def start(self, info):
            self.first = info

        def finish(self, info):
            self.last, self.raw = info, info.raw.copy()

    ends, recorder = Ends(), Recorder()
    case = Case(SAMPLERS["langevin"])
    alone = case.run(4, callbacks=[ends])
    assert (ends.first.step, ends.last.step) == (0, 4)
    assert {ends.first.n_steps, ends.last.n_steps} == {4}
    assert ends.last.values.shape == (ends.last.structure.n_leaves, 1)
    assert_same_chain(alone, case.run(4, callbacks=[recorder]))
    assert np.array_equal(ends.raw, recorder.raws[-1])
    case.run(0, callbacks=[ends])
    assert ends.last is ends.first


def test_a_chain_that_leaves_the_numbers_is_an_error_with_its_step():
    with pytest.raises(ChainDiverged, match="diverged"):
        Case(Plain(1e200)).run(20)


def test_a_chain_that_runs_away_is_an_error_long_before_it_leaves_the_numbers():
    with pytest.raises(ChainDiverged, match="diverged") as error:
        Case(Plain(3.0)).run(500)  # each step doubles the residuals, 2^1024 is infinite
    assert error.value.step < 50


def test_a_users_gradient_that_is_not_finite_is_an_error_with_step_and_row():
    class Fragile:
        def loss(self, y, raw):
            return 0.5 * (raw - y) ** 2

        def gradient(self, y, raw):
            gradient = raw - y
            self.calls = getattr(self, "calls", 0) + 1
            if self.calls > 3:
                gradient[5] = np.nan
            return gradient

    case = Case(SAMPLERS["plain"])
    case.loss = UserLoss(Fragile(), None)
    with pytest.raises(NonFiniteGradient, match="row 5") as error:
        case.run(10)
    assert (error.value.row, error.value.step) == (5, 3)


def test_boosting_lowers_the_loss():
    case = Case(SAMPLERS["plain"], n_rows=400)
    recorder = Recorder()
    case.run(30, callbacks=[recorder])
    losses = [
        case.loss.loss(case.training_set.target.values, raw[0]).mean() for raw in recorder.raws
    ]
    assert losses[-1] < 0.3 * losses[0]
    assert (np.diff(losses) <= 1e-12).all()


def test_a_logistic_chain_separates_two_classes():
    case = Case(SAMPLERS["plain"])
    case.loss = Logistic()
    labels = (case.training_set.target.values > np.median(case.training_set.target.values)).astype(
        float
    )
    case.training_set.target.values[:] = labels
    case.offset = case.loss.init(Target.of(labels))
    raw = case.run(60).predict(case.X)[0]
    assert ((raw > 0) == labels).mean() > 0.85


def test_newton_leaves_without_any_curvature_take_gradient_steps_with_their_noise():
    X = np.arange(40.0)[:, None]
    model = SGLBRegressor(
        loss=losses.Huber(1e-3),
        leaf_method="newton",
        l2_regularization=0.0,
        temperature=1.0,
        learning_rate=0.1,
        n_estimators=5,
        random_state=0,
    ).fit(X, 3.0 * X[:, 0])
    assert (np.abs(model.trace_.values).max(axis=(1, 2)) > 0.1).all()


def test_structure_noise_is_that_of_the_rows_whatever_the_number_of_copies():
    # A copy's rows weigh a quarter each, so noise of half the size is that of rows of weight 1.
    rng = np.random.default_rng(0)
    bits = rng.integers(1, 3, size=(6, 200)).astype(np.uint8)
    gradient = rng.normal(size=(1, 200))
    single = TrainingSet.build(bits, np.full(6, 3), Target.of(np.zeros(200)))
    copies = TrainingSet.build(
        np.tile(bits, 4), np.full(6, 3), Target.of(np.zeros(800), np.full(800, 0.25)), n_copies=4
    )
    move = Move(0.1, 1.5)
    for step in (0, 4, 8):  # the first copy, whose rows have the numbers of the single ones
        result = [
            grow(GreedySearch(3), rows, np.tile(gradient, rows.n_copies), move, 1, step)
            for rows in (single, copies)
        ]
        assert all(np.array_equal(a, b) for a, b in zip(*result, strict=True))


def make_chain(case, seed, *, state=None, keep_trees=True):
    trace = Trace(case.bins, case.growth.max_depth, case.offset, keep_trees=keep_trees)
    rows = Shard.start(case.training_set, case.loss, trace, newton=False, state=state)
    rule = GreedySearch(case.growth.max_depth, structure_rows=case.growth.structure_rows)
    return Chain(rows, case.sampler, rule, case.leaves, trace, seed=seed)


def test_chains_stepped_in_turn_from_outside_do_not_disturb_one_another():
    case = Case(SAMPLERS["langevin"], 3)
    first, second = make_chain(case, 1), make_chain(case, 2)
    for _ in range(6):
        first.step()
        second.step()
    for chain, seed in ((first, 1), (second, 2)):
        alone = make_chain(case, seed)
        for _ in range(6):
            alone.step()
        assert_same_chain(chain.trace, alone.trace)
        assert np.array_equal(chain.rows.state, alone.rows.state)


def test_a_chain_starts_in_the_state_that_it_is_given():
    case = Case(SAMPLERS["langevin"])
    walked = make_chain(case, 1)
    for _ in range(5):
        walked.step()
    # Steps are numbered by the trace, so that the same noise needs a trace of five steps.
    moved = make_chain(case, 1, state=walked.rows.state.copy())
    assert np.array_equal(moved.rows.raw, walked.rows.raw)
    moved.step()
    first = make_chain(case, 1)
    first.step()
    assert not np.array_equal(moved.rows.raw, first.rows.raw)


def test_a_chain_that_keeps_no_trees_takes_the_same_steps():
    case = Case(SAMPLERS["langevin"])
    whole, forgetful = make_chain(case, 1), make_chain(case, 1, keep_trees=False)
    for _ in range(5):
        whole.step()
        forgetful.step()
    assert len(forgetful.trace) == 5
    assert np.array_equal(forgetful.rows.state, whole.rows.state)
    check_finite(forgetful)


OF_TREES = {
    "predict": lambda trace, X: trace.predict(X),
    "staged": lambda trace, X: list(trace.staged(X)),
    "replay": lambda trace, X: trace.replay(trace.bins.encode(X)),
    "at": lambda trace, X: trace.at(1),
    "weights": lambda trace, X: trace.weights(),
    "structure": lambda trace, X: trace.structure(0),
    "values": lambda trace, X: trace.values,
    "depths": lambda trace, X: trace.depths,
    "arrays": lambda trace, X: trace.arrays(),
    "temperatures": lambda trace, X: trace.temperatures,
    "feature_gains": lambda trace, X: trace.feature_gains(),
    "states": lambda trace, X: trace.states([1]),
    "mean": lambda trace, X: States.mean([trace]),
    "copy": lambda trace, X: copy.copy(trace),
    "append_from": lambda trace, X: trace.append_from(trace),
}


@pytest.mark.parametrize("call", OF_TREES.values(), ids=OF_TREES)
def test_a_trace_without_trees_rejects_calls_that_need_them(call):
    case = Case(SAMPLERS["langevin"])
    chain = make_chain(case, 1, keep_trees=False)
    chain.step()
    with pytest.raises(ValueError, match=r"keeps no trees: .* keep_trees=True"):
        call(chain.trace, case.X)
