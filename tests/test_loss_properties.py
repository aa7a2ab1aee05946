"""What a loss states about itself: its start, link, name, parameters, domain and properties."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.metrics import mean_tweedie_deviance

from loss_cases import (
    CASES,
    LOG_LINK,
    every_loss,
    make_raw,
    make_targets,
    one_output,
    targets_for,
)
from sglb import elementary
from sglb.defaults import Size, auto_learning_rate
from sglb.losses import (
    Absolute,
    Cauchy,
    Gamma,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Savage,
    Sla,
    Softmax,
    Squared,
    Tweedie,
    Welsch,
    get_loss,
)
from sglb.target import Target

# --- properties ---


@every_loss
def test_a_row_wise_loss_computes_each_row_from_its_own_target_and_score(loss):
    rng = np.random.default_rng(12)
    y, raw = make_targets(loss, 37, rng), make_raw(loss, 37, rng)
    assert loss.row_wise
    assert loss.independent
    for method in (loss.loss, loss.gradient, loss.hessian):
        alone = np.concatenate([method(y[[row]], raw[[row]]) for row in range(37)])
        assert alone.tobytes() == method(y, raw).tobytes()


@every_loss
def test_a_loss_that_starts_at_zero_says_so(loss):
    y = np.array(targets_for(loss, 0.0, 1.0, 1.0, 1.0))
    always_zero = not loss.init(Target.of(y)).any()
    assert loss.starts_at_zero == always_zero


@every_loss
def test_a_regression_loss_that_predicts_the_mean_says_so(loss):
    if loss.task != "regression":
        assert not loss.predicts_mean
        return
    y, weight = np.array(targets_for(loss, 0.0, 1.0, 2.0, 6.0)), np.array([2.0, 1.0, 1.0, 0.5])
    loss = loss.adapt(Target.of(y, weight))
    mean = np.average(y, weights=weight)
    shape = 4 if loss.n_outputs == 1 else (4, loss.n_outputs)
    raw = np.full(shape, np.log(mean) if loss.name in LOG_LINK else mean)
    slope = np.abs(np.average(loss.gradient(y, raw), weights=weight, axis=0)).max()
    assert loss.predicts_mean == (slope < 1e-12)
    if loss.predicts_mean:
        np.testing.assert_allclose(loss.link(raw), mean)


@every_loss
def test_a_loss_with_one_output_per_class_needs_their_number(loss):
    if loss.one_output_per_class:
        assert type(loss)(5).n_outputs == 5
    else:
        assert type(loss)().n_outputs == 1


@dataclass(frozen=True)
class Slow(Squared):
    default_learning_rate = 0.0123


@pytest.mark.parametrize(("loss", "rate"), [(Slow(), 0.0123), (Sla(), 0.1)], ids=repr)
def test_auto_takes_the_learning_rate_that_a_loss_states(loss, rate):
    for n_rows in (100, 10**6):
        assert auto_learning_rate(Size(n_rows, float(n_rows)), 1000, loss, "gradient") == rate
    assert auto_learning_rate(Size(100, 100.0), 1000, Squared(), "gradient") != rate


# --- where a chain starts ---

EXACT_START = [
    c for c in CASES if c.name in ("squared", "logistic", "softmax", "savage", *LOG_LINK)
]


@pytest.mark.parametrize("loss", EXACT_START, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_start_is_the_constant_of_least_loss(loss, weighted):
    rng = np.random.default_rng(8)
    y = make_targets(loss, 301, rng)
    weight = rng.gamma(1.0, size=301) if weighted else None
    start = loss.init(Target.of(y, weight))
    raw = np.broadcast_to(
        start[0] if loss.n_outputs == 1 else start, make_raw(loss, 301, rng).shape
    )
    gradient = np.average(loss.gradient(y, raw), weights=weight, axis=0)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-14 * max(1.0, y.max()))
    mean = np.average(y, weights=weight)
    if loss.n_outputs == 1:
        assert loss.link(start)[0] == pytest.approx(mean)
    else:
        assert loss.link(start).sum() == pytest.approx(1.0)


@every_loss
def test_weights_are_multiplicities_for_the_start(loss):
    rng = np.random.default_rng(9)
    y = make_targets(loss, 200, rng)
    counts = rng.integers(0, 4, 200)
    repeated = loss.init(Target.of(np.repeat(y, counts)))
    np.testing.assert_allclose(
        loss.init(Target.of(y, counts.astype(float))), repeated, rtol=1e-12, atol=1e-14
    )
    assert repeated.shape == (loss.n_outputs,)


@every_loss
def test_the_start_is_finite_whatever_the_targets(loss):
    for y in (np.full(5, *targets_for(loss, 0.0)), np.ones(5), np.full(1, *targets_for(loss, 0.0))):
        for weight in (None, np.arange(1.0, len(y) + 1), 1e-9 * np.ones(len(y))):
            assert np.isfinite(loss.init(Target.of(y, weight))).all()


def test_an_absent_class_counts_as_half_a_row():
    assert Logistic().init(Target.of(np.ones(10))) == pytest.approx(np.log(20))
    assert Savage().init(Target.of(np.zeros(10), np.full(10, 7.0))) == pytest.approx(-np.log(20))
    start = Softmax(3).init(Target.of(np.array([0.0, 0.0, 1.0])))
    np.testing.assert_allclose(start, np.log(np.array([2, 1, 0.5]) / 3.5))
    assert Poisson().init(Target.of(np.zeros(10))) == pytest.approx(np.log(1 / 20))


@pytest.mark.parametrize("loss", [Absolute(), Huber(), Cauchy(), Welsch(), Quantile()], ids=repr)
def test_robust_losses_start_at_the_weighted_median(loss):
    y = np.array([5.0, 1.0, 2.0, 1000.0])
    assert loss.init(Target.of(y)) == [3.5]
    assert loss.init(Target.of(y, np.array([1.0, 1.0, 3.0, 1.0]))) == [2.0]
    assert loss.init(Target.of(y, np.array([0.0, 0.0, 1.0, 0.0]))) == [2.0]


@pytest.mark.parametrize("level", [0.01, 0.25, 0.5, 0.9, 0.99])
def test_the_quantile_loss_starts_near_its_minimum(level):
    y = np.random.default_rng(10).normal(size=2000)
    loss = Quantile(level, width=1e-3)
    start = loss.init(Target.of(y))[0]
    assert start == np.quantile(y, level, method="averaged_inverted_cdf")
    assert abs(loss.gradient(y, np.full(2000, start)).mean()) < 1e-3


def test_sla_starts_at_zero():
    assert Sla().init(Target.of(np.ones(5))) == [0.0]


# --- links ---


@one_output
def test_a_link_grows_with_the_score(loss):
    z = np.linspace(-30, 30, 1001)
    assert (np.diff(loss.link(z)) >= 0.0).all()


@every_loss
def test_links_of_classes_are_probabilities_and_of_residual_losses_the_score_itself(loss):
    raw = make_raw(loss, 100, np.random.default_rng(11), 3.0)
    prediction = loss.link(raw)
    assert prediction.shape == raw.shape
    if loss.task == "multiclass":
        np.testing.assert_allclose(prediction.sum(axis=1), 1.0)
        assert (prediction.argmax(axis=1) == raw.argmax(axis=1)).all()
    elif loss.task == "binary":
        np.testing.assert_allclose(prediction + loss.link(-raw), 1.0)
        assert ((prediction > 0.5) == (raw > 0)).all()
    elif loss.name not in LOG_LINK:
        assert (prediction == (raw if loss.n_outputs == 1 else np.sort(raw, axis=1))).all()


def test_a_newton_step_of_an_amount_never_goes_beyond_the_best_shift_of_a_leaf():
    """The kernel's curvature: at the exact one a gamma leaf of small y steps hundreds too far."""
    rng = np.random.default_rng(13)
    for loss in (Gamma(), Tweedie(1.001), Tweedie(1.5), Tweedie(1.999)):
        for scale in (1e-9, 1e-3, 0.5, 1.0, 2.0, 1e3, 1e9):
            y, raw = scale * rng.gamma(0.7, size=50), rng.normal(size=50)
            gradient, curvature = loss.derivatives(y, raw)
            power = getattr(loss, "power", 2.0)
            falling = (y * np.exp((1.0 - power) * raw)).sum()
            best = np.log(falling / np.exp((2.0 - power) * raw).sum())
            step = -gradient.sum() / curvature.sum()
            assert step == pytest.approx(2.0 * np.tanh(0.5 * best))
            shifted = raw + best
            exact = loss.hessian(y, shifted).sum()
            assert loss.derivatives(y, shifted)[1].sum() == pytest.approx(exact)


