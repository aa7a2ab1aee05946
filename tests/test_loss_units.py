"""Losses in the unit of y: a target that is shifted or scaled gives the model shifted or scaled,
however the loss is specified.
"""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from own_losses import Logistic, Normal, Poisson, Squared, Truncated
from sglb import SGLBRegressor, losses
from sglb.losses import LOSSES
from sglb.losses.constants import best_constant
from sglb.losses.minimisers import quantile, spread
from sglb.target import Target

X, DISEASE = load_diabetes(return_X_y=True)
Y = np.round(DISEASE)  # whole numbers, so that shifts and powers of two are exact
SHIFT_INVARIANT = sorted(
    name
    for name, kind in LOSSES.items()
    if kind.task == "regression" and name not in ("poisson", "gamma", "tweedie")
)


class LogCosh:
    """A user's loss with a length of its own."""

    def __init__(self, length=20.0):
        self.length = length

    def loss(self, y, raw):
        t = (raw - y) / self.length
        return self.length**2 * (np.logaddexp(t, -t) - np.log(2.0))

    def gradient(self, y, raw):
        return self.length * np.tanh((raw - y) / self.length)


# A loss, and the loss that is the same for a target `factor` times as large.
CASES = {
    **{f"'{name}'": lambda factor, name=name: name for name in SHIFT_INVARIANT},
    **{f"losses.{name}": lambda factor, name=name: LOSSES[name]() for name in SHIFT_INVARIANT},
    "Huber(absolute)": lambda factor: losses.Huber(40.0 * factor, absolute=True),
    "Quantile(.9, absolute)": lambda factor: losses.Quantile(0.9, 0.5 * factor, absolute=True),
    "a user's squared loss": lambda factor: Squared(),
    "a user's log cosh": lambda factor: LogCosh(20.0 * factor),
    "a user's truncated square": lambda factor: Truncated(80.0 * factor),
}
every_case = pytest.mark.parametrize("case", CASES)


def prediction(loss, y, **parameters):
    parameters = {"n_estimators": 30, "max_depth": 4, "random_state": 0, "n_jobs": 1} | parameters
    return SGLBRegressor(loss=loss, **parameters).fit(X, y).predict(X)


@every_case
@pytest.mark.parametrize("shift", [-1024.0, 2.0**20])
def test_a_shifted_target_gives_the_shifted_model(case, shift):
    wanted = prediction(CASES[case](1.0), Y)
    actual = prediction(CASES[case](1.0), Y + shift) - shift
    # Scores near 2^20 have fewer digits, after which a split may turn out otherwise.
    assert np.median(np.abs(actual - wanted)) < 1e-6 * spread(Target.of(Y))


@every_case
@pytest.mark.parametrize("factor", [2.0**-10, 2.0**20])
def test_a_scaled_target_gives_the_scaled_model(case, factor):
    wanted = prediction(CASES[case](1.0), Y)
    actual = prediction(CASES[case](factor), Y * factor) / factor
    assert np.median(np.abs(actual - wanted)) < 1e-6 * spread(Target.of(Y))


@pytest.mark.parametrize(
    "loss", ["gamma", "tweedie", losses.Tweedie(1.1), losses.Tweedie(1.9)], ids=repr
)
@pytest.mark.parametrize("factor", [2.0**-20, 1e-3, 2.0**10])
def test_a_loss_of_amounts_gives_the_scaled_model_of_a_scaled_target(loss, factor):
    wanted, actual = prediction(loss, Y), prediction(loss, Y * factor) / factor
    # Logarithms of other numbers round otherwise, after which a split may turn out otherwise.
    assert np.median(np.abs(actual / wanted - 1.0)) < 1e-6


@pytest.mark.parametrize("name", SHIFT_INVARIANT)
def test_a_loss_by_name_and_as_an_object_is_the_same_loss(name):
    np.testing.assert_array_equal(prediction(name, Y), prediction(LOSSES[name](), Y))


def test_a_width_that_is_absolute_is_taken_as_it_is():
    model = SGLBRegressor(loss=losses.Huber(3.0, absolute=True), n_estimators=2).fit(X, Y)
    assert model.loss_.delta == 3.0
    model = SGLBRegressor(loss=losses.Huber(3.0), n_estimators=2).fit(X, Y)
    assert model.loss_.delta == pytest.approx(3.0 * spread(Target.of(Y)))
    assert model.loss_ == losses.Huber(model.loss_.delta, absolute=True)


