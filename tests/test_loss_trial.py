"""What happens to a user's loss before and while a chain runs on it: gradients that are wrong,
rows that belong together, chains that run away.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from own_losses import Logistic, Normal, Poisson, Squared
from sglb import SGLBClassifier, SGLBRegressor, check_loss
from sglb.errors import ChainDiverged, WrongGradient
from sglb.losses import LOSSES, UserLoss, get_loss
from sglb.target import Target

X, Y = load_diabetes(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
FAST = {"n_estimators": 10, "max_depth": 3, "random_state": 0}


class SoftF1:
    """1 - F1 with probabilities for decisions: the loss of all rows together, shared evenly."""

    row_wise = False

    def loss(self, y, raw):
        p = 1.0 / (1.0 + np.exp(-raw))
        return np.full(len(y), 1.0 - 2.0 * (p * y).sum() / (p.sum() + y.sum()))

    def gradient(self, y, raw):
        p = 1.0 / (1.0 + np.exp(-raw))
        both, total = (p * y).sum(), p.sum() + y.sum()
        return -len(y) * 2.0 * (y * total - both) / total**2 * p * (1.0 - p)


class Paired:
    """Rows are compared with the mean of their group, which the object keeps."""

    def __init__(self, group):
        self.group = group
        self.count = np.bincount(group)

    def _centred(self, residual):
        return residual - (np.bincount(self.group, residual) / self.count)[self.group]

    def loss(self, y, raw):
        return 0.5 * self._centred(raw - y) ** 2

    def gradient(self, y, raw):
        return self._centred(raw - y)


def changed(kind, **methods):
    return type("Changed", (kind,), methods)()


# ---------------------------------------------------------------------------- wrong gradients


def test_a_gradient_with_the_wrong_sign_is_rejected_before_training_with_a_row_named():
    wrong = changed(Squared, gradient=lambda self, y, raw: y - raw)
    with pytest.raises(WrongGradient, match=r"in row \d+ \(y = .*-1 times as much") as error:
        SGLBRegressor(**FAST, loss=wrong).fit(X, Y)
    actual = error.value
    assert actual.y == Y[actual.row]
    assert actual.slope == pytest.approx(actual.raw[0] - actual.y, rel=1e-6)
    assert actual.gradient == pytest.approx(-actual.slope, rel=1e-6)


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (lambda self, y, raw: 2.0 * (raw - y), ", 2 times as much"),
        (lambda self, y, raw: raw - 0.5 * y, "finite differences give"),
        (lambda self, y, raw: (raw - y) / 442, ", 0.00226.* times as much"),
    ],
    ids=["factor", "another function", "divided by the rows"],
)
def test_other_wrong_gradients_are_rejected_too(gradient, message):
    with pytest.raises(WrongGradient, match=message):
        SGLBRegressor(**FAST, loss=changed(Squared, gradient=gradient)).fit(X, Y)


def test_a_wrong_gradient_of_classes_is_rejected():
    wrong = changed(Logistic, gradient=lambda self, y, raw: y - 1.0 / (1.0 + np.exp(-raw)))
    with pytest.raises(WrongGradient, match="-1 times as much"):
        SGLBClassifier(**FAST, loss=wrong).fit(*CANCER)


def test_the_check_of_the_gradient_can_be_turned_off():
    clipped = changed(Squared, gradient=lambda self, y, raw: np.clip(raw - y, -1.0, 1.0))
    with pytest.raises(WrongGradient, match="pass check_gradient=False"):
        SGLBRegressor(**FAST, loss=clipped).fit(X, Y)
    SGLBRegressor(**FAST, loss=clipped).fit(X, Y, check_gradient=False)


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("name", sorted(n for n in LOSSES if not LOSSES[n].by_group))
def test_right_gradients_pass(name, shift):
    loss = get_loss(name, n_classes=3)
    y = CANCER[1].astype(float)
    if loss.task == "regression":
        y = Y + shift * (name != "poisson")
        loss = loss.adapt(Target.of(y))
    elif loss.task == "multiclass":
        y = np.arange(442.0) % 3

    copy = SimpleNamespace(loss=loss.loss, gradient=loss.gradient, n_outputs=loss.n_outputs)
    n_classes = {"regression": 0, "binary": 2, "multiclass": 3}[loss.task]
    actual = UserLoss(copy, n_classes).adapt(Target.of(y))
    actual = actual.examine(Target.of(y), actual.init(Target.of(y)))
    assert actual.independent
    assert actual.convex == loss.convex or name in ("sla", "savage")


def test_kinks_and_jumps_do_not_make_a_gradient_wrong():
    pinball = changed(
        Squared,
        loss=lambda self, y, raw: np.maximum(0.9 * (y - raw), 0.1 * (raw - y)),
        gradient=lambda self, y, raw: np.where(raw < y, -0.9, 0.1),
    )
    model = SGLBRegressor(**FAST, loss=pinball).fit(X, Y)
    assert model.loss_.convex


def test_a_loss_says_itself_whether_it_is_convex():
    assert SGLBRegressor(**FAST, loss=changed(Squared)).fit(X, Y).loss_.convex
    assert not SGLBRegressor(**FAST, loss=changed(Squared, convex=False)).fit(X, Y).loss_.convex
    welsch = changed(
        Squared,
        loss=lambda self, y, raw: -np.exp(-(((raw - y) / 50) ** 2)),
        gradient=lambda self, y, raw: (raw - y) / 1250 * np.exp(-(((raw - y) / 50) ** 2)),
    )
    assert not SGLBRegressor(**FAST, loss=welsch).fit(X, Y).loss_.convex


# ---------------------------------------------------------------------------- rows together


@pytest.mark.parametrize("seed", range(3))
def test_losses_that_couple_rows_pass_and_learn(seed):
    X, y = CANCER
    model = SGLBClassifier(n_estimators=100, random_state=seed, loss=SoftF1()).fit(X, y)
    assert not model.loss_.independent
    assert model.score(X, y) > 0.9


def test_a_loss_that_keeps_something_for_each_row_passes():
    loss = Paired(np.arange(442) % 20)
    model = SGLBRegressor(**FAST, loss=loss).fit(X, Y)
    assert not model.loss_.independent


def test_a_wrong_gradient_of_a_loss_that_couples_rows_is_rejected():
    right = SoftF1()
    wrong = changed(SoftF1, gradient=lambda self, y, raw: -right.gradient(y, raw))
    with pytest.raises(WrongGradient, match=r"direction of all rows .*, -1 times as much"):
        SGLBClassifier(**FAST, loss=wrong).fit(*CANCER)


def test_check_loss_tells_losses_that_couple_rows():
    report = check_loss(SoftF1(), np.arange(40.0) % 2)
    assert not report.independent
    assert report.gradient_matches
    text = str(report)
    assert "rows independent        no" in text
    assert "the gradient is that of the sum of the loss over all rows" in text
    assert "cannot be checked" in text


def test_check_loss_finds_the_wrong_gradient_of_a_loss_that_couples_rows():
    right = SoftF1()
    wrong = changed(SoftF1, gradient=lambda self, y, raw: 2.0 * right.gradient(y, raw))
    report = check_loss(wrong, np.arange(40.0) % 2)
    assert not report.gradient_matches
    assert "not that of the loss" in str(report)


def test_check_loss_takes_a_loss_that_keeps_something_for_each_row():
    report = check_loss(Paired(np.arange(50) % 5), np.linspace(-3.0, 3.0, 50))
    assert not report.independent
    assert report.gradient_matches


def test_check_loss_says_that_rows_are_independent():
    report = check_loss(Squared(), np.linspace(-3.0, 3.0, 50))
    assert report.independent
    assert "rows independent        yes" in str(report)


# ---------------------------------------------------------------------------- running away


def test_a_chain_whose_loss_runs_away_stops_early_while_all_numbers_are_finite():
    wrong = changed(Squared, gradient=lambda self, y, raw: y - raw)
    with pytest.raises(ChainDiverged, match="mean training loss has grown") as error:
        SGLBRegressor(loss=wrong, n_estimators=1000, random_state=0).fit(X, Y, check_gradient=False)
    assert error.value.step < 100
    assert np.isfinite(error.value.loss)


def test_a_bounded_gradient_with_the_wrong_sign_is_noticed_by_the_loss():
    wrong = changed(Logistic, gradient=lambda self, y, raw: y - 1.0 / (1.0 + np.exp(-raw)))
    with pytest.raises(ChainDiverged, match="mean training loss has grown") as error:
        SGLBClassifier(loss=wrong, n_estimators=1000, random_state=0).fit(
            *CANCER, check_gradient=False
        )
    assert error.value.step < 600


def test_too_large_a_step_of_a_users_loss_is_noticed():
    with pytest.raises(ChainDiverged, match="mean training loss has grown"):
        SGLBRegressor(loss=Squared(), learning_rate=2.5, random_state=0).fit(X, Y)


@pytest.mark.parametrize("temperature", [1.0, 1e4])
def test_a_hot_chain_has_not_run_away(temperature):
    model = SGLBRegressor(temperature=temperature, leaf_method="gradient", random_state=0)
    assert model.set_params(n_estimators=100).fit(X, Y).n_iter_ == 100


# ---------------------------------------------------------------------------- logarithmic links


class Gamma:
    def loss(self, y, raw):
        return raw + y * np.exp(-raw)

    def gradient(self, y, raw):
        return 1.0 - y * np.exp(-raw)


class Clipped(Poisson):
    """A careful user's: the score is clipped where it would overflow."""

    def loss(self, y, raw):
        return (
            np.where(raw > 20.0, np.exp(20.0) * (1 + raw - 20.0), np.exp(np.minimum(raw, 20.0)))
            - y * raw
        )

    def gradient(self, y, raw):
        return np.exp(np.minimum(raw, 20.0)) - y


