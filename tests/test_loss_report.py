"""What check_loss reports about good and bad losses."""

from dataclasses import replace

import numpy as np
import pytest

from loss_cases import every_loss, make_targets
from own_losses import Copy, user_twin
from sglb.losses import Logistic, Softmax, check_loss, get_loss

Y = np.array([0.0, 1.0, 2.0])


@every_loss
def test_check_loss_confirms_what_each_built_in_loss_states(loss):
    y = make_targets(loss, 300, np.random.default_rng(2))
    if hasattr(loss, "absolute"):  # the numbers of its docstring are those of its own width
        loss = replace(loss, absolute=True)
    for report in (check_loss(loss, y), check_loss(Copy(loss), y)):
        assert report.gradient_matches
        assert report.hessian_matches in (True, None)
        assert report.bounded_below
        assert report.convex == loss.convex
        assert (report.lipschitz is None) == (loss.lipschitz is None)
        assert report.guaranteed == (loss.lipschitz is not None)
        assert report.problems == ()
        # Lines are not dense: a bound may be missed by a little, never exceeded.
        if loss.lipschitz is not None:
            assert 0.95 * loss.lipschitz <= report.lipschitz <= 1.0001 * loss.lipschitz
        if loss.smoothness is not None:
            assert 0.9 * loss.smoothness <= report.smoothness <= 1.0001 * loss.smoothness


def sign(y):
    return 2 * y - 1


BAD = {
    "kink": user_twin(loss=lambda y, z: np.abs(z - y), gradient=lambda y, z: np.sign(z - y)),
    "hinge": user_twin(
        loss=lambda y, z: np.maximum(0, 1 - sign(y) * z),
        gradient=lambda y, z: np.where(sign(y) * z < 1, -sign(y), 0.0),
    ),
    "steep": user_twin(
        loss=lambda y, z: np.abs(z - y) ** 1.5,
        gradient=lambda y, z: 1.5 * np.sign(z - y) * np.sqrt(np.abs(z - y)),
    ),
    "quartic": user_twin(loss=lambda y, z: (z - y) ** 4 / 4, gradient=lambda y, z: (z - y) ** 3),
    "exponential": user_twin(
        loss=lambda y, z: np.exp(z) - y * z, gradient=lambda y, z: np.exp(z) - y
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_check_loss_sees_gradients_that_are_not_smooth(name):
    report = check_loss(BAD[name], np.array([0.0, 1.0, 1.0, 0.0]))
    assert report.gradient_matches
    assert report.smoothness is None
    assert report.convex
    assert not report.guaranteed
    assert "convergence theorem asks for" in report.conclusion
    assert (report.lipschitz is None) == (name not in ("kink", "hinge"))
    assert any("jumps" in problem for problem in report.problems) == (
        name in ("kink", "hinge", "steep")
    )
    assert any("not finite from about" in p for p in report.problems) == (name == "exponential")


@pytest.mark.parametrize("factor", [-1.0, 0.5, 1.001, 2.0])
def test_check_loss_sees_a_gradient_that_is_not_the_losss(factor):
    wrong = user_twin(gradient=lambda y, raw: factor * (raw - y))
    report = check_loss(wrong, np.linspace(-3, 5, 50))
    assert not report.gradient_matches
    assert not report.guaranteed
    assert report.conclusion.startswith("The gradient is not that of the loss")


def test_check_loss_sees_a_wrong_hessian():
    assert check_loss(user_twin(hessian=lambda y, raw: 2 + 0 * raw), Y).hessian_matches is False
    assert check_loss(user_twin(hessian=lambda y, raw: 1 + 0 * raw), Y).hessian_matches is True


def test_check_loss_sees_a_loss_without_a_lower_bound():
    report = check_loss(user_twin(loss=lambda y, z: 2.0 * z, gradient=lambda y, z: 2.0 + 0 * z), Y)
    assert not report.bounded_below
    assert not report.guaranteed
    assert "no lower bound" in report.conclusion


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_check_loss_does_not_depend_on_the_unit_of_the_target(scale):
    y = scale * np.linspace(-1, 2, 40)
    assert check_loss("squared", y).gradient_matches
    report = check_loss(get_loss("huber", delta=scale, absolute=True), y)
    assert report.guaranteed
    assert report.lipschitz == pytest.approx(scale)


@pytest.mark.parametrize(
    "method",
    [
        lambda y, raw: 1 / 0,
        lambda y, raw: np.mean(raw),
        lambda y, raw: None,
        lambda y, raw: np.full_like(raw, np.nan),
    ],
)
@pytest.mark.parametrize("name", ["loss", "gradient"])
def test_check_loss_reports_a_loss_that_fails_instead_of_raising(name, method):
    report = check_loss(user_twin(**{name: method}), Y)
    assert not report.gradient_matches
    assert not report.guaranteed
    assert "could not be evaluated" in str(report)


def test_a_report_prints_as_a_table():
    text = str(check_loss("sla", np.array([0.0, 1.0])))
    assert text.startswith("loss 'sla'\n  rows independent        yes\n")
    assert "\n  gradient matches loss   yes   relative error " in text
    assert "\n  Lipschitz continuous    yes   |gradient| to 2.5\n" in text
    assert "\n  convex                  no\n" in text
    assert text.endswith("may stop in a local optimum, because the loss is not convex.")


def test_check_loss_rejects_targets_it_cannot_use():
    with pytest.raises(ValueError, match="at least one target"):
        check_loss("squared", [])
    with pytest.raises(ValueError, match=r"row 1 has 2\.0"):
        check_loss(Logistic(), [0, 2])
    assert check_loss("softmax", [0, 1, 2]).name == Softmax(3).name