@pytest.mark.parametrize("shift", [0.0, 100.0, 1000.0])
def test_a_users_squared_loss_far_from_zero_is_as_good_as_the_built_in_one(shift):
    x = np.random.default_rng(0).normal(size=(1000, 3))
    y = x[:, 0] + shift
    model = SGLBRegressor(loss=Squared(), n_estimators=200, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.999


def test_the_log_cosh_of_the_readme_learns_diabetes():
    model = SGLBRegressor(loss=LogCosh(1.0), random_state=0).fit(X[:300], DISEASE[:300])
    assert model.score(X[300:], DISEASE[300:]) > 0.3


# ------------------------------------------------------------------------------ constants


class Wrong01:
    """The smoothed 0-1 loss: its best constant is at infinity."""

    def loss(self, y, raw):
        return 1.0 / (1.0 + np.exp((2.0 * y - 1.0) * raw))

    def gradient(self, y, raw):
        s = self.loss(y, raw)
        return -(2.0 * y - 1.0) * s * (1.0 - s)


COUNTS = np.array([0.0, 3.0, 5.0, 4000.0])
LABELS = np.array([0.0, 0.0, 0.0, 1.0])
WEIGHT = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(
    ("user", "y", "n_classes", "wanted"),
    [
        (Squared(), COUNTS, None, lambda w: [np.average(COUNTS, weights=w)]),
        (Poisson(), COUNTS, None, lambda w: [np.log(np.average(COUNTS, weights=w))]),
        (Logistic(), LABELS, 2, lambda w: [np.log(1 / (1 / np.average(LABELS, weights=w) - 1))]),
        (Wrong01(), LABELS, 2, lambda w: [0.0]),
    ],
    ids=["squared", "counts", "odds", "at infinity"],
)
def test_the_best_constant_of_a_users_loss_is_found(user, y, n_classes, wanted, weight):
    actual = losses.UserLoss(user, n_classes).init(Target.of(y, weight))
    np.testing.assert_allclose(actual, wanted(weight), rtol=1e-9, atol=1e-9)


def test_the_best_constants_of_several_outputs_are_found():
    y = 1000.0 + np.random.default_rng(0).normal(0.0, 3.0, 500)
    actual = losses.UserLoss(Normal()).init(Target.of(y))
    np.testing.assert_allclose(actual, [y.mean(), np.log(y.std())], rtol=1e-6)


def test_the_best_constant_of_two_valleys_is_the_bottom_of_the_deeper_one():
    y = np.concatenate([np.full(40, -500.0), np.full(60, 700.0)])
    assert best_constant(losses.UserLoss(Truncated(100.0)), Target.of(y)) == pytest.approx([700.0])


# ------------------------------------------------------------------------------ quantiles


@pytest.mark.parametrize("level", [0.01, 0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(5.0, 1e-3, 20_000),
        lambda rng: rng.standard_cauchy(20_000),
        lambda rng: rng.exponential(1e6, 20_000),
        lambda rng: np.concatenate([rng.normal(0, 1, 10_000), rng.normal(50, 5, 10_000)]),
        lambda rng: rng.uniform(-1, 1, 20_000),
    ],
    ids=["normal", "cauchy", "exponential", "two modes", "uniform"],
)
def test_smoothing_moves_the_level_of_a_quantile_by_less_than_a_hundredth(draw, level):
    y = draw(np.random.default_rng(0))
    loss = losses.Quantile(level).adapt(Target.of(y))
    moved = best_constant(loss, Target.of(y))[0]
    assert abs(np.mean(y <= moved) - level) < 0.01
    assert abs(np.mean(y <= quantile(Target.of(y), level)) - level) < 1e-3  # the oracle itself


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("noise", [0.3, 0.03])
def test_a_quantile_has_its_level_on_the_training_rows_at_any_scale_and_noise(scale, noise):
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (3000, 2))
    y = scale * (np.sin(x[:, 0]) + noise * rng.normal(size=3000))
    model = SGLBRegressor(loss=losses.Quantile(0.9), n_estimators=300, max_depth=3, random_state=0)
    # A standard error of .0055; trees cannot tell a row from its neighbours at this depth.
    assert abs(np.mean(y <= model.fit(x, y).predict(x)) - 0.9) < 0.02


def test_the_power_of_tweedie_is_a_parameter():
    flat = SGLBRegressor(loss="tweedie", tweedie_power=1.2, n_estimators=20, random_state=0)
    as_object = SGLBRegressor(loss=losses.Tweedie(1.2), n_estimators=20, random_state=0)
    np.testing.assert_array_equal(flat.fit(X, Y).predict(X), as_object.fit(X, Y).predict(X))
    assert flat.loss_ == losses.Tweedie(1.2)
    assert SGLBRegressor(loss="tweedie", n_estimators=2).fit(X, Y).loss_.power == 1.5


def test_the_level_of_a_quantile_is_a_parameter():
    flat = SGLBRegressor(loss="quantile", quantile=0.9, n_estimators=20, random_state=0)
    as_object = SGLBRegressor(loss=losses.Quantile(0.9), n_estimators=20, random_state=0)
    np.testing.assert_array_equal(flat.fit(X, Y).predict(X), as_object.fit(X, Y).predict(X))
    assert flat.loss_.level == 0.9
    assert SGLBRegressor(loss="quantile", n_estimators=2).fit(X, Y).loss_.level == 0.5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"quantile": 0.9}, "quantile=0.9 is the level of loss='quantile', and loss is 'squared'"),
        ({"loss": losses.Quantile(0.5), "quantile": 0.9}, "is the level of loss='quantile'"),
        ({"loss": "quantile", "quantile": 1.0}, "quantile=1.0 is not allowed"),
        ({"loss": "quantile", "quantile": "0.9"}, "quantile='0.9' is not allowed"),
        ({"loss": "gamma", "tweedie_power": 1.5}, "1.5 is the power of loss='tweedie', and loss"),
        ({"loss": "tweedie", "tweedie_power": 2.0}, "tweedie_power=2.0 is not allowed"),
        ({"loss": "tweedie", "tweedie_power": 1}, "tweedie_power=1 is not allowed"),
    ],
)
def test_a_parameter_without_its_loss_or_beyond_its_range_is_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        SGLBRegressor(**parameters).fit(X, Y)
