"""Schedules: numbers that change from step to step, in losses and in chains."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import sglb
from nine_queries import RAW, TARGET, slopes
from sglb import SGLBClassifier, SGLBRanker, _core
from sglb.boosting import boost
from sglb.chain import Chain
from sglb.elementary import cosine_turn
from sglb.losses import Huber, OwnMetric, Sla, StochasticRank, get_loss
from sglb.schedules import Shape, StepFunction, read_schedule, value_at
from sglb.shard import Shard
from sglb.target import Target
from sglb.trace import Trace
from test_ranker import FAST, GROUP, X_TEST, X, Y, trees
from test_ranking_shards import LANGEVIN, NEWTON, RULES, Problem, assert_same

STEPS = range(12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("linear(1, 0.1, 10)", lambda w: 1 - 0.9 * w),
        ("geometric(1, 0.1, 10)", lambda w: 0.1**w),
        ("cosine(1, 0.1, 10)", lambda w: 0.1 + 0.45 * (1 + np.cos(np.pi * w))),
        ("cosine(2,5,10)", lambda w: 5 - 1.5 * (1 + np.cos(np.pi * w))),
    ],
)
def test_shapes_by_their_formulas(text, value):
    schedule = read_schedule(text, "width")
    result = [schedule.at(step) for step in STEPS]
    wanted = [value(min(1.0, step / 10)) for step in STEPS]
    np.testing.assert_allclose(result, wanted, rtol=1e-14)
    assert result[0] == schedule.first
    assert result[10] == result[11] == schedule.last
    assert schedule.extremes == (min(result), max(result))


def test_a_string_is_a_schedule_and_back():
    for text in ("cosine(1.0, 0.1)", "linear(0.30000000000000004, 1e-07, 3)"):
        schedule = read_schedule(text, "width")
        assert str(schedule) == text
        assert read_schedule(str(schedule), "width") == schedule
        assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert read_schedule(" cosine( 1 , .1 ) ", "width") == Shape("cosine", 1.0, 0.1)
    assert read_schedule(0.5, "width") == 0.5
    assert value_at(0.5, 7) == 0.5


def test_a_schedule_without_a_length_takes_that_of_the_chain():
    schedule = Shape("cosine", 1.0, 0.1)
    with pytest.raises(ValueError, match=r"cosine\(1.0, 0.1\) has no length yet"):
        schedule.at(0)
    assert schedule.for_length(50) == Shape("cosine", 1.0, 0.1, 50)
    assert Shape("cosine", 1.0, 0.1, 20).for_length(50).n_steps == 20


def test_a_function_of_the_step():
    schedule = StepFunction(lambda step: 1.0 / (1 + step), 4)
    assert [schedule.at(step) for step in range(6)] == [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 5]
    assert (schedule.last, schedule.extremes) == (1 / 5, (1 / 5, 1.0))
    assert not Sla(schedule).storable
    assert Sla("cosine(1, .1)").storable


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("cosine", "width='cosine': not a schedule; write 'cosine"),
        ("cosine(1)", "two values, and a length"),
        ("cosine(1, .1, 3, 4)", "two values, and a length"),
        ("cosine(1, b)", "two numbers and a whole one"),
        ("cosine(1, .1, 2.5)", "two numbers and a whole one"),
        ("sine(1, .1)", "unknown schedule 'sine'; known are linear, geometric, cosine"),
        ("geometric(1, 0)", "a geometric schedule needs numbers above 0, got 0.0"),
        ("linear(1, inf)", "finite numbers, got inf"),
        ("linear(1, .1, 0)", "a length of 1 step or more, got 0"),
        ("linear(1, -1)", r"width of loss 'sla' must be a number between 1e-100 and 1e100"),
        (lambda step: 0.1, r"width as a function needs a length: schedules.StepFunction"),
        (None, "width must be a number or a schedule"),
    ],
)
def test_what_is_no_schedule_is_rejected(value, message):
    with pytest.raises(ValueError, match=message):
        Sla(value)


def test_functions_are_checked_at_every_step_when_they_are_stated():
    with pytest.raises(ValueError, match="at step 3 it is nan"):
        StepFunction(lambda step: np.nan if step == 3 else 1.0, 5)
    with pytest.raises(ValueError, match="must be a number between"):
        Sla(StepFunction(lambda step: 2.0 - step, 5))


def test_a_loss_at_a_step_has_the_number_of_that_step():
    loss = Sla("linear(1, 0.5, 10)")
    assert loss.at_step(4) == Sla(0.8)
    assert Sla(0.3).at_step(4) == Sla(0.3)
    assert get_loss("sla", **loss.parameters()) == loss
    assert (loss.lipschitz, loss.smoothness) == (Sla(0.5).lipschitz, Sla(0.5).smoothness)
    raw, y = np.linspace(-1.0, 1.0, 5), np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(loss.loss(y, raw), Sla(0.5).loss(y, raw))
    np.testing.assert_array_equal(loss.gradient(y, raw), Sla(0.5).gradient(y, raw))
    np.testing.assert_array_equal(loss.link(raw), Sla(0.5).link(raw))
    rank = StochasticRank("map", None, sigma="geometric(3, 1)")
    assert get_loss("stochastic_rank", **rank.parameters()) == rank


def test_the_cosine_is_that_of_the_core():
    turns = np.linspace(0.0, 1.0, 101)
    result = [cosine_turn(float(turn)) for turn in turns]
    np.testing.assert_allclose(result, np.cos(2 * np.pi * turns), atol=3e-16)


# --- in chains ---

TWO = (Y > 1).astype(int)
CLASSIFIER = {"n_estimators": 20, "random_state": 0, "n_jobs": 1}


def classify(width, **parameters):
    return SGLBClassifier(**CLASSIFIER | parameters, loss=Sla(width)).fit(X, TWO)


def rank(sigma, **parameters):
    return SGLBRanker(**FAST | parameters, loss=StochasticRank(sigma=sigma)).fit(X, Y, GROUP)


@pytest.mark.parametrize("fit", [classify, rank])
@pytest.mark.parametrize("shape", ["linear", "geometric", "cosine"])
def test_a_constant_schedule_gives_the_bits_of_the_number(fit, shape):
    assert trees(fit(f"{shape}(0.3, 0.3)")) == trees(fit(0.3))


def test_above_50000_rows_a_constant_schedule_differs_by_the_rounding_of_sums_alone():
    # Slopes of a number are evaluated where they are needed, with the bound of all widths.
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50_001, 2))
    y = (Z[:, 0] > 0).astype(int)
    fixed, moving = (
        SGLBClassifier(n_estimators=2, random_state=0, temperature=0.0, loss=Sla(width)).fit(Z, y)
        for width in (0.3, "cosine(.3, .3)")
    )
    np.testing.assert_allclose(moving.predict_raw(Z), fixed.predict_raw(Z), rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "step"), [(Sla("cosine(2, .2, 7)"), 3), (Sla("cosine(2, .2, 7)"), 9)]
)
def test_the_slopes_of_a_step_are_those_of_its_width(loss, step):
    target, raw = Target.of(TWO, classes=[0, 1]), X[None, :, 0].copy()
    gradient = np.empty_like(raw)
    _, refresh = loss.stored_slopes(target, raw, gradient, None)
    bound, _ = refresh(1, _core.Draws(0, step))
    wanted = Sla(loss.width.at(step)).gradient(target.values, raw[0])
    np.testing.assert_array_equal(gradient[0], wanted)
    assert bound == np.abs(wanted).max()


@pytest.mark.parametrize("kind", [StochasticRank, OwnMetric])
def test_a_ranking_gradient_is_that_of_the_sigma_of_its_step(kind):
    """The unit follows sigma: with unit 1 at the last sigma, it is (last / sigma)² at a step."""
    metric = "dcg" if kind is StochasticRank else (lambda ranked: float(ranked[:2].sum()))
    arguments = {"mu": 0.5, "unit": 1.0}
    moving = kind(metric, sigma="linear(3, 1, 4)", **arguments)
    for step, sigma in ((0, 3.0), (2, 2.0), (9, 1.0)):
        draws = _core.Draws(5, step)
        result, curvature = slopes(moving, TARGET, RAW, draws)
        wanted, at_sigma = slopes(kind(metric, sigma=sigma, **arguments), TARGET, RAW, draws)
        np.testing.assert_allclose(result, wanted * sigma**2, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(curvature, at_sigma * sigma**2, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_shards", [2, 3, 7])
def test_shards_of_a_loss_that_changes_give_the_same_model(n_shards):
    problem = Problem(StochasticRank(sigma="cosine(3, 1, 4)"))
    expected = problem.alone(LANGEVIN, RULES["few rows"], NEWTON)
    assert_same(problem.run(n_shards, LANGEVIN, RULES["few rows"], NEWTON)[0], expected)


@pytest.mark.parametrize("fit", [classify, rank])
def test_threads_do_not_change_a_bit(fit):
    assert trees(fit("cosine(1, .2)")) == trees(fit("cosine(1, .2)", n_jobs=2))


@pytest.mark.parametrize("fit", [classify, rank])
def test_files_pickles_and_clones_keep_the_schedule(fit, tmp_path):
    model = fit("cosine(1, .2)")
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    stated = dict(again.get_params()["loss"].schedules)
    assert stated == clone(model).get_params()["loss"].schedules == model.loss.schedules
    np.testing.assert_array_equal(again.predict(X_TEST), model.predict(X_TEST))
    (kept,) = again.loss_.schedules.values()
    assert kept == Shape("cosine", 1.0, 0.2, model.n_iter_)  # the length is that of the chain
    (kept,) = pickle.loads(pickle.dumps(model)).loss_.schedules.values()
    assert kept.n_steps == model.n_iter_


def test_a_chain_that_is_continued_goes_on_in_its_schedule():
    """The loss of a step depends on its number alone: 8 + 12 steps are 20 steps."""
    problem = Problem(StochasticRank(sigma="cosine(3, 1, 15)"))
    whole = problem.alone(LANGEVIN, RULES["few rows"], NEWTON, n_steps=20)
    trace = problem.alone(LANGEVIN, RULES["few rows"], NEWTON, n_steps=8)
    again = Trace.from_arrays(trace.bins, trace.offset, trace.arrays())
    rows = Shard.start(problem.data, problem.loss, again, newton=True)
    chain = Chain(rows, LANGEVIN, RULES["few rows"](), NEWTON, again, seed=7)
    assert_same(boost(chain, 12), whole)


def test_early_stopping_counts_from_the_end_of_a_schedule():
    evaluation = {"eval_set": [(X, Y)], "eval_group": [GROUP]}
    arguments = FAST | {"n_estimators": 60, "early_stopping_rounds": 1}
    loss = StochasticRank(sigma="cosine(2, 1, 40)")
    model = SGLBRanker(**arguments, loss=loss).fit(X, Y, GROUP, **evaluation)
    assert len(model.evals_result_["validation_0"]["ndcg"]) > 40
    with pytest.raises(ValueError, match=r"not stated; add .*: sigma='cosine\(2.0, 1.0, 300\)'"):
        SGLBRanker(**arguments, loss=StochasticRank(sigma="cosine(2, 1)")).fit(
            X, Y, GROUP, **evaluation
        )


def test_a_reported_loss_does_not_move_with_the_schedule():
    model = SGLBClassifier(**CLASSIFIER, loss=Sla("cosine(1, .1)"))
    model.fit(X, TWO, eval_set=[(X, TWO)])
    reported = model.evals_result_["validation_0"]["loss"]
    staged = [Sla(0.1).loss(TWO, raw).mean() for raw in model.staged_predict_raw(X)]
    np.testing.assert_allclose(reported, staged, rtol=1e-12)


@pytest.mark.parametrize("width", ["cosine(1, .1)", Shape("cosine", 1.0, 0.1)])
def test_parameters_without_schedules_say_so(width):
    with pytest.raises(ValueError, match="loss 'huber' must be a number; it has no schedule"):
        Huber(width)