def test_the_limits_of_tweedie_are_poisson_and_gamma():
    rng = np.random.default_rng(14)
    y, raw = rng.gamma(0.7, size=100), rng.normal(size=100)
    for power, limit in ((1.0 + 1e-7, Poisson()), (2.0 - 1e-7, Gamma())):
        loss = Tweedie(power)
        np.testing.assert_allclose(loss.gradient(y, raw), limit.gradient(y, raw), atol=1e-5)
        np.testing.assert_allclose(loss.hessian(y, raw), limit.hessian(y, raw), atol=1e-5)
        np.testing.assert_allclose(loss.loss(y, raw), limit.loss(y, raw), atol=1e-5)


def test_deviances_are_half_those_of_scikit_learn():
    rng = np.random.default_rng(15)
    y, raw = rng.gamma(0.7, size=100), rng.normal(size=100)
    for loss, power in ((Gamma(), 2.0), (Poisson(), 1.0), (Tweedie(), 1.5), (Tweedie(1.2), 1.2)):
        wanted = 0.5 * mean_tweedie_deviance(y, np.exp(raw), power=power)
        assert loss.loss(y, raw).mean() == pytest.approx(wanted, rel=1e-12)


def test_amounts_are_finite_over_the_range_of_doubles():
    y = np.array([5e-324, 1e-300, 1.0, 1e200])
    for loss in (Gamma(), Tweedie(1.2)):
        for raw in (-700.0, 0.0, 700.0):
            for method in (loss.loss, loss.gradient, loss.hessian):
                assert np.isfinite(method(y, np.full(4, raw))).all()
    low, high = Gamma().link(np.array([-1e300, 1e300]))
    assert 0.0 < low < 1e-300
    assert 1e304 < high < np.inf


