"""Parameters: what is allowed, what "auto" stands for, what is refused before training."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sglb import SGLBClassifier, _core
from sglb.defaults import (
    Size,
    auto_learning_rate,
    auto_shrink_rate,
    structure_outputs,
    structure_rows,
)
from sglb.losses import Softmax, get_loss
from sglb.samplers import Langevin, Move, Plain, Stochastic
from sglb.schedules import Shape
from sglb.settings import RULES, check_parameters, draw_seed, n_threads, resolve
from sglb.transition import Transition

LOGISTIC, SLA, SQUARED = get_loss("logistic"), get_loss("sla"), get_loss("squared")
DEFAULTS = SGLBClassifier().get_params()


def settings(loss=LOGISTIC, n_rows=1000, total_weight=1000.0, square=1.0, unit=1.0, **changes):
    parameters = DEFAULTS | {"random_state": 0} | changes
    check_parameters(parameters)
    return resolve(parameters, loss, Size(n_rows, total_weight, unit, square))


def test_every_parameter_has_a_rule_but_the_seed_which_scikit_learn_checks():
    assert set(DEFAULTS) - set(RULES) == {"random_state"}


def test_defaults_are_allowed():
    check_parameters(DEFAULTS)


WRONG = {
    "loss": [None],
    "n_estimators": [0, -1, 1.5, "10", True, None],
    "learning_rate": [0, -0.1, 10**400, math.nan, math.inf, "fast", None, True],
    "max_depth": [0, 17, 2.0, None],
    "max_bins": [1, 256, "64"],
    "sampler": ["hmc", None, 3],
    "temperature": [-1e-9, "hot", math.inf],
    "shrink_rate": [-1, "none", math.nan],
    "friction": [0, 1.5, "low"],
    "structure_noise": [-1, "auto"],
    "subsample": [0.0, 1.1, -0.5, "auto"],
    "structure_sample": [0, 1, 0.0, 1.5, -3, "all"],
    "random_strength": [-1, "much"],
    "leaf_method": ["Newton", None],
    "leaf_steps": [0, 101, 2.0, "many"],
    "l2_regularization": [-1, "none"],
    "init": [0, "zeros", "auto"],
    "categorical_features": ["all", [0.5], [0, "a"], [[0]], 3, {"a"}],
    "class_weight": ["even", [1, 2]],
    "early_stopping_rounds": [0, "10", 1.0],
    "n_jobs": [0, -2, 1.0],
    "verbose": [-1, "yes"],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in WRONG.items() for v in vs])
def test_a_wrong_value_is_refused_with_name_value_and_what_is_allowed(name, value):
    with pytest.raises(ValueError, match=name) as error:
        check_parameters({name: value})
    assert f"{name}={value!r} is not allowed; use " in str(error.value)
    assert RULES[name].allowed in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", np.int64(10)),
        ("learning_rate", np.float32(0.5)),
        ("learning_rate", 1),
        ("temperature", 0),
        ("structure_sample", np.float64(0.5)),
        ("structure_sample", 100),
        ("structure_sample", 1.0),
        ("sampler", Plain(0.1)),
        ("class_weight", {"a": 1}),
        ("verbose", True),
        ("n_jobs", -1),
    ],
)
def test_a_right_value_of_any_number_type_is_allowed(name, value):
    check_parameters({name: value})


@pytest.mark.parametrize(
    ("name", "leaf_method"),
    [
        ("logistic", "newton"),
        ("squared", "newton"),
        ("poisson", "newton"),
        ("gamma", "newton"),
        ("tweedie", "newton"),
        ("huber", "gradient"),
        ("absolute", "gradient"),
        ("quantile", "gradient"),
        ("sla", "gradient"),
        ("savage", "gradient"),
        ("cauchy", "gradient"),
        ("welsch", "gradient"),
    ],
)
def test_leaves_are_newton_for_convex_losses_whose_curvature_does_not_vanish(name, leaf_method):
    chosen = settings(get_loss(name))
    assert chosen.leaves.method == leaf_method
    assert chosen.leaves.l2 == (3.0 if leaf_method == "newton" else 0.0)


def test_newton_leaves_are_refused_for_a_loss_without_a_fitting_hessian():
    with pytest.raises(
        ValueError, match=r"leaf_method='newton' needs a loss.*'sla' does not have one"
    ):
        settings(SLA, leaf_method="newton")


def rate(count, steps, loss, leaf_method, curvature=1.0):
    size = Size(int(count), count, curvature=curvature)
    return auto_learning_rate(size, steps, loss, leaf_method)


def test_the_learning_rate_grows_with_rows_and_falls_with_steps():
    newton = rate(10_000, 1000, LOGISTIC, "newton")
    assert newton == pytest.approx(math.exp(0.246 * math.log(10_000) - 5.127))
    assert rate(100_000, 1000, LOGISTIC, "newton") > newton
    assert rate(10_000, 2000, LOGISTIC, "newton") < newton
    assert rate(10_000, 1000, SLA, "gradient") == 0.1


def test_a_gradient_step_is_divided_by_the_curvature_at_the_start():
    newton = rate(10_000, 1000, LOGISTIC, "newton")
    assert rate(10_000, 1000, LOGISTIC, "gradient", 0.2) == pytest.approx(5 * newton)
    # ... but by no less than a tenth of the largest curvature, 1/4.
    assert rate(10_000, 1000, LOGISTIC, "gradient", 0.001) == pytest.approx(40 * newton)


@pytest.mark.parametrize("count", [1e-9, 1, 1e12])
@pytest.mark.parametrize("steps", [1, 10, 10**7])
def test_the_learning_rate_stays_within_reason(count, steps):
    for leaf_method in ("gradient", "newton"):
        assert 0.005 <= rate(count, steps, LOGISTIC, leaf_method) <= 0.5


def test_noise_and_shrinking_are_larger_for_losses_with_many_optima():
    assert (settings(LOGISTIC).temperature, settings(SLA).temperature) == (1e-5, 1e-3)
    assert auto_shrink_rate(Size(1000, 1000.0), LOGISTIC, "newton") == 1e-5
    assert auto_shrink_rate(Size(1000, 1000.0), SLA, "gradient") == 1e-3


def test_the_temperature_of_a_regression_follows_the_scale_of_the_target():
    assert settings(SQUARED, square=1e-8).temperature == pytest.approx(1e-14)
    assert settings(get_loss("cauchy"), square=4.0).temperature == pytest.approx(4e-3)
    assert settings(LOGISTIC, square=1e-8).temperature == 1e-5
    assert settings(SQUARED, square=1e-8, temperature=1.0).temperature == 1.0


def test_weights_normalised_to_any_sum_mean_the_same():
    single = settings(total_weight=1000.0)
    other = settings(total_weight=1.0, unit=1e-3)
    assert other.learning_rate == pytest.approx(single.learning_rate)
    assert other.temperature == pytest.approx(1e-3 * single.temperature)
    assert other.leaves.l2 == pytest.approx(1e-3 * single.leaves.l2)


def test_auto_parameters_follow_the_sum_of_weights_not_the_number_of_rows():
    assert (
        settings(n_rows=10, total_weight=500.0, n_estimators=1000).learning_rate
        == settings(n_rows=500, total_weight=500.0, n_estimators=1000).learning_rate
    )


def test_names_become_samplers_with_the_numbers_given():
    rates = {"learning_rate": 0.2}
    langevin = {"sampler": "langevin", "temperature": 0.5, "shrink_rate": 0.25, "subsample": 0.5}
    assert settings(**rates, **langevin).sampler == Langevin(0.2, 0.5, 0.25, 0.5)
    assert settings(**rates, sampler="plain").sampler == Plain(0.2)
    assert settings(**rates, sampler="stochastic", subsample=0.5).sampler == Stochastic(0.2, 0.5)
    assert settings(**rates).sampler == Langevin(0.2, 1e-5, 1e-5, 1.0)


def test_the_numbers_of_a_sampler_object_are_the_fitted_ones():
    chosen = settings(sampler=Langevin(0.2, 0.5, 0.25))
    assert (chosen.learning_rate, chosen.temperature, chosen.shrink_rate) == (0.2, 0.5, 0.25)


def test_the_numbers_of_a_users_sampler_follow_from_its_first_move():
    class Cooling:
        def move(self, step):
            return Move(0.1, noise=2.0 / (1 + step), transition=Transition.shrink(0.99))

    chosen = settings(sampler=Cooling())
    assert chosen.temperature == pytest.approx(0.2)  # sigma^2 eps / 2
    assert chosen.shrink_rate == pytest.approx(0.1)


@pytest.mark.parametrize(
    "changes",
    [
        {"sampler": Plain(0.1), "learning_rate": 0.2},
        {"sampler": Langevin(0.1, 1.0, 0.1), "temperature": 1.0},
        {"sampler": Plain(0.1), "subsample": 0.5},
        {"sampler": "plain", "temperature": 1.0},
        {"sampler": "plain", "subsample": 0.5},
        {"sampler": "stochastic", "shrink_rate": 0.1},
    ],
)
def test_parameters_without_effect_are_refused(changes):
    name = next(name for name in changes if name != "sampler")
    with pytest.raises(ValueError, match=f"{name}=.* has no effect"):
        settings(**changes)


@pytest.mark.parametrize(
    ("loss", "changes"),
    [
        (SQUARED, {"leaf_method": "gradient", "learning_rate": 2.0}),
        (SQUARED, {"leaf_method": "gradient", "learning_rate": 1.5, "shrink_rate": 0.5}),
        (LOGISTIC, {"leaf_method": "newton", "learning_rate": 2.0}),
        (SLA, {"learning_rate": 0.5, "shrink_rate": 2.0}),
    ],
)
def test_parameters_that_make_the_chain_diverge_are_refused(loss, changes):
    with pytest.raises(ValueError, match=r"diverge|product must be below 1"):
        settings(loss, **changes)


@pytest.mark.parametrize(
    ("loss", "changes"),
    [
        (SQUARED, {"leaf_method": "gradient", "learning_rate": 1.9}),
        (LOGISTIC, {"leaf_method": "gradient", "learning_rate": 4.0}),
        (SLA, {"learning_rate": 1.0, "shrink_rate": 0.5}),
    ],
)
def test_bold_parameters_of_a_stable_chain_are_allowed(loss, changes):
    settings(loss, **changes)


@pytest.mark.parametrize(
    ("n_rows", "sample", "rows"),
    [
        (10, "auto", 10),
        (50_000, "auto", 50_000),
        (50_001, "auto", 25_000),
        (100_000, "auto", 25_298),
        (1_000_000, "auto", 50_000),
        (10_000_000, "auto", 200_000),
        (10, 0.5, 5),
        (10, 1.0, 10),
        (10, 0.001, 1),
        (10, 3, 3),
        (10, 30, 10),
    ],
)
def test_structure_rows_are_all_of_few_and_some_of_many(n_rows, sample, rows):
    assert structure_rows(n_rows, sample) == rows


@pytest.mark.parametrize(
    ("loss", "n_rows", "shape", "depth"),
    [
        (LOGISTIC, 10**6, {}, 6),
        (SLA, 10_000, {"depth": 0.5}, 6),
        (get_loss("softmax", n_classes=3), 100, {}, 8),
        (SQUARED, 999, {}, 6),
        (SQUARED, 1000, {}, 8),
        (get_loss("quantile"), 1000, {"flatness": 1.0}, 6),
        (get_loss("welsch"), 1000, {"depth": 1.0}, 4),
    ],
)
def test_depth_follows_from_the_task_the_rows_and_the_shape_of_the_loss(loss, n_rows, shape, depth):
    size = Size(n_rows, float(n_rows), **shape)
    assert resolve(DEFAULTS, loss, size).max_depth == depth


def test_the_length_of_a_chain_is_searched_where_few_rows_could_be_overfitted():
    assert settings().search_length
    assert settings(n_rows=10_000, total_weight=10_000.0).search_length
    assert not settings(n_rows=10_001, total_weight=10_001.0).search_length
    assert settings(n_rows=10_000, total_weight=500_000.0).search_length
    assert not settings(n_rows=49, total_weight=49.0).search_length
    for message in (
        {"n_estimators": 1000},
        {"early_stopping_rounds": 50},
        {"temperature": 1.0},
        {"sampler": "annealed"},
        {"sampler": Langevin(0.1, 1e-3, 1e-3)},
    ):
        assert not settings(**message).search_length
    assert not settings(SLA).search_length
    assert settings().n_steps == settings(temperature=1.0).n_steps == 1000


def test_an_unwatched_chain_of_two_classes_takes_smaller_steps():
    unwatched = settings(n_estimators=1000).learning_rate
    assert unwatched == pytest.approx(math.exp(0.408 * math.log(1000) - 7.299))
    assert unwatched < settings(early_stopping_rounds=50).learning_rate
    assert settings().learning_rate == settings(early_stopping_rounds=50).learning_rate
    many = {"n_rows": 10**6, "total_weight": 1e6}
    assert (
        settings(n_estimators=1000, **many).learning_rate
        == settings(early_stopping_rounds=50, **many).learning_rate
    )
    numbers = [settings(SQUARED, n_estimators=1000), settings(SQUARED, early_stopping_rounds=50)]
    assert numbers[0].learning_rate == numbers[1].learning_rate


def test_a_multimodal_loss_of_numbers_cools_down_from_the_depth_of_its_valleys():
    size = Size(1000, 1000.0, curvature=2.0, depth=3.0)
    sampler = resolve(DEFAULTS, get_loss("welsch"), size).sampler
    assert sampler.temperature == Shape("geometric", 3.0, 1e-4 * 3.0, 800)
    assert sampler.shrink_rate == Shape("geometric", 0.3 * 2.0, 1e-4 * (0.3 * 2.0), 800)
    fixed = resolve(DEFAULTS | {"temperature": 0.1}, get_loss("welsch"), size).sampler
    assert fixed.temperature == 0.1
    named = resolve(DEFAULTS | {"sampler": "annealed", "temperature": 0.1}, LOGISTIC, size).sampler
    assert named.temperature == Shape("geometric", 0.1, 1e-4 * 0.1, 800)


def test_a_loss_that_gives_up_on_most_rows_has_the_steps_of_its_curvature():
    # Its gradients grow as residuals shrink: more rows come near.
    flat = Size(1000, 1000.0, square=0.04, curvature=0.2, spread=5.0, tail=5.0, flatness=2.0)
    welsch = get_loss("welsch")
    valleys = resolve(DEFAULTS, welsch, replace(flat, depth=0.3)).learning_rate
    ordinary = resolve(DEFAULTS, welsch, replace(flat, depth=0.3, flatness=0.3)).learning_rate
    assert valleys == ordinary > resolve(DEFAULTS, welsch, flat).learning_rate


@pytest.mark.parametrize(
    ("loss", "n_rows", "unit", "l2"),
    [
        (LOGISTIC, 100, 1.0, 3.0),
        (SQUARED, 999, 1.0, 1.0),
        (SQUARED, 999, 0.5, 0.5),
        (SQUARED, 1000, 1.0, 3.0),
        (get_loss("huber"), 100, 1.0, 0.0),
    ],
)
def test_l2_follows_from_the_leaves_and_the_number_of_numbers(loss, n_rows, unit, l2):
    assert settings(loss, n_rows, n_rows * unit, unit=unit).leaves.l2 == l2


@pytest.mark.parametrize(
    ("loss", "n_rows", "changes", "steps"),
    [
        (LOGISTIC, 299_999, {}, 1),
        (LOGISTIC, 300_000, {}, 3),
        (LOGISTIC, 300_000, {"leaf_steps": 1}, 1),
        (LOGISTIC, 100, {"leaf_steps": 7}, 7),
        (LOGISTIC, 10**6, {"leaf_method": "gradient"}, 1),
        (LOGISTIC, 10**6, {"sampler": "stochastic", "subsample": 0.5}, 1),
        (get_loss("softmax", n_classes=3), 10**6, {}, 1),
        (SLA, 10**6, {}, 1),
        (SQUARED, 10**6, {}, 1),
    ],
)
def test_leaves_of_many_rows_take_three_steps(loss, n_rows, changes, steps):
    size = Size(n_rows, float(n_rows))
    assert resolve(DEFAULTS | changes, loss, size).leaves.steps == steps


@pytest.mark.parametrize(
    ("loss", "bins"),
    [(LOGISTIC, 128), (SLA, 128), (get_loss("softmax", n_classes=3), 64), (SQUARED, 254)],
)
def test_bins_follow_from_the_task(loss, bins):
    assert resolve(DEFAULTS, loss, Size(1000, 1000.0)).max_bins == bins


def test_structures_of_long_chains_have_more_rows():
    rows = {steps: structure_rows(65_000, n_steps=steps) for steps in (1, 100, 1000, 10**9)}
    assert rows == {1: 25_000, 100: 25_000, 1000: 33_338, 10**9: 65_000}


def test_structures_of_several_outputs_have_twice_the_rows():
    for n_rows, rows in ((50_000, 50_000), (100_000, 50_596), (1_000_000, 100_000)):
        assert structure_rows(n_rows, several=True) == rows
    for n_rows, rows in ((100_000, 100_000), (100_001, 67_472), (1_000_000, 133_352)):
        assert structure_rows(n_rows, n_steps=1000, several=True) == rows


@pytest.mark.parametrize(
    ("n_outputs", "sample", "outputs"),
    [
        (1, "auto", 1),
        (3, "auto", 3),
        (7, "auto", 3),
        (10, "auto", 4),
        (100, "auto", 10),
        (7, 1.0, 7),
        (7, 500, 7),
    ],
)
def test_structures_of_many_outputs_are_searched_on_few(n_outputs, sample, outputs):
    assert structure_outputs(n_outputs, sample) == outputs


def test_threads_are_all_cores_unless_told():
    assert n_threads(None) == n_threads(-1) == _core.available_threads() >= 1
    assert n_threads(3) == 3


def test_a_seed_has_64_bits_and_repeats_for_the_same_state():
    seeds = {draw_seed(state) for state in range(50)}
    assert len(seeds) == 50
    assert max(seeds) > 2**60
    assert draw_seed(7) == draw_seed(np.random.RandomState(7))
    assert draw_seed(None) != draw_seed(None)
    state = np.random.RandomState(7)
    assert draw_seed(state) != draw_seed(state)


@pytest.mark.parametrize(
    ("sampler", "culprit"),
    [
        (Plain(-0.1), "learning_rate must be above 0, not -0.1"),
        (Plain(0.0), "learning_rate must be above 0"),
        (Plain(math.nan), "learning_rate must be above 0"),
        (Stochastic(0.1, subsample=0.0), r"subsample must be in \(0, 1\]"),
        (Stochastic(0.1, subsample=2.0), r"subsample must be in \(0, 1\]"),
        (Langevin(0.1, -1.0, 0.0), "temperature must be at least 0"),
        (Langevin(0.0, 1.0, 0.0), "learning_rate must be above 0"),
        (Langevin(0.1, 1.0, -5.0), "shrink must be at most 1"),
    ],
    ids=repr,
)
def test_a_sampler_that_cannot_move_is_refused_by_what_is_wrong(sampler, culprit):
    with pytest.raises(ValueError, match=culprit):
        SGLBClassifier(sampler=sampler).fit([[0.0], [1.0]], [0, 1])


def test_weights_that_leave_no_row_are_refused():
    model = SGLBClassifier(class_weight={0: 0.0, 1: 1.0})
    with pytest.raises(ValueError, match="sample_weight times class_weight is zero in every row"):
        model.fit([[0.0], [1.0]], [0, 1], sample_weight=[1.0, 0.0])


def test_split_scores_are_noisy_for_two_classes_where_the_length_is_searched():
    assert settings().random_strength == 1.0
    assert settings(random_strength=0.25).random_strength == 0.25
    quiet = [
        {"n_estimators": 100},
        {"n_rows": 10_001, "total_weight": 10_001.0},
        {"sampler": "plain"},
        {"temperature": 0},
        {"loss": SQUARED},
        {"loss": Softmax(3)},
    ]
    for changes in quiet:
        assert settings(**changes).random_strength == 0.0
