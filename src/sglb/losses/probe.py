"""A loss along lines: raw = base + t * direction, t up to 1e8 times the scale of y.

Along a line a loss is a function of one number, whose derivative is gradient . direction. Shapes:
m points t, n rows, k outputs.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sglb import sums
from sglb.elementary import exp
from sglb.losses.base import Floats, Loss

DECADES = 8
GROWTH = 1.02  # a maximum that still grows by 2 % over the last decade of t is not a bound
EPSILON = np.finfo(np.float64).eps
# Relative tolerances of a slope by finite differences: its rounding error, and its distance from
# the formula of second order (its own error is of the order of the square of that distance).
PRECISION, STRAIGHT = 1e-5, 3e-3
HALVINGS = 32  # of an interval that may contain a jump: down to 5e-11 of t


@dataclass(frozen=True)
class Line:
    """A line of raw scores: a base for each row, a direction, steps in units of scale."""

    base: Floats  # (n, k)
    direction: Floats  # (k,), length 1
    scale: float
    output: int | None  # index of the output that changes, None if several change


@dataclass(frozen=True)
class Finding:
    """Properties of a loss along a line; the fields are those of LossReport."""

    gradient_error: float
    hessian_error: float | None
    lipschitz: float | None
    smoothness: float | None
    bounded_below: bool
    convex: bool


@dataclass
class Probe:
    """Evaluates a loss that may raise any exception: failures become NaN and a problem."""

    loss: Loss
    y: Floats  # (n,)
    problems: list[str] = field(default_factory=list)

    def note(self, topic: str, problem: str) -> None:
        """Add a problem, unless there is one of its topic."""
        if not any(problem.startswith(topic) for problem in self.problems):
            self.problems.append(f"{topic} {problem}")

    def __call__(self, method: str, line: Line, t: Floats) -> Floats:
        """Evaluate loss (m, n) or a derivative (m, n, k) at t (m, n)."""
        raw = line.base + t[:, :, None] * line.direction
        k = raw.shape[2]
        shape = t.shape if method == "loss" else raw.shape
        y = np.broadcast_to(self.y, t.shape).reshape(-1)
        try:
            result = getattr(self.loss, method)(
                y, raw.reshape(-1) if k == 1 else raw.reshape(-1, k)
            )
            return np.asarray(result, dtype=np.float64).reshape(shape)
        except Exception as error:
            self.note(f"{method}(y, raw)", f"failed: {type(error).__name__}: {error}")
            return np.full(shape, np.nan)


def lines(loss: Loss, y: Floats) -> list[Line]:
    """Return lines through 0 and, for one output, through y, where losses of a residual may have
    kinks.
    """
    n, k = len(y), loss.n_outputs
    if k == 1:
        low, high = np.quantile(y, [0.1, 0.9])
        scale = float(high - low) or float(np.abs(y).max()) or 1.0
        return [Line(base, np.ones(1), scale, 0) for base in (np.zeros((n, 1)), y[:, None])]
    # The first few outputs alone and against their neighbours, then random directions; bases far
    # from one another, so that the class is clear in some rows and open in others.
    generator = np.random.default_rng(0)
    axes = np.eye(k)[:8]
    oblique = np.concatenate([axes[1:] - axes[:-1], generator.normal(size=(4, k))])
    oblique /= lengths(oblique)[:, None]
    parallel = [Line(np.zeros((n, k)), d, 1.0, j) for j, d in enumerate(axes)]
    return parallel + [Line(generator.normal(0.0, 4.0, (n, k)), d, 1.0, None) for d in oblique]


def along(gradient: Floats, direction: Floats) -> Floats:
    """Return the slopes (...) of gradients (..., k) along a direction (k,)."""
    return sums.over_axis(gradient * direction)


def lengths(vectors: Floats) -> Floats:
    """Return the lengths (...) of vectors (..., k)."""
    return np.sqrt(sums.over_axis(np.square(vectors)))


def powers_of_ten(low: float, high: float, n: int) -> Floats:
    """Return n numbers from 10^low to 10^high, each the same multiple of the one before."""
    return exp(math.log(10.0) * np.linspace(low, high, n))


def follow(probe: Probe, line: Line) -> Finding:
    """Return the properties of the loss along a line."""
    positive = line.scale * powers_of_ten(-3, DECADES, 12 * (DECADES + 3) + 1)
    # Not quite symmetric, so that halving an interval does not hit 0, where kinks are likely.
    grid = np.concatenate([-0.997 * positive[::-1], positive])
    t = _for_rows(grid, probe)
    value, gradient = probe("loss", line, t), probe("gradient", line, t)
    finite = np.isfinite(value).all(axis=1) & np.isfinite(gradient).all(axis=(1, 2))
    limit = float(np.abs(grid[~finite]).min(initial=np.inf))
    if np.isfinite(limit) and finite.any():
        probe.note("loss or gradient", f"not finite from about |raw| = {limit:.3g} on")
    inside = np.abs(grid) < limit
    grid, value, gradient = grid[inside], value[inside], gradient[inside]
    has_hessian = probe.loss.has_hessian and line.output is not None
    gradient_error = _difference(probe, line, "loss", "gradient")
    hessian_error = _difference(probe, line, "gradient", "hessian") if has_hessian else None
    if len(grid) < 4:  # not finite nearly everywhere
        return Finding(gradient_error, hessian_error, None, None, False, False)
    return Finding(
        gradient_error,
        hessian_error,
        lipschitz=_bound(grid, lengths(gradient).max(axis=1)),
        smoothness=_smoothness(probe, line, grid, gradient),
        bounded_below=_bounded_below(grid, value, line.scale),
        convex=_convex(grid, along(gradient, line.direction), line.scale),
    )


def _for_rows(t: Floats, probe: Probe) -> Floats:
    return np.repeat(t[:, None], len(probe.y), axis=1)


class Differences(NamedTuple):
    """A derivative and finite differences, (m, n) each: position, derivative as stated, nearest
    finite difference, and their relative distance (NaN where it is not known).
    """

    t: Floats
    exact: Floats
    slope: Floats
    error: Floats


def differences(probe: Probe, line: Line, function: str, derivative: str) -> Differences:
    """Compare a derivative with finite differences of a function along a line.

    Central differences of fourth order; of seven step lengths, the one that agrees best counts at
    each point; a wrong derivative agrees with none. Long steps do not count where the function is
    curved, short ones where rounding dominates; where none is left, the distance is not known.
    """
    points = line.scale * powers_of_ten(-2, 1, 13) * 0.73
    t = _for_rows(np.concatenate([-0.91 * points, points]), probe)

    def evaluate(method: str, t: Floats) -> Floats:
        result = probe(method, line, t)
        if method == "loss":
            return result
        # A hessian is the diagonal only, so that it is known along lines of one output.
        if method == "hessian":
            return np.asarray(result[..., line.output])
        return along(result, line.direction)

    with np.errstate(all="ignore"):
        exact = evaluate(derivative, t)
        # Slopes far below the typical one do not matter.
        floor = 1e-9 * np.nanmedian(np.abs(exact)) if np.isfinite(exact).any() else 0.0
        error, nearest = np.full(t.shape, np.inf), np.full(t.shape, np.nan)
        for step in line.scale * powers_of_ten(-8, -2, 7):
            values = [evaluate(function, t + times * step) for times in (1.0, -1.0, 2.0, -2.0)]
            simple = (values[0] - values[1]) / (2.0 * step)
            slope = (4.0 * simple - (values[2] - values[3]) / (4.0 * step)) / 3.0
            size = np.maximum(np.maximum(np.abs(slope), np.abs(exact)), floor)
            rounding = 4.0 * EPSILON * np.max(np.abs(values), axis=0) / step
            distance = np.where(size > 0.0, np.abs(slope - exact) / size, 0.0)
            precise = (rounding <= PRECISION * size) & (np.abs(slope - simple) <= STRAIGHT * size)
            closer = (distance < error) & (precise | (slope == exact))
            error, nearest = np.where(closer, distance, error), np.where(closer, slope, nearest)
    return Differences(t, exact, nearest, np.where(np.isfinite(error), error, np.nan))


def _difference(probe: Probe, line: Line, function: str, derivative: str) -> float:
    """Return the largest relative difference between a derivative and finite differences."""
    error = differences(probe, line, function, derivative).error
    return float(np.nanmax(error)) if np.isfinite(error).any() else np.nan


def _bound(t: Floats, size: Floats) -> float | None:
    """Return the largest size, None if it still grows over the last decade of t."""
    inner = size[np.abs(t) <= np.abs(t).max() / 10.0]
    if not len(inner) or size.max() > GROWTH * inner.max():
        return None
    return float(size.max())


def _smoothness(probe: Probe, line: Line, grid: Floats, gradient: Floats) -> float | None:
    """Return the steepest slope of the gradient, None if it grows outwards or towards a point.

    Each interval of the grid is halved again and again, keeping the steeper half. In the end the
    slope of a differentiable gradient is constant; that of a jump doubles each time.
    """
    change = lengths(np.diff(gradient, axis=0)).max(axis=1)
    bound = _bound(0.5 * (grid[1:] + grid[:-1]), change / np.diff(grid))
    near = np.abs(grid) <= 100.0 * line.scale
    grid, gradient = grid[near], gradient[near]
    low, high = _for_rows(grid[:-1], probe), _for_rows(grid[1:], probe)
    at_low, at_high = gradient[:-1], gradient[1:]
    slopes = []
    for _ in range(HALVINGS):
        center = 0.5 * (low + high)
        at_center = probe("gradient", line, center)
        left = lengths(at_center - at_low)
        right = lengths(at_high - at_center)
        go_left = left >= right
        low, high = np.where(go_left, low, center), np.where(go_left, center, high)
        at_low = np.where(go_left[..., None], at_low, at_center)
        at_high = np.where(go_left[..., None], at_center, at_high)
        slopes.append(np.maximum(left, right) / (high - low))
    # The slope grew 16-fold in the last 12 halvings (a jump: 4096-fold), by more than rounding.
    rounding = 1e-9 * np.abs(gradient).max()
    jumps = (slopes[-1] > 16.0 * slopes[-13]) & (slopes[-1] * (high - low) > rounding)
    if jumps.any():
        interval, row = np.argwhere(jumps)[0]
        raw = line.base[row] + low[interval, row] * line.direction
        position = ", ".join(f"{z:.3g}" for z in raw)
        probe.note(
            "the gradient",
            f"jumps (or is infinitely steep) at raw = {position}, y = {probe.y[row]:.3g}",
        )
        return None
    # Later slopes are no steeper, only noisier.
    return None if bound is None else max(bound, *(float(np.nanmax(s)) for s in slopes[:20]))


def _bounded_below(t: Floats, value: Floats, scale: float) -> bool:
    """Whether the least loss of each row stops falling over the last decade of t."""
    inner = value[np.abs(t) <= np.abs(t).max() / 10.0]
    near = value[np.abs(t) <= 10.0 * scale]
    if not len(inner) or not len(near):
        return False
    lowest = inner.min(axis=0)
    unit = np.maximum(np.abs(lowest), np.ptp(near, axis=0))
    return bool((value.min(axis=0) >= lowest - 0.05 * unit).all())


def _convex(t: Floats, slope: Floats, scale: float) -> bool:
    """Whether the slope along the line never falls."""
    size = np.maximum(np.abs(slope[1:]), np.abs(slope[:-1]))
    near = np.abs(slope[np.abs(t) <= 10.0 * scale]).max(initial=0.0)
    return bool((np.diff(slope, axis=0) >= -1e-9 * (size + near)).all())
