"""A trial of a user's loss before a chain runs on it: are rows independent, is the gradient that
of the loss, does the loss look convex?

A few rows are evaluated. Where they depend on one another, the loss is the sum over all rows, and
its slope along random directions is compared with that of the gradient.
"""

import numpy as np

from sglb import sums
from sglb.errors import WrongGradient
from sglb.losses.base import Floats, Loss
from sglb.losses.minimisers import spread
from sglb.losses.probe import Line, Probe, along, differences, lines, powers_of_ten
from sglb.target import Target

N_ROWS = 32
TOLERANCE = 1e-2  # relative; factors, signs and missing terms are larger
WRONG = 0.1  # share of the points that must disagree, because a few may be at kinks
DECADES = (-3, 2)  # of the spread, where convexity is checked
STEPS = (1e-2, 1e-3, 1e-4, 1e-5)  # of differences along a direction, in spreads
N_DIRECTIONS = 3


def trial_rows(n_rows: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return up to N_ROWS rows at equal distances."""
    return np.linspace(0, n_rows - 1, min(n_rows, N_ROWS)).astype(np.intp)


def independent_rows(loss: Loss, y: Floats, start: Floats, length: float) -> bool:
    """Whether loss and gradient of a row do not change with the other rows of the call.

    They count as dependent if the loss fails on some of the rows, because it keeps an array of the
    length of y.
    """
    rows = trial_rows(len(y))
    if len(rows) < 2:
        return True
    shape = (len(rows),) if loss.n_outputs == 1 else (len(rows), loss.n_outputs)
    offsets = np.modf(0.618 * np.arange(1, np.prod(shape) + 1))[0].reshape(shape) - 0.5
    y, raw = y[rows], start + length * offsets
    try:
        for method in (loss.loss, loss.gradient):
            together = np.asarray(method(y, raw))
            for half in (np.arange(0, len(rows), 2), np.arange(1, len(rows), 2)):
                apart = np.asarray(method(y[half], raw[half]))
                if not np.allclose(apart, together[half], rtol=1e-9, atol=0.0, equal_nan=True):
                    return False
    except Exception:  # the user's code may raise anything
        return False
    return True


def check_rows(loss: Loss, y: Floats, start: Floats, length: float) -> None:
    """Raise WrongGradient where the gradient of rows disagrees with finite differences."""
    rows = trial_rows(len(y))
    probe = Probe(loss, y[rows])
    paths = _paths(loss, probe.y, start, length)
    t, exact, slope, error = (
        np.stack(arrays)
        for arrays in zip(
            *(differences(probe, line, "loss", "gradient") for line in paths), strict=True
        )
    )
    comparable = np.isfinite(error)
    wrong = comparable & (error > TOLERANCE)
    if np.count_nonzero(wrong) <= WRONG * np.count_nonzero(comparable):
        return
    line, point, row = np.unravel_index(
        int(np.argmax(np.where(wrong, np.abs(slope), -1.0))), wrong.shape
    )
    raw = paths[line].base[row] + t[line, point, row] * paths[line].direction
    raise WrongGradient(
        loss.name,
        int(rows[row]),
        float(probe.y[row]),
        tuple(float(z) for z in raw),
        float(exact[line, point, row]),
        float(slope[line, point, row]),
        _factor(exact[wrong], slope[wrong]),
    )


def check_sum(loss: Loss, y: Floats, start: Floats, length: float) -> None:
    """Raise WrongGradient where the sum over all rows disagrees with finite differences."""
    exact, slope = directional(loss, y, start, length)
    size = np.maximum(np.abs(exact), np.abs(slope)).max()
    wrong = np.isfinite(slope) & (np.abs(exact - slope) > TOLERANCE * size)
    if wrong.all():
        worst = int(np.argmax(np.abs(exact - slope)))
        factor = _factor(exact, slope)
        raise WrongGradient(loss.name, None, None, None, exact[worst], slope[worst], factor)


def directional(loss: Loss, y: Floats, start: Floats, length: float) -> tuple[Floats, Floats]:
    """Return slopes of the sum of the loss along random directions of all rows: by the gradient,
    and by finite differences of the step length that agrees best.
    """
    shape = (len(y),) if loss.n_outputs == 1 else (len(y), loss.n_outputs)
    generator = np.random.default_rng(0)
    raw = start + length * generator.uniform(-0.5, 0.5, shape)
    gradient = loss.gradient(y, raw)
    exact, slope = np.empty(N_DIRECTIONS), np.empty(N_DIRECTIONS)
    for index in range(N_DIRECTIONS):
        # Not centred: some losses do not change when all raw scores do.
        direction = length * generator.normal(0.5, 1.0, shape)
        exact[index] = sums.total(gradient * direction)
        slopes = [
            sums.total(loss.loss(y, raw + step * direction) - loss.loss(y, raw - step * direction))
            / (2.0 * step)
            for step in STEPS
        ]
        slope[index] = min(slopes, key=lambda value: abs(value - exact[index]))
    return exact, slope


def looks_convex(loss: Loss, y: Floats, start: Floats, length: float) -> bool:
    """Whether the gradient of a few rows never falls along lines."""
    rows = trial_rows(len(y))
    probe = Probe(loss, y[rows])
    outward = powers_of_ten(*DECADES, 40)
    for line in _paths(loss, probe.y, start, length):
        t = line.scale * np.concatenate([-outward[::-1], [0.0], outward])
        gradient = probe("gradient", line, np.repeat(t[:, None], len(rows), axis=1))
        gradient = gradient[np.isfinite(gradient).all(axis=(1, 2))]
        fall = -np.diff(along(gradient, line.direction), axis=0)
        if len(fall) < 1 or (fall > 1e-9 * np.abs(gradient).max()).any():
            return False
    return True


def is_residual(loss: Loss, y: Floats) -> bool:
    """Whether the loss of a row is lowest at raw = y, in nine of ten rows."""
    if loss.n_outputs > 1 or loss.task != "regression":
        return False
    y = y[trial_rows(len(y))]
    step = 1e-3 * (np.abs(y) + spread(Target.of(y)))
    below, above = loss.gradient(y, y - step), loss.gradient(y, y + step)
    return bool(np.count_nonzero((below <= 0.0) & (above >= 0.0)) >= 0.9 * len(y))


def _paths(loss: Loss, y: Floats, start: Floats, length: float) -> list[Line]:
    """Return lines through the start, about three lengths long; for one output also through y if
    the loss is lowest there, for several outputs also those of `lines`.
    """
    k = loss.n_outputs
    base = np.broadcast_to(start, (len(y), k))
    scale = length if loss.task != "regression" else 0.4 * length
    paths = [Line(base, np.ones(k) / np.sqrt(k), scale, 0 if k == 1 else None)]
    if k > 1:
        return paths + lines(loss, y)
    return [*paths, Line(y[:, None], np.ones(1), length, 0)] if is_residual(loss, y) else paths


def _factor(exact: Floats, slope: Floats) -> float | None:
    """Return how many times too large the gradient is, None if the factor is not constant."""
    with np.errstate(all="ignore"):
        ratio = exact / slope
    low, median, high = np.nanquantile(ratio, [0.1, 0.5, 0.9]) if len(ratio) else (0.0, 1.0, 0.0)
    constant = np.isfinite(median) and abs(high - low) <= 0.01 * abs(median)
    return float(median) if constant else None