def exponential_problem(scale):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2000, 3))
    return x, scale * np.exp(x[:, 0] + 0.5 * x[:, 1]) * rng.gamma(20.0, 0.05, 2000)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 8000.0, 1e9])
@pytest.mark.parametrize("with_link", [True, False])
@pytest.mark.parametrize("kind", [Poisson, Gamma])
def test_a_users_loss_of_logarithms_learns_in_any_unit(kind, with_link, scale):
    x, y = exponential_problem(scale)
    user = changed(kind, link=lambda self, raw: np.exp(raw)) if with_link else kind()
    model = SGLBRegressor(loss=user, random_state=0).fit(x[:1500], y[:1500])
    actual = np.log(model.predict(x[1500:])) if with_link else model.predict(x[1500:])
    truth = np.log(scale) + x[1500:, 0] + 0.5 * x[1500:, 1]
    assert np.std(actual - truth) < 0.2  # of .65


@pytest.mark.parametrize("scale", [1.0, 90.0])
def test_a_loss_that_clips_its_score_far_away_is_right(scale):
    x, y = exponential_problem(scale)
    SGLBRegressor(**FAST, loss=Clipped()).fit(x, y)


@pytest.mark.parametrize(
    ("kind", "gradient"),
    [
        (Poisson, lambda self, y, raw: np.exp(raw) - 2.0 * y),
        (Poisson, lambda self, y, raw: y - np.exp(raw)),
        (Gamma, lambda self, y, raw: 3.0 * (1.0 - y * np.exp(-raw))),
        (Gamma, lambda self, y, raw: 1.0 + y * np.exp(-raw)),
        (Normal, lambda self, y, raw: -Normal.gradient(self, y, raw)),
        (Normal, lambda self, y, raw: 2.0 * Normal.gradient(self, y, raw)),
        (Normal, lambda self, y, raw: Normal.gradient(self, y, raw) - np.array([0.0, 1.0])),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 8000.0])
