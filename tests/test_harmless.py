"""The automatic prior variance of classes: the widest draws whose mean predicts like the model."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from sglb.losses import get_loss
from sglb.posterior import QuadraticEnergy
from sglb.posterior.harmless import (
    CAUTION,
    LARGEST_COST,
    LARGEST_LEVERAGE,
    PRIOR_VARIANCES,
    largest_harmless,
    like_new_rows,
)
from sglb.target import Target

LOGISTIC = get_loss("logistic")
N_ROWS, N_DRAWS = 400, 64


def mirrored(rng, shape):
    draws = rng.normal(size=(*shape, N_DRAWS // 2))
    return np.concatenate([draws, -draws], axis=-1)


def test_variances_go_down_in_equal_steps():
    ratios = np.array(PRIOR_VARIANCES[1:]) / PRIOR_VARIANCES[:-1]
    np.testing.assert_allclose(ratios, 10**-0.25, rtol=0.05)


def test_stretched_draws_have_the_variance_of_a_posterior_without_the_row():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    precision = np.linalg.inv(root @ root.T)
    h = rng.uniform(0.01, 0.25, 6)
    variance = np.diag(np.linalg.inv(precision + np.diag(h)))
    draws = np.sqrt(variance)[None, :, None] * np.array([1.0, -1.0])
    stretched = np.square(like_new_rows(draws, h[None])).mean(axis=2)[0]
    for row in range(6):
        others = np.where(np.arange(6) == row, 0.0, h)
        expected = np.linalg.inv(precision + np.diag(others))[row, row]
        np.testing.assert_allclose(stretched[row], expected)


def test_a_row_that_is_alone_is_not_stretched_without_end():
    draws = np.array([[[20.0, -20.0]]])
    stretched = like_new_rows(draws, np.array([[0.25]]))
    np.testing.assert_allclose(stretched, draws / np.sqrt(1.0 - LARGEST_LEVERAGE))


def exact_share(raw, variance):
    """Cost of the mean over all of N(0, variance), in shares of the loss, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights /= weights.sum()
    mean = expit(raw[:, None] + np.sqrt(variance) * nodes) @ weights
    p, q = expit(raw), expit(CAUTION * raw)
    cost = q * np.log(p / mean) + (1.0 - q) * np.log((1.0 - p) / (1.0 - mean))
    least = -q * np.log(q) - (1.0 - q) * np.log1p(-q)
    return cost.mean() / least.mean()


@pytest.mark.parametrize(("seed", "width"), [(0, 0.7), (1, 1.5), (2, 3.0)])
def test_the_choice_is_the_largest_of_its_cost(seed, width):
    rng = np.random.default_rng(seed)
    raw = width * rng.normal(size=N_ROWS) - 1.0
    noise = mirrored(rng, (1, N_ROWS))
    # The error of the sampled cost is below 10 % at 400 rows: the choice must not be closer.
    chosen = largest_harmless(
        LOGISTIC, raw[None], np.zeros((1, N_ROWS)), lambda variance: np.sqrt(variance) * noise
    )
    position = PRIOR_VARIANCES.index(chosen)
    assert 0 < position < len(PRIOR_VARIANCES) - 1
    assert exact_share(raw, chosen) < 1.1 * LARGEST_COST
    assert exact_share(raw, PRIOR_VARIANCES[position - 1]) > 0.9 * LARGEST_COST


def test_wider_draws_at_new_rows_make_the_choice_smaller():
    rng = np.random.default_rng(3)
    raw, noise = rng.normal(size=(1, N_ROWS)), mirrored(rng, (1, N_ROWS))
    chosen = [
        largest_harmless(LOGISTIC, raw, np.full((1, N_ROWS), h), lambda v: np.sqrt(v) * noise)
        for h in (0.0, 4.0)
    ]
    assert chosen[1] < chosen[0]


def test_classes_that_are_certain_do_not_make_wide_draws_look_harmless():
    rng = np.random.default_rng(4)
    loss = get_loss("softmax", n_classes=7)
    raw = 6.0 * rng.normal(size=(7, N_ROWS))
    noise = mirrored(rng, (7, N_ROWS))
    chosen = largest_harmless(
        loss, raw, np.zeros((7, N_ROWS)), lambda variance: np.sqrt(variance) * noise
    )
    p, draws = softmax(raw, axis=0), np.sqrt(chosen) * noise
    mean = softmax(raw[:, :, None] + draws, axis=0).mean(axis=2)
    share = (p * np.log(p / mean)).sum() / -(p * np.log(p)).sum()
    assert share < 2.0 * LARGEST_COST


def test_draws_that_cost_too_much_at_any_variance_get_the_least():
    raw = np.full((1, N_ROWS), 3.0)
    raw[:, ::2] = -3.0
    wide = np.broadcast_to(np.repeat([10.0, -10.0], 2), (1, N_ROWS, 4))
    chosen = largest_harmless(LOGISTIC, raw, np.zeros((1, N_ROWS)), lambda _: wide)
    assert chosen == PRIOR_VARIANCES[-1]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_curvature_of_a_row_is_the_diagonal_of_its_weighted_hessian(n_classes):
    rng = np.random.default_rng(5)
    n_outputs = 1 if n_classes == 2 else n_classes
    loss = LOGISTIC if n_classes == 2 else get_loss("softmax", n_classes=n_classes)
    raw, weight = rng.normal(size=(n_outputs, 9)), rng.uniform(0.5, 2.0, 9)
    target = Target.of(rng.integers(0, n_classes, 9), weight, classes=range(n_classes))
    p = expit(raw) if n_classes == 2 else softmax(raw, axis=0)
    rows = np.array([1, 4, 8])
    result = QuadraticEnergy.at(loss, target, raw).row_curvature(rows)
    np.testing.assert_allclose(result, (weight * p * (1.0 - p))[:, rows])
