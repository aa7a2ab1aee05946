"""Draw draws: whether chains have mixed, and what a model and its uncertainty make of a feature."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import diagnostics
from sglb.errors import require_rows
from sglb.plots.style import (
    INK,
    PALETTE,
    axes_to_draw_on,
    colours,
    lighter,
    name_axes,
    write_legend,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

GREY, BLUE = PALETTE[0], PALETTE[3]
# Chains that a legend names; more would hide the lines.
MOST_NAMED = 8
# Rows that a mean over rows is taken of, and quantiles between which a feature is varied: beyond
# there are too few rows to say anything of.
ROWS, OUTERMOST = 500, 0.01


class PosteriorDraws(Protocol):
    """Anything with draws, such as `model.posterior(X, y)`."""

    def predict(self, X: Any) -> Floats:
        """Return predictions, (n_draws, n_rows[, n_outputs])."""
        ...


def draws_trace(
    draws: ArrayLike,
    *,
    ylabel: str = "value",
    title: str = "Draws",
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw a number of each state of chains, (n_chains, n_draws) or (n_draws,), in their order.

    Chains that have mixed look like the same noise; trends and levels of their own show that they
    have not. The subtitle has R-hat and the effective number of draws.
    """
    table = _read_chains(draws)
    n_chains, n_draws = table.shape
    axes = axes_to_draw_on(axes, 8.0, 4.0)
    named = 1 < n_chains <= MOST_NAMED
    for number, colour in enumerate(colours(n_chains, first=3)):
        axes.plot(
            np.arange(1, n_draws + 1), table[number], color=colour, linewidth=0.9, alpha=0.85,
            label=f"chain {number + 1}" if named else None,
        )  # fmt: skip
    axes.set_xlim(1, max(n_draws, 2))
    axes.locator_params(axis="x", integer=True)
    name_axes(axes, "draw", ylabel)
    if named:
        write_legend(axes, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    write_title(axes, title, _mixing(table))
    return axes


def rank_plot(
    draws: ArrayLike,
    *,
    n_bins: int = 20,
    title: str = "Ranks of draws",
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw how often each chain has small, middling and large draws, (n_chains, n_draws).

    The ranks are among the draws of all chains: if these have mixed, the bars of a chain are as
    high as its dashed line but for chance, of which the band is +- 2 standard deviations for draws
    that are independent (Vehtari et al., 2021).
    """
    table = _read_chains(draws)
    n_chains, n_draws = table.shape
    if n_chains < 2:
        raise ValueError("rank_plot compares chains, and there is a single one")
    n_bins = min(n_bins, n_draws)
    if n_bins < 2:
        raise ValueError("rank_plot needs at least two draws in a chain, and two bins")
    # Equal draws, such as those of rejected moves, have their ranks in no particular order.
    order = np.argsort(table, axis=None, kind="stable")
    rank = np.empty(table.size)
    rank[order] = np.arange(table.size)
    bins = (rank.reshape(table.shape) * n_bins / table.size).astype(np.intp)
    counts = np.array([np.bincount(row, minlength=n_bins) for row in bins])
    sizes = np.bincount(bins.ravel(), minlength=n_bins)
    share = 1.0 / n_chains
    # Draws of a chain in a bin are drawn without replacement from those of all chains.
    spread = np.sqrt(sizes * share * (1.0 - share) * (table.size - sizes) / (table.size - 1))
    expected = sizes * share
    highest = max(float(counts.max()), float((expected + 2.0 * spread).max()))
    height = 0.86 / highest
    edges = np.linspace(0, 100, n_bins + 1)
    axes = axes_to_draw_on(axes, 8.0, 1.4 + 0.75 * n_chains)
    axes.grid(visible=False)
    for number, colour in enumerate(colours(n_chains, first=3)):
        bottom = n_chains - 1.0 - number  # the first chain on top
        low = np.maximum(expected - 2.0 * spread, 0.0)
        axes.bar(
            edges[:-1], height * counts[number], width=np.diff(edges), bottom=bottom, align="edge",
            color=lighter(colour, 0.6), edgecolor="white", linewidth=0.6,
        )  # fmt: skip
        axes.stairs(
            bottom + height * (expected + 2.0 * spread), edges, baseline=bottom + height * low,
            fill=True, color=INK, alpha=0.16, linewidth=0,
        )  # fmt: skip
        axes.plot(
            [0, 100], [bottom + height * expected.mean()] * 2, color=INK, linewidth=0.9,
            linestyle=(0, (5, 3)),
        )  # fmt: skip
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.02, n_chains)
    axes.set_yticks(
        0.43 + np.arange(n_chains), [f"chain {n_chains - number}" for number in range(n_chains)]
    )
    axes.tick_params(axis="y", left=False)
    name_axes(axes, "rank among the draws of all chains, %", "")
    write_title(axes, title, _mixing(table))
    return axes


def partial_dependence_posterior(
    posterior: PosteriorDraws,
    X: Any,
    feature: Any,
    *,
    output: int | None = None,
    grid: ArrayLike | None = None,
    n_points: int = 30,
    coverage: float = 0.9,
    ylabel: str | None = None,
    title: str | None = None,
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw the mean prediction as a feature varies, and how far draws of the model agree on it.

    posterior : what `model.posterior` or `sglb.posterior_of` returns, or any object whose
        predict(X) is (n_draws, n_rows[, n_outputs]).
    X : array or pandas DataFrame, of which up to 500 rows are used.
    feature : index of the column, or its name; a column of numbers.
    output : class or output to draw; by default the second of two classes.
    grid : values of the feature; by default `n_points` quantiles between those of 1 and 99 %.

    The band holds the means over rows of a share `coverage` of the draws. It is uncertainty about
    the model's mean, not the spread of y. Marks on the axis are deciles of the feature.
    """
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage must be in (0, 1), got {coverage!r}")
    column = _numbers_of(X, feature)
    if grid is None:
        levels = np.linspace(OUTERMOST, 1.0 - OUTERMOST, n_points)
        values = np.unique(np.quantile(column, levels))
    else:
        values = np.unique(np.asarray(grid, dtype=np.float64))
        require_rows("grid", values, np.isfinite(values), "finite")
    if len(values) < 2:
        raise ValueError(f"column {feature!r} has a single value, so that nothing can vary")
    curves = np.array(
        [_chosen(posterior.predict(_with(X, feature, value)), output) for value in values]
    )
    tail = 0.5 - 0.5 * coverage
    low, high = np.quantile(curves, [tail, 1.0 - tail], axis=1)
    axes = axes_to_draw_on(axes, 7.0, 4.4)
    share = f"{100.0 * coverage:.3g} % of the draws"
    axes.fill_between(values, low, high, color=BLUE, alpha=0.2, linewidth=0, label=share)
    axes.plot(values, curves.mean(axis=1), color=BLUE, linewidth=1.8, label="mean")
    deciles = np.quantile(column, np.linspace(0.1, 0.9, 9))
    axes.plot(
        deciles, np.full(9, 0.02), "|", color=GREY, markersize=7,
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip
    axes.set_xlim(values[0], values[-1])
    name = f"column {feature}" if isinstance(feature, int | np.integer) else str(feature)
    name_axes(axes, name, "mean prediction" if ylabel is None else ylabel)
    write_legend(axes, loc="best")
    write_title(
        axes,
        f"Partial dependence on {name}" if title is None else title,
        f"{curves.shape[1]} draws; marks: deciles of the feature",
    )
    return axes


def _read_chains(draws: ArrayLike) -> Floats:
    table = np.asarray(draws, dtype=np.float64)
    if table.ndim == 1:
        table = table[None]
    if table.ndim != 2 or not table.size:
        raise ValueError(
            f"draws must have shape (n_chains, n_draws), one number for each draw, not"
            f" {np.shape(draws)}"
        )
    if not np.isfinite(table).all():
        chain, draw = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"draw {draw} of chain {chain} is {table[chain, draw]}, not finite")
    return table


def _mixing(table: Floats) -> str:
    """Return R-hat and effective draws in words."""
    n_chains, n_draws = table.shape
    size = f"{n_chains} × {n_draws:,} draws" if n_chains > 1 else f"{n_draws:,} draws"
    if n_draws < diagnostics.LEAST_DRAWS:
        return size
    rhat, ess = diagnostics.rhat(table)[0], diagnostics.ess_bulk(table)[0]
    if np.isnan(rhat):
        return f"{size}, all equal"
    return f"{size}; R-hat {rhat:.3f}, effective draws {ess:,.0f}"


def _rows_used(n_rows: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, n_rows - 1, ROWS).astype(np.intp))


def _numbers_of(X: Any, feature: Any) -> Floats:
    """Return the numbers of a column, without those that are missing."""
    if not len(X):
        raise ValueError("X has no rows")
    if hasattr(X, "iloc"):
        is_index = isinstance(feature, int | np.integer) and feature not in X.columns
        if not is_index and feature not in X.columns:
            raise ValueError(f"X has no column {feature!r}")
        column = X.iloc[:, feature] if is_index else X[feature]
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        if not (isinstance(feature, int | np.integer) and -X.shape[1] <= feature < X.shape[1]):
            raise ValueError(f"feature={feature!r} is not the index of one of {X.shape[1]} columns")
        column = X[:, feature]
    else:
        raise TypeError(
            f"X must be an array (n_rows, n_features) or a pandas DataFrame, not {type(X).__name__}"
        )
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"column {feature!r} does not consist of numbers") from None
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        raise ValueError(f"column {feature!r} has no finite number")
    return finite


def _with(X: Any, feature: Any, value: float) -> Any:
    """Return some rows of X with a value of the feature in all of them."""
    if isinstance(X, np.ndarray):
        rows = X[_rows_used(len(X))].astype(np.result_type(X.dtype, np.float64))
        rows[:, feature] = value
        return rows
    frame = X.iloc[_rows_used(len(X))].copy()
    name = feature if feature in frame.columns else frame.columns[feature]
    frame[name] = value
    return frame


def _chosen(predictions: Floats, output: int | None) -> Floats:
    """Return the mean over rows of an output of each draw."""
    draws = np.asarray(predictions, dtype=np.float64)
    if draws.ndim == 3:
        if output is None:
            if draws.shape[2] != 2:
                raise ValueError(f"state output, the index of one of {draws.shape[2]} classes")
            output = 1
        if not 0 <= output < draws.shape[2]:
            raise ValueError(f"output={output} is not one of 0..{draws.shape[2] - 1}")
        draws = draws[:, :, output]
    return np.asarray(draws.mean(axis=1))