def test_wrong_gradients_of_exponentials_are_rejected(kind, gradient, scale):
    x, y = exponential_problem(scale)
    with pytest.raises(WrongGradient):
        SGLBRegressor(**FAST, loss=changed(kind, gradient=gradient)).fit(x, y)


def test_check_loss_sees_the_wrong_gradient_of_an_exponential():
    wrong = changed(Poisson, gradient=lambda self, y, raw: np.exp(raw) - 2.0 * y)
    y = np.array([0.0, 1.0, 3.0, 10.0])
    assert not check_loss(wrong, y).gradient_matches
    assert check_loss(Poisson(), y).gradient_matches


def test_rows_that_alternate_between_groups_do_not_mislead_the_start():
    y = np.tile([0.0, 1000.0], 40_000)
    loss = UserLoss(Squared()).adapt(Target.of(y))
    assert loss.init(Target.of(y)) == pytest.approx([500.0], abs=20.0)


# ---------------------------------------------------------------------------- noise


@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_a_stated_temperature_is_no_reason_to_call_a_users_chain_diverged(spread):
    y = spread * (Y - Y.mean()) / Y.std() + 3.0
    model = SGLBRegressor(loss=Squared(), temperature=1.0, n_estimators=100, random_state=0)
    assert model.fit(X, y).n_iter_ == 100


