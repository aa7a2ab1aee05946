"""Plot predictive distributions and their calibration.

All are of rows that the model was not trained on.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sglb import calibration
from sglb.calibration import N_BINS, CoverageTable, Reliability
from sglb.distributions import Distribution
from sglb.errors import require_rows
from sglb.plots.style import (
    INK,
    PALETTE,
    axes_to_draw_on,
    colours,
    lighter,
    name_axes,
    new_figure,
    quiet,
    write_legend,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

GREY, BLUE = PALETTE[0], PALETTE[3]
# Half of y between the inner, nine tenths between the outer quantiles.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# More rows than this are drawn as bins, and no more points than that are drawn.
FINEST_BANDS, MOST_POINTS = 60, 2000
# Rows whose mixture a bin shows, at least: of fewer the bands are those of single rows.
ROWS_OF_BIN = 10
# Middles of a hundred intervals of equal probability.
FINE = (np.arange(100) + 0.5) / 100.0
# Two standard errors are passed by chance once in 22 bins.
ERRORS_SHOWN = 2.0


def fan_chart(
    predictions: Distribution | ArrayLike,
    y: ArrayLike | None = None,
    x: ArrayLike | None = None,
    *,
    levels: Sequence[float] = LEVELS,
    n_bins: int = 40,
    xlabel: str | None = None,
    ylabel: str = "y",
    title: str = "Predictive distribution",
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw bands between quantiles of y, and y itself, along a feature x or the sorted prediction.

    predictions : a distribution of the library, such as `model.predict_distribution(X)`, or
        quantiles (n_rows, n_levels) at `levels`.
    x : numbers (n_rows,) to sort rows by; by default rows are in the order of their middle
        quantile. A column of a table names the axis.

    More than 60 rows are drawn as up to `n_bins` bins with ten of them or more. The bands of a bin
    are quantiles of all its rows together, a mixture of their distributions: rows next to each
    other along a feature differ in the others, and a band must hold its share of outcomes all the
    same.
    """
    shown = np.asarray(sorted(levels), dtype=np.float64)
    if len(shown) < 2 or not ((shown > 0.0) & (shown < 1.0)).all():
        raise ValueError(f"levels must be at least two numbers in (0, 1), got {list(levels)}")
    table = _read_quantiles(predictions, shown, levels)
    position = _read_position(x, table)
    order = np.argsort(position, kind="stable")
    axes = axes_to_draw_on(axes, 8.0, 4.6)
    if y is not None:
        _draw_outcomes(axes, position[order], _read("y", y, len(table))[order])
    is_binned = len(table) > FINEST_BANDS
    at, bands = position[order], table[order]
    if is_binned:
        parts = np.array_split(order, min(n_bins, len(table) // ROWS_OF_BIN))
        mixed = _fine_quantiles(predictions, table, shown)
        at = np.array([position[rows].mean() for rows in parts])
        bands = np.array([np.quantile(mixed[rows], shown) for rows in parts])
    n_bands = len(shown) // 2
    for number in range(n_bands):  # from the outermost inwards
        low, high = shown[number], shown[-1 - number]
        colour = lighter(BLUE, 0.2 + 0.35 * number / n_bands)
        axes.fill_between(
            at, bands[:, number], bands[:, -1 - number], color=colour, linewidth=0, zorder=1,
            label=f"{_percent(low)} – {_percent(high)} %",
        )  # fmt: skip
    if len(shown) % 2:
        name = "median" if shown[n_bands] == 0.5 else f"{_percent(shown[n_bands])} %"
        axes.plot(at, bands[:, n_bands], color=BLUE, linewidth=1.8, zorder=3, label=name)
    if xlabel is None:
        column = getattr(x, "name", None)
        xlabel = "rows, by their prediction" if x is None else str(column or "x")
    name_axes(axes, xlabel, ylabel)
    axes.margins(x=0.01)
    write_legend(axes, loc="best")
    write_title(axes, title, f"{len(table):,} rows in {len(at)} bins" if is_binned else "")
    return axes


def _draw_outcomes(axes: "Axes", x: Floats, y: Floats) -> None:
    kept = np.unique(np.linspace(0, len(y) - 1, MOST_POINTS).astype(np.intp))
    axes.plot(
        x[kept], y[kept], "o", color=INK, alpha=0.3, markersize=3, markeredgewidth=0, zorder=2,
        label="outcomes",
    )  # fmt: skip


def reliability(
    probability: Reliability | ArrayLike,
    y: ArrayLike | None = None,
    *,
    n_bins: int = N_BINS,
    weight: ArrayLike | None = None,
    title: str = "Reliability",
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw observed against predicted frequencies in bins with equally many rows.

    probability : (n_rows,) of y = 1, or (n_rows, n_classes), and the event is that the most likely
        class is y; or a table of `sglb.calibration.reliability`.

    The band is +- 2 standard errors of the observed frequency if the predictions are right: points
    outside show that they are not.
    """
    if isinstance(probability, Reliability):
        table = probability
    else:
        if y is None:
            raise ValueError("reliability needs y, the outcome of each row")
        is_event = np.ndim(probability) == 1
        if is_event and len(np.unique(np.asarray(y))) == 1 and np.size(y) > 1:
            raise ValueError(
                f"y is {np.asarray(y).flat[0]} in every row: there is no frequency to compare with"
            )
        table = calibration.reliability(probability, y, n_bins, weight)
    if not len(table.predicted):
        raise ValueError("reliability needs at least a row")
    axes = axes_to_draw_on(axes, 5.2, 5.2)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, linestyle=(0, (5, 3)), zorder=1)
    margin = ERRORS_SHOWN * table.standard_error
    axes.errorbar(
        table.predicted, table.predicted, yerr=[
            np.minimum(margin, table.predicted), np.minimum(margin, 1.0 - table.predicted)
        ], fmt="none", ecolor=GREY, alpha=0.35, elinewidth=7, zorder=1,
        label="right ± 2 standard errors",
    )  # fmt: skip
    axes.plot(
        table.predicted, table.observed, color=BLUE, linewidth=1.2, marker="o", markersize=5,
        clip_on=False, zorder=3, label="observed",
    )  # fmt: skip
    gap = np.average(np.abs(table.observed - table.predicted), weights=table.weight)
    fewest, most = int(table.n_rows.min()), int(table.n_rows.max())
    rows = f"{fewest:,}" if fewest == most else f"{fewest:,} – {most:,}"
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    name_axes(axes, "predicted frequency", "observed frequency")
    write_legend(axes, loc="upper left")
    write_title(axes, title, f"{len(table.n_rows)} bins of {rows} rows; mean gap {gap:.3f}")
    return axes


def coverage_by_scale(
    y: CoverageTable | ArrayLike,
    bounds: Any = None,
    scale: ArrayLike | None = None,
    *,
    coverage: float | None = None,
    n_bins: int = N_BINS,
    title: str = "Coverage by predicted scale",
    axes: "Sequence[Axes] | None" = None,
) -> "tuple[Axes, Axes]":
    """Draw coverage and mean width of intervals from rows of small to rows of large scale.

    y : outcomes (n_rows,), with `bounds` (n_rows, 2), or the intervals of a conformal method, and
        the predicted `scale` (n_rows,); or a table of `sglb.calibration.coverage_by_scale`.
    coverage : what the intervals promise; conformal intervals know it.

    Returns two axes, coverage above width, or draws on the two that are passed in. The band is
    +- 2 standard errors of the observed coverage if it is as promised in every bin. Where an
    interval is infinite, as of too few calibration rows, so is the mean width: a mark at the top.
    """
    if coverage is None:
        coverage = getattr(bounds, "coverage", None)
        if coverage is None:
            raise ValueError("coverage is missing: the probability that the intervals promise")
    table = y if isinstance(y, CoverageTable) else _coverage_table(y, bounds, scale, n_bins)
    if not len(table.coverage):
        raise ValueError("coverage_by_scale needs at least a row")
    upper, lower = _two_axes(axes)
    # The middle of each bin in per cent of the rows.
    at = 100.0 * (np.cumsum(table.n_rows) - 0.5 * table.n_rows) / table.n_rows.sum()
    upper.axhline(coverage, color=GREY, linewidth=1.0, linestyle=(0, (5, 3)), zorder=1)
    error = ERRORS_SHOWN * np.sqrt(coverage * (1.0 - coverage) / table.n_rows)
    upper.errorbar(
        at, np.full(len(at), coverage), yerr=[
            np.minimum(error, coverage), np.minimum(error, 1.0 - coverage)
        ], fmt="none", ecolor=GREY, alpha=0.35, elinewidth=7, zorder=1,
        label="promised ± 2 standard errors",
    )  # fmt: skip
    upper.plot(
        at, table.coverage, color=BLUE, marker="o", markersize=5, linewidth=1.2, clip_on=False,
        zorder=3, label="observed",
    )  # fmt: skip
    lowest = max(min(float(table.coverage.min()), coverage - float(error.max())), 0.0)
    # Coverage ends at 1: distances from the promise are seen from the lowest point to there.
    upper.set_ylim(max(0.0, lowest - 0.15 * (1.0 - lowest)), 1.0)
    _draw_widths(lower, at, table.width)
    for panel in (upper, lower):
        panel.set_xlim(0, 100)
    name_axes(upper, "", "coverage")
    name_axes(lower, "rows by predicted scale, % (small to large)", "mean width")
    write_legend(upper, loc="lower left")
    rows = int(table.n_rows.sum())
    mean = float(np.average(table.coverage, weights=table.n_rows))
    covered = f"{_percent(mean)} % are covered, {_percent(coverage)} % promised"
    write_title(upper, title, f"{rows:,} rows; {covered}")
    return upper, lower


def _draw_widths(axes: "Axes", at: Floats, width: Floats) -> None:
    """Draw mean widths, and marks on top where they are infinite."""
    is_finite = np.isfinite(width)
    axes.plot(
        at, np.where(is_finite, width, np.nan), color=BLUE, marker="o", markersize=5, linewidth=1.2
    )
    axes.set_ylim(0, 1.08 * float(width[is_finite].max(initial=0.0)) or 1.0)
    if not is_finite.all():
        axes.plot(
            at[~is_finite], np.full((~is_finite).sum(), 0.97), "^", color=INK, markersize=6,
            transform=axes.get_xaxis_transform(), label="infinite",
        )  # fmt: skip
        write_legend(axes, loc="upper left")


def _coverage_table(
    y: ArrayLike, bounds: Any, scale: ArrayLike | None, n_bins: int
) -> CoverageTable:
    if bounds is None or scale is None:
        raise ValueError("coverage_by_scale needs y, bounds and scale, or a table of them")
    return calibration.coverage_by_scale(y, getattr(bounds, "bounds", bounds), scale, n_bins)


def rejection_curve(
    error: ArrayLike,
    uncertainty: Any,
    *,
    ylabel: str = "error left, mean over all rows",
    title: str = "Rejection of uncertain rows",
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw the error that is left when the most uncertain rows are rejected.

    error : any loss of a row that is not negative, (n_rows,).
    uncertainty : (n_rows,), several of them by name, or what `predict_uncertainty` returns.

    Between the straight line of random rejection and the oracle, who knows the errors. The
    prediction rejection ratio (PRR) is 0 on the line and 1 on the oracle.
    """
    several = _several(uncertainty)
    axes = axes_to_draw_on(axes, 7.0, 4.6)
    oracle = calibration.rejection_curve(error, error)
    if not oracle.error[0] > 0.0:
        raise ValueError("error is zero in every row: there is nothing to reject")
    for (name, values), colour in zip(several.items(), colours(len(several), first=3), strict=True):
        curve = calibration.rejection_curve(error, values)
        ratio = calibration.prediction_rejection_ratio(error, values)
        score = "all errors are equal" if np.isnan(ratio) else f"PRR {ratio:.2f}"
        axes.plot(
            100.0 * curve.share, curve.error, color=colour, linewidth=1.8, label=f"{name}, {score}"
        )
    axes.plot(
        [0, 100], [oracle.error[0], 0], color=GREY, linewidth=1.0, linestyle=(0, (5, 3)),
        label="random",
    )  # fmt: skip
    axes.plot(
        100.0 * oracle.share, oracle.error, color=INK, linewidth=1.0, linestyle=":", label="oracle"
    )
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1.05 * float(oracle.error[0]))
    name_axes(axes, "rejected rows, %", ylabel)
    write_legend(axes, loc="upper right")
    write_title(axes, title, f"{len(oracle.error) - 1:,} rows")
    return axes


def _read(name: str, values: ArrayLike, n_rows: int) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), not {vector.shape}")
    require_rows(name, vector, np.isfinite(vector), "finite")
    return vector


def _read_quantiles(
    predictions: Distribution | ArrayLike, shown: Floats, levels: Sequence[float]
) -> Floats:
    """Return the quantiles at ascending levels, (n_rows, n_levels)."""
    if isinstance(predictions, Distribution):
        table = predictions.quantiles(shown)
    else:
        table = np.asarray(predictions, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != len(levels):
            raise ValueError(
                f"predictions must be a distribution or have shape (n_rows, {len(levels)}), a"
                f" quantile for each of the levels, not {table.shape}"
            )
        table = table[:, np.argsort(levels, kind="stable")]
    if not len(table):
        raise ValueError("fan_chart needs at least a row")
    require_rows("predictions", table, np.asarray(np.isfinite(table).all(axis=1)), "finite")
    return table


def _fine_quantiles(predictions: Distribution | ArrayLike, table: Floats, shown: Floats) -> Floats:
    """Return quantiles at FINE levels, (n_rows, len(FINE)), that stand for the whole distribution.

    Between known quantiles they are interpolated, and extrapolated beyond, as if normal.
    """
    if isinstance(predictions, Distribution):
        return predictions.quantiles(FINE)
    score, known = ndtri(FINE), ndtri(shown)
    left = np.clip(np.searchsorted(known, score) - 1, 0, len(known) - 2)
    share = (score - known[left]) / (known[left + 1] - known[left])
    return np.asarray(table[:, left] + share * (table[:, left + 1] - table[:, left]))


def _read_position(x: ArrayLike | None, table: Floats) -> Floats:
    """Return where rows are along the axis: their feature, or their rank by prediction."""
    if x is not None:
        return _read("x", x, len(table))
    middle = table[:, table.shape[1] // 2]
    position = np.empty(len(table))
    position[np.argsort(middle, kind="stable")] = np.arange(1, len(table) + 1)
    return position


def _several(uncertainty: Any) -> dict[str, Any]:
    """Return uncertainties by name."""
    if hasattr(uncertainty, "_asdict"):  # parts that are not known are None
        parts = uncertainty._asdict()
        parts.pop("mean", None)
        return {name: values for name, values in parts.items() if values is not None}
    if isinstance(uncertainty, Mapping):
        if not uncertainty:
            raise ValueError("uncertainty is empty: there is nothing to draw")
        return dict(uncertainty)
    return {"uncertainty": uncertainty}


def _two_axes(axes: "Sequence[Axes] | None") -> "tuple[Axes, Axes]":
    if axes is None:
        figure = new_figure(7.0, 5.6)
        grid = figure.add_gridspec(2, 1, height_ratios=[3, 2])
        upper = figure.add_subplot(grid[0])
        lower = figure.add_subplot(grid[1], sharex=upper)
        upper.tick_params(labelbottom=False)
    else:
        try:
            upper, lower = axes
        except (TypeError, ValueError):
            raise ValueError("axes must be two, one for coverage and one for width") from None
    quiet(upper)
    quiet(lower)
    return upper, lower


def _percent(level: float) -> str:
    return f"{100.0 * level:.3g}"
