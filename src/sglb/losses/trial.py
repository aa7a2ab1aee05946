"""A trial of a user's loss before a chain is spent on it: are rows independent, is the gradient
that of the loss, does it look convex?

It looks at a few rows. Where the numbers of a row depend on other rows, the loss is the sum over
all rows, and its slope along random directions is compared with the gradient's.
"""

import numpy as np

from sglb import sums
from sglb.errors import WrongGradient
from sglb.losses.base import Floats, Loss
from sglb.losses.minimisers import spread
from sglb.losses.probe import Line, Probe, differences, lines

N_ROWS = 32
TOLERANCE = 1e-2  # relative; factors, signs and missing terms are larger
WRONG = 0.1  # share of the points that must disagree: kinks may spoil a few
DECADES = (-3, 2)  # of the spread, where convexity is looked at
STEPS = (1e-2, 1e-3, 1e-4, 1e-5)  # of a difference along a direction, in spreads
N_DIRECTIONS = 3


def chosen_rows(n_rows: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return a few rows, evenly over all."""
    return np.linspace(0, n_rows - 1, min(n_rows, N_ROWS)).astype(np.intp)


def independent_rows(loss: Loss, y: Floats, start: Floats, length: float) -> bool:
    """Whether loss and gradient of a row are the same alone as among others.

    A loss that cannot be evaluated on some of the rows, because it keeps something for each of
    them, is taken for one whose rows belong together.
    """
    rows = chosen_rows(len(y))
    if len(rows) < 2:
        return True
    shape = (len(rows),) if loss.n_outputs == 1 else (len(rows), loss.n_outputs)
    offsets = np.modf(0.618 * np.arange(1, np.prod(shape) + 1))[0].reshape(shape) - 0.5
    some, raw = y[rows], start + length * offsets
    try:
        for method in (loss.loss, loss.gradient):
            together = np.asarray(method(some, raw))
            for part in (np.arange(0, len(rows), 2), np.arange(1, len(rows), 2)):
                alone = np.asarray(method(some[part], raw[part]))
                if not np.allclose(alone, together[part], rtol=1e-9, atol=0.0, equal_nan=True):
                    return False
    except Exception:  # of the user's code: anything
        return False
    return True


def check_rows(loss: Loss, y: Floats, start: Floats, length: float) -> None:
    """Raise WrongGradient where rows on their own disagree with finite differences."""
    rows = chosen_rows(len(y))
    probe = Probe(loss, y[rows])
    paths = _paths(loss, probe.y, start, length)
    found = [differences(probe, line, "loss", "gradient") for line in paths]
    error = np.stack([one.error for one in found])
    exact, slope = (np.stack([getattr(one, name) for one in found]) for name in ("exact", "slope"))
    known = np.isfinite(error)
    wrong = known & (error > TOLERANCE)
    if wrong.sum() <= WRONG * known.sum():
        return
    line, point, row = np.unravel_index(
        int(np.argmax(np.where(wrong, np.abs(slope), -1.0))), wrong.shape
    )
    raw = paths[line].base[row] + found[line].t[point, row] * paths[line].direction
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
    """Return slopes of the sum of the loss along random directions of all rows: by its gradient,
    and by finite differences, of several lengths the one that agrees best.
    """
    shape = (len(y),) if loss.n_outputs == 1 else (len(y), loss.n_outputs)
    generator = np.random.default_rng(0)
    raw = start + length * generator.uniform(-0.5, 0.5, shape)
    gradient = loss.gradient(y, raw)
    exact, slope = np.empty(N_DIRECTIONS), np.empty(N_DIRECTIONS)
    for at in range(N_DIRECTIONS):
        # Not centred: some losses do not change when all raw scores do.
        direction = length * generator.normal(0.5, 1.0, shape)
        exact[at] = sums.total(gradient * direction)
        slopes = [
            sums.total(loss.loss(y, raw + step * direction) - loss.loss(y, raw - step * direction))
            / (2.0 * step)
            for step in STEPS
        ]
        slope[at] = min(slopes, key=lambda value: abs(value - exact[at]))
    return exact, slope


def looks_convex(loss: Loss, y: Floats, start: Floats, length: float) -> bool:
    """Whether the gradient of a few rows never falls along lines."""
    rows = chosen_rows(len(y))
    probe = Probe(loss, y[rows])
    outward = np.logspace(*DECADES, 40)
    for line in _paths(loss, probe.y, start, length):
        t = line.scale * np.concatenate([-outward[::-1], [0.0], outward])
        gradient = probe("gradient", line, np.repeat(t[:, None], len(rows), axis=1))
        gradient = gradient[np.isfinite(gradient).all(axis=(1, 2))]
        fall = -np.diff(gradient @ line.direction, axis=0)
        if len(fall) < 1 or (fall > 1e-9 * np.abs(gradient).max()).any():
            return False
    return True


def is_residual(loss: Loss, y: Floats) -> bool:
    """Whether each row is best at raw = y: raw scores are in the unit of y."""
    if loss.n_outputs > 1 or loss.task != "regression":
        return False
    rows = chosen_rows(len(y))
    below, above = (
        loss.gradient(y[rows], y[rows] + way * (np.abs(y[rows]) + spread(y[rows], None)))
        for way in (-1e-3, 1e-3)
    )
    return bool(np.mean((below <= 0.0) & (above >= 0.0)) >= 0.9)


def _paths(loss: Loss, y: Floats, start: Floats, length: float) -> list[Line]:
    """Return lines to follow: from the start about three lengths far, where a chain goes; through
    y if that is where rows are best; several outputs also as `lines` has them.
    """
    k = loss.n_outputs
    base = np.broadcast_to(start, (len(y), k))
    reach = length if loss.task != "regression" else 0.4 * length
    paths = [Line(base, np.ones(k) / np.sqrt(k), reach, 0 if k == 1 else None)]
    if k > 1:
        return paths + lines(loss, y)
    return [*paths, Line(y[:, None], np.ones(1), length, 0)] if is_residual(loss, y) else paths


def _factor(exact: Floats, slope: Floats) -> float | None:
    """Return how many times too large the gradient is, None if that differs from point to point."""
    with np.errstate(all="ignore"):
        ratio = exact / slope
    low, middle, high = np.nanquantile(ratio, [0.1, 0.5, 0.9]) if len(ratio) else (0.0, 1.0, 0.0)
    same = np.isfinite(middle) and abs(high - low) <= 0.01 * abs(middle)
    return float(middle) if same else None