# ---------------------------------------------------------------------------- derivatives, units


def test_derivatives_that_are_not_those_of_gradient_and_hessian_are_rejected():
    for both in (
        lambda self, y, raw: (raw - y + 1.0, np.ones_like(raw)),
        lambda self, y, raw: (raw - y, np.full_like(raw, 2.0)),
    ):
        members = {"derivatives": both, "hessian": lambda self, y, raw: np.ones_like(raw)}
        with pytest.raises(ValueError, match=r"gives another (gradient|hessian) than"):
            SGLBRegressor(**FAST, loss=changed(Squared, **members)).fit(X, Y)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_a_users_loss_with_a_hessian_does_not_matter(unit):
    scaled = changed(
        Squared,
        loss=lambda self, y, raw: unit * Squared.loss(self, y, raw),
        gradient=lambda self, y, raw: unit * Squared.gradient(self, y, raw),
        hessian=lambda self, y, raw: np.full_like(raw, unit),
    )
    plain = changed(Squared, hessian=lambda self, y, raw: np.ones_like(raw))
    settings = {"n_estimators": 100, "max_depth": 3, "sampler": "plain"}
    wanted = SGLBRegressor(**settings, loss=plain).fit(X, Y).predict(X)
    np.testing.assert_allclose(
        SGLBRegressor(**settings, loss=scaled).fit(X, Y).predict(X), wanted, rtol=1e-6
    )


def test_saving_a_model_with_a_users_link_says_that_it_is_lost(tmp_path):
    x, y = exponential_problem(1.0)
    linked = changed(Gamma, link=lambda self, raw: np.exp(raw))
    with pytest.warns(UserWarning, match="link of loss 'Changed' is code and not in the file"):
        SGLBRegressor(**FAST, loss=linked).fit(x, y).save(tmp_path / "m.sglb")


def test_long_tails_of_the_target_are_reached_by_flat_losses():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    y = np.exp(2.0 * x[:, 0] + 0.3 * rng.normal(size=4000))
    truth = np.exp(2.0 * x[2000:, 0])
    model = SGLBRegressor(loss="absolute", random_state=0).fit(x[:2000], y[:2000])
    squared = SGLBRegressor(random_state=0).fit(x[:2000], y[:2000])
    error, other = (np.abs(m.predict(x[2000:]) - truth).mean() for m in (model, squared))
    assert error < 1.1 * other


@pytest.mark.parametrize("method", ["loss", "gradient"])
def test_a_number_that_is_not_finite_where_the_chain_starts_is_named_with_its_row(method):
    hole = changed(
        Squared,
        **{
            method: lambda self, y, raw: np.where(
                y == Y[5], np.nan, getattr(Squared, method)(self, y, raw)
            )
        },
        init=lambda self, y, weight: 100.0,
    )
    with pytest.raises(ValueError, match=rf"{method}\(y, raw\) .* is \[nan\] in row 5, at y = "):
        SGLBRegressor(**FAST, loss=hole).fit(X, Y)


def test_a_link_that_returns_something_else_is_rejected():
    short = changed(Squared, link=lambda self, raw: raw[:1])
    model = SGLBRegressor(**FAST, loss=short).fit(X, Y)
    with pytest.raises(ValueError, match=r"prediction for each of 3 rows, got shape \(1,\)"):
        model.predict(X[:3])
    wild = changed(Logistic, link=lambda self, raw: 10.0 * raw)
    model = SGLBClassifier(**FAST, loss=wild).fit(*CANCER)
    with pytest.raises(ValueError, match="must return probabilities"):
        model.predict_proba(CANCER[0])
