"""Rates that change from step to step: learning rate, temperature and shrink rate of a chain."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import sglb
from law import FixedStructure, assert_mean, binary_set, bits_of, leaf_variance, make_chain, splits
from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor
from sglb.losses import Squared
from sglb.posterior import reason_against_draws
from sglb.samplers import Hamiltonian, Langevin, Plain, Stochastic, Tempering
from sglb.schedules import Shape, StepFunction

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = X[:, 0] + 0.3 * RNG.normal(size=200)
LABELS = np.digitize(Y, [-0.5, 0.5])
RATES = {
    "learning_rate": "cosine(0.1, 0.01)",
    "temperature": "geometric(1, 1e-4)",
    "shrink_rate": "linear(1e-2, 1e-3)",
}
FAST = {"n_estimators": 12, "max_depth": 3, "random_state": 0, "n_jobs": 1}
NOISY = ["langevin", "annealed", "hamiltonian"]


def same(trace, other):
    theirs = other.arrays()
    return all(np.array_equal(array, theirs[name]) for name, array in trace.arrays().items())


def test_a_sampler_moves_by_the_numbers_of_the_step():
    rates = ("cosine(0.2, 0.1, 8)", "geometric(1, 0.01, 4)", "linear(0.5, 0, 8)")
    for kind in (Langevin, Hamiltonian):
        moving = kind(*rates)
        for step in (0, 3, 5, 20):
            now = [getattr(moving, name).at(step) for name in RATES]
            move, fixed = moving.move(step), kind(*now).move(0)
            assert (move.learning_rate, move.noise) == (fixed.learning_rate, fixed.noise)
            assert (move.transition, move.temperature) == (fixed.transition, fixed.temperature)
    assert Plain("linear(0.2, 0.1, 2)").move(1).learning_rate == pytest.approx(0.15)
    assert Stochastic("linear(0.2, 0.1, 2)", 0.5).move(1).subsample == 0.5
    assert Tempering("linear(0.2, 0.1, 2)", 0.1, 0.01, 1.0).move(1).time == 0.2


def test_the_time_of_a_step_is_the_sum_of_the_rates_before():
    # Noise of split scores fades with it: a rate that falls must not bring the noise back.
    sampler = Langevin("linear(1, 0.5, 5)", 0.0, 0.0)
    times = [sampler.move(step).time_at(step) for step in (7, 0, 3)]
    assert times == pytest.approx([1 + 0.9 + 0.8 + 0.7 + 0.6 + 2 * 0.5, 0.0, 2.7])
    assert Langevin(0.5, 0.0, 0.0).move(3).time_at(3) == 1.5


def test_what_happens_every_so_many_steps():
    schedule = Shape("cosine", 1.0, 0.0, every=10)
    assert str(schedule) == "cosine(1.0, 0.0) every 10"
    assert [schedule.at(step) for step in (0, 5, 10, 25)] == pytest.approx([1.0, 0.5, 1.0, 0.5])
    assert schedule.extremes_of_chain(100)[0] == schedule.at(9) > 0.0
    jump = Langevin(0.1, "jump(0, 2, 3) every 5", 0.1).temperature
    assert [jump.at(step) for step in range(10)] == [0, 0, 0, 2, 2] * 2
    assert str(jump) == "jump(0.0, 2.0, 3) every 5"
    assert jump.for_length(100) == jump


@pytest.mark.parametrize("sampler", NOISY)
def test_the_law_at_the_end_is_that_of_the_last_numbers(sampler):
    # One structure of 1,024 leaves of 2 rows; from a hot start the chain forgets at exp(-.15) a
    # step or faster: 100 steps after the schedule 3e-7 is left. Error rate 1e-6.
    leaf = np.repeat(np.arange(1 << 10), 2)
    rows = binary_set(bits_of(leaf, 10), RNG.normal(size=len(leaf)))
    kind = Hamiltonian if sampler == "hamiltonian" else Langevin
    friction = {"friction": 1.0} if sampler == "hamiltonian" else {}
    moving = kind("cosine(0.4, 0.1, 30)", "geometric(50, 2, 30)", "linear(1, 0.5, 30)", **friction)
    chain = make_chain(rows, Squared(), moving, FixedStructure(splits(*range(10))), seed=3)
    for _ in range(130):
        chain.step()
    raw = chain.rows.raw[0, ::2]
    mean = np.bincount(leaf, rows.target.values) / 2 / 1.5
    assert_mean(np.square(raw - mean), leaf_variance(2, 0.1, 0.5, 2.0))


@pytest.mark.parametrize("sampler", NOISY)
@pytest.mark.parametrize("y", [LABELS > 0, LABELS, Y], ids=["two", "three", "numbers"])
def test_every_estimator_has_schedules_by_strings(sampler, y, tmp_path):
    kind = SGLBRegressor if y.dtype == float else SGLBClassifier
    model = kind(sampler=sampler, **RATES, **FAST, n_chains=2).fit(X, y)
    for trace in model.traces_:
        assert trace.temperatures == pytest.approx([1e-4 ** (k / 12) for k in range(12)])
    assert model.learning_rate_ == pytest.approx(0.1)
    assert (model.temperature_, model.shrink_rate_) == (1e-4, 1e-3)
    assert model.inverse_temperature_ == pytest.approx(200 / 1e-4)
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    assert {name: again.get_params()[name] for name in RATES} == RATES
    assert again._model.recipe.settings.sampler == model._model.recipe.settings.sampler
    assert np.array_equal(again.predict(X), model.predict(X))
    assert same(again.trace_, model.trace_)
    assert clone(model).get_params() == model.get_params()
    assert same(clone(again).set_params(n_jobs=1, n_chains=2).fit(X, y).trace_, model.trace_)


def test_rankings_are_learned_with_schedules():
    group = np.repeat(np.arange(20), 10)
    model = SGLBRanker(sampler="hamiltonian", **RATES, **FAST).fit(X, LABELS, group=group)
    assert model.trace_.size == 2
    assert model.trace_.temperatures[0] == 1.0


def test_a_constant_schedule_gives_the_bits_of_the_number():
    fixed = {"learning_rate": 0.1, "temperature": 0.5, "shrink_rate": 0.01}
    moving = {name: f"linear({rate}, {rate})" for name, rate in fixed.items()}
    for sampler in NOISY[::2]:
        models = [SGLBRegressor(sampler=sampler, **FAST, **rates) for rates in (fixed, moving)]
        assert same(*(model.fit(X, Y).trace_ for model in models))


def test_cyclical_and_annealed_are_names_of_schedules():
    names = {"learning_rate": 0.1, "temperature": 0.5, "shrink_rate": 0.01}
    by_name = SGLBRegressor(sampler="cyclical", **names, **FAST | {"n_estimators": 20}).fit(X, Y)
    schedules = {"learning_rate": "cosine(0.1, 0) every 4", "temperature": "jump(0, .5, 2) every 4"}
    stated = SGLBRegressor(**names | schedules, **FAST | {"n_estimators": 20}).fit(X, Y)
    assert same(by_name.trace_, stated.trace_)
    by_name = SGLBRegressor(sampler="annealed", **names, **FAST).fit(X, Y)
    cooling = {
        "temperature": f"geometric(0.5, {1e-4 * 0.5!r}, 10)",
        "shrink_rate": f"geometric(0.01, {1e-4 * 0.01!r}, 10)",
    }
    assert same(by_name.trace_, SGLBRegressor(**names | cooling, **FAST).fit(X, Y).trace_)


def test_a_schedule_or_zero_is_as_stated_where_a_chain_anneals():
    still = {"temperature": 1.0, "shrink_rate": 0.0}
    model = SGLBRegressor(sampler="annealed", **still, **FAST).fit(X, Y)
    np.testing.assert_allclose(model.trace_.temperatures[[0, -1]], [1.0, 1e-4])
    assert model._model.recipe.settings.sampler.shrink_rate == 0.0
    falling = {"temperature": 0.0, "shrink_rate": "linear(0.1, 0)"}
    model = SGLBRegressor(sampler="annealed", **falling, **FAST).fit(X, Y)
    sampler = model._model.recipe.settings.sampler
    assert (sampler.temperature, str(sampler.shrink_rate)) == (0.0, "linear(0.1, 0.0, 12)")


@pytest.mark.parametrize("n_steps", [46, 50, 99, 253, 1004])
def test_a_cyclical_chain_ends_with_the_noisy_steps_of_its_fifth_cycle(n_steps):
    names = {"learning_rate": 0.1, "temperature": 0.5, "shrink_rate": 0.01}
    fit = FAST | names | {"n_estimators": n_steps, "max_depth": 1}
    trace = SGLBRegressor(sampler="cyclical", **fit).fit(X, Y).trace_
    assert trace.temperatures[-1] == pytest.approx(0.5)
    starts = np.flatnonzero(np.diff(trace.temperatures) < -0.1) + 1  # steps without noise again
    period = -(-n_steps // 5)
    assert list(starts) == [period * number for number in range(1, 5)]


def test_sampler_objects_have_schedules_too(tmp_path):
    sampler = Hamiltonian("cosine(0.1, 0)", "geometric(1, 1e-2)", 1e-3, friction=0.3)
    model = SGLBRegressor(sampler=sampler, **FAST).fit(X, Y)
    by_name = {"learning_rate": "cosine(0.1, 0)", "temperature": "geometric(1, 1e-2)"}
    named = SGLBRegressor(sampler="hamiltonian", shrink_rate=1e-3, friction=0.3, **by_name, **FAST)
    assert same(named.fit(X, Y).trace_, model.trace_)
    model.save(tmp_path / "model.sglb")
    assert sglb.load(tmp_path / "model.sglb").get_params()["sampler"] == sampler
    assert pickle.loads(pickle.dumps(sampler)) == copy.deepcopy(sampler) == sampler


def halved(step):
    return 0.1 / (1 + step)


def test_a_function_of_the_step_is_followed_but_not_stored(tmp_path):
    model = SGLBRegressor(temperature=StepFunction(halved, 12), **FAST).fit(X, Y)
    assert model.trace_.temperatures == pytest.approx([halved(step) for step in range(12)])
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    assert np.array_equal(again.predict(X), model.predict(X))
    with pytest.raises(
        ValueError, match=r"temperature=None .* do not store a user-defined temperature"
    ):
        again.fit(X, Y)
    with pytest.raises(ValueError, match="which a model file does not contain"):
        again._model.recipe.settings.sampler.move(0)
    assert pickle.loads(pickle.dumps(model)).get_params()["temperature"] == model.temperature


def test_callbacks_see_the_schedules():
    seen = {}

    class Watch(sglb.BaseCallback):
        def finish(self, info):
            seen.update(info.parameters)

    SGLBRegressor(**RATES, **FAST).fit(X, Y, callbacks=Watch())
    assert seen["temperature"] == "geometric(1.0, 0.0001, 12)"
    assert seen["learning_rate"] == "cosine(0.1, 0.01, 12)"


def test_early_stopping_counts_from_the_end_of_a_schedule():
    arguments = FAST | {"n_estimators": 60, "early_stopping_rounds": 1}
    model = SGLBRegressor(temperature="geometric(1, 1e-3, 40)", **arguments)
    model.fit(X[:100], Y[:100], eval_set=(X[100:], Y[100:]))
    assert 40 < len(model.evals_result_["validation_0"]["loss"]) <= 60
    with pytest.raises(
        ValueError, match=r"temperature='geometric\(1.0, 0.001\)' is not stated; add"
    ):
        model.set_params(temperature="geometric(1, 1e-3)").fit(X, Y, eval_set=(X, Y))
    sampler = Langevin("cosine(1, .1)", 1.0, 0.1)
    with pytest.raises(ValueError, match=r"learning_rate='cosine\(1.0, 0.1\)' is not stated; add"):
        SGLBRegressor(sampler=sampler, **arguments).fit(X, Y, eval_set=(X, Y))


@pytest.mark.parametrize("name", RATES)
def test_the_length_of_a_chain_with_a_schedule_is_not_searched(name):
    model = SGLBRegressor(max_depth=2, random_state=0, **{name: "linear(.01, .02)"}).fit(X, Y)
    assert model.n_iter_ == 1000


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        # gamma eps = .05 a step: the 300 steps after the schedule last 15 relaxation times.
        ({"temperature": "geometric(5, 1, 100)"}, None),
        ({"temperature": "geometric(5, 1, 350)"}, r"its 50 steps are 2.5 relaxation times"),
        (
            {"temperature": "geometric(5, 1)"},
            "no state in the second half of the chain has its last temp",
        ),
        ({"temperature": "linear(1, 0)"}, "the chain has no noise"),
        ({"learning_rate": "cosine(0.1, 0.05)", "temperature": 1.0}, None),
        ({"learning_rate": "linear(0.1, 0)", "temperature": 1.0, "shrink_rate": 0.2}, "4 relax"),
        # A velocity relaxes 1 / friction times as fast.
        ({"sampler": "hamiltonian", "shrink_rate": 0.05, "temperature": 1.0}, None),
        ({"sampler": "cyclical", "temperature": 1.0, "shrink_rate": 2.0}, None),
        # The shrink rate has fallen too, so that nothing is forgotten at the last temperature.
        ({"sampler": "annealed", "temperature": 1.0, "shrink_rate": 2.0}, "relaxation times"),
    ],
)
def test_states_are_draws_where_the_chain_has_come_to_its_last_temperature(parameters, reason):
    default = {"learning_rate": 0.1, "shrink_rate": 0.5, "leaf_method": "gradient"}
    arguments = FAST | {"n_estimators": 400, "max_depth": 2} | default | parameters
    model = SGLBRegressor(**arguments).fit(X, Y)
    against = reason_against_draws(model._model)
    if reason is None:
        assert against is None
        model.predict_uncertainty(X[:2])
    else:
        assert against is not None
        with pytest.warns(UserWarning, match=reason):
            model.predict_uncertainty(X[:2])


WRONG = [
    (
        {"temperature": "geometric(1, 0)"},
        "temperature='geometric(1, 0)' is not allowed; use",
    ),
    ({"learning_rate": "cosine(.1)"}, "a schedule has two values, and a length if you like"),
    ({"learning_rate": "sine(1, 2)"}, "unknown schedule 'sine'; known are linear, geometric"),
    ({"temperature": "jump(1, 0)"}, "a jump needs the step at which it happens"),
    ({"temperature": "jump(1, 0, 20) every 10"}, "20 steps do not fit into every 10"),
    ({"shrink_rate": lambda step: 0.1}, "a function needs a length: sglb.schedules.StepFunction"),
    ({"temperature": "linear(1, -1)"}, "temperature='linear(1.0, -1.0, 12)': a sampler's temper"),
    ({"learning_rate": "linear(.1, 0, 5)"}, "learning_rate must be above 0, not 0.0"),
    ({"shrink_rate": "linear(-1, 0)"}, "shrink_rate='linear(-1.0, 0.0, 12)': a sampler's shrink"),
    ({"learning_rate": "linear(.1, 3)"}, "learning_rate=2.75833 makes the chain diverge"),
    ({"learning_rate": 0.5, "shrink_rate": "linear(0, 3)"}, "the product must be below 1"),
    ({"sampler": "cyclical", "learning_rate": "cosine(1, .1)"}, "use sampler='langevin'"),
    ({"sampler": "tempering", "temperature": "cosine(1, .1)"}, "whose chains exchange temperatur"),
    ({"sampler": "plain", "temperature": "cosine(1, .1)"}, "temperature='cosine(1, .1)' has no ef"),
]


@pytest.mark.parametrize(("parameters", "message"), WRONG, ids=lambda item: str(item)[:40])
def test_what_no_chain_can_do_is_rejected_before_it_starts(parameters, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        SGLBRegressor(**FAST | {"leaf_method": "gradient"} | parameters).fit(X, Y)
    assert message in str(error.value)


def test_a_rate_that_falls_to_nothing_at_the_end_of_the_chain_is_allowed():
    model = SGLBRegressor(learning_rate="linear(.1, 0)", **FAST).fit(X, Y)
    assert model.learning_rate_ == 0.1
    assert len(model.trace_) == 12