def test_the_gradient_of_log_losses_is_the_link_minus_the_target():
    z = np.linspace(-20, 40, 601)
    for loss, y in ((Logistic(), np.ones(601)), (Poisson(), np.full(601, 3.0))):
        np.testing.assert_allclose(loss.gradient(y, z), loss.link(z) - y, rtol=1e-12, atol=1e-15)


# --- names and parameters ---


@every_loss
def test_name_and_parameters_rebuild_a_loss(loss):
    assert get_loss(loss.name, **loss.parameters()) == loss
    assert get_loss(loss) is loss
    numbers = [np.atleast_1d(value).tolist() for value in loss.parameters().values()]
    assert all(type(number) is float for values in numbers for number in values)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown loss 'hinge'; known are absolute, cauchy, .*"):
        get_loss("hinge")


def test_softmax_needs_the_number_of_classes_and_makes_do_with_one():
    with pytest.raises(ValueError, match="n_classes"):
        get_loss("softmax")
    assert get_loss("softmax", n_classes=1) == Softmax(2)
    assert get_loss("logistic", n_classes=2) == Logistic()


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-200])
def test_parameters_out_of_range_are_rejected(value):
    for name, parameter in (
        ("sla", "width"),
        ("absolute", "width"),
        ("quantile", "width"),
        ("quantile", "level"),
        ("huber", "delta"),
        ("cauchy", "scale"),
        ("welsch", "scale"),
    ):
        if parameter != "level" or not 0.0 < value < 1.0:
            with pytest.raises(ValueError, match=f"{parameter} of loss '{name}' must be"):
                get_loss(name, **{parameter: value})
    with pytest.raises(ValueError, match="power of loss 'tweedie' must be"):
        get_loss("tweedie", power=value)
    with pytest.raises(ValueError, match="n_classes of loss 'softmax'"):
        Softmax(1)


@every_loss
def test_targets_outside_of_the_domain_are_rejected_with_their_row(loss):
    good = np.array(targets_for(loss, 0.0, 1.0, 1.0))
    loss.check_target(Target.of(good))
    bad = [np.nan, np.inf]
    if loss.task != "regression":
        bad += [0.5, -1.0, 7.0]
    elif loss.name in LOG_LINK:
        bad += [-1.0]
    if loss.name == "gamma":
        bad += [0.0]
    for value in bad:
        with pytest.raises(ValueError, match=f"loss '{loss.name}' needs .*, row 1 has {value}"):
            loss.check_target(Target.of(np.array([good[0], value, 1.0])))


def test_softmax_starts_from_the_same_bits_on_every_processor():
    """The core's logarithm: NumPy's own, for arrays, is another on some processors."""
    counts = np.random.default_rng(6).integers(1, 200, 3000)
    start = Softmax(len(counts)).init(Target.of(np.repeat(np.arange(3000.0), counts)))
    shares = counts / counts.sum()
    assert start.tolist() == [elementary.log(share) for share in shares.tolist()]
    np.testing.assert_allclose(start, np.log(shares), rtol=1e-15)
