"""Draw a training or an experiment: arrays in, a matplotlib Figure out.

Bands are mean +- 1 standard error, sd / sqrt(n).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb.plots.style import INK, PALETTE, colours, label_ends, new_axes, write_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_STEPS = 20  # a line of up to this many steps marks each by a point
LONGEST_NAME = 40  # characters that leave bars more than half of the width


def error_curves(
    curves: Mapping[str, NDArray[np.float64]],
    *,
    title: str = "Test error over steps",
    subtitle: str = "",
    ylabel: str = "test 0-1 error",
    at: Sequence[int] | None = None,
) -> "Figure":
    """Draw the mean over folds of each method's curve (n_folds, n_steps) with its band.

    Curves have a value for every step, or for each of the steps `at`, drawn on a log scale.
    """
    if not curves:
        raise ValueError("curves is empty: there is nothing to draw")
    tables = {name: np.atleast_2d(values) for name, values in curves.items()}
    figure, axes = new_axes(8.0, 4.6)
    colour_of = dict(zip(curves, colours(len(curves)), strict=True))
    ends: dict[str, float] = {}
    low, high = np.inf, -np.inf
    for name, values in tables.items():
        folds, steps = values.shape
        mean = values.mean(axis=0)
        error = np.std(values, axis=0, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(steps)
        steps_drawn = np.arange(1, steps + 1) if at is None else np.asarray(at)
        axes.plot(steps_drawn, mean, color=colour_of[name], linewidth=1.5, solid_capstyle="round")
        axes.fill_between(
            steps_drawn, mean - error, mean + error, color=colour_of[name], alpha=0.14, linewidth=0
        )
        ends[name] = float(mean[-1])
        # The first hundredth of the steps may be far off; it must not flatten the rest.
        low = min(low, float((mean - error)[steps // 100 :].min()))
        high = max(high, float((mean + error)[steps // 100 :].max()))
        axes.set_xlim(steps_drawn[0], max(steps_drawn[-1], steps_drawn[0] + 1))
    if at is not None:
        axes.set_xscale("log")
    margin = 0.05 * (high - low) or 0.01
    axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel("boosting steps", fontsize=10, color=INK)
    axes.set_ylabel(ylabel, fontsize=10, color=INK)
    label_ends(axes, ends, colour_of)
    write_title(axes, title, subtitle)
    return figure


def sweep(
    at: Sequence[float],
    lines: Mapping[str, NDArray[np.float64]],
    levels: Mapping[str, float],
    *,
    marks: Mapping[str, float],
    title: str,
    subtitle: str = "",
    xlabel: str = "",
    ylabel: str = "",
) -> "Figure":
    """Draw lines (n_folds, len(at)) over a logarithmic axis with their bands, levels to compare
    them with as dashed lines, and marks on the axis as dotted lines.
    """
    figure, axes = new_axes(8.0, 4.6)
    colour_of = dict(zip(lines, colours(len(lines), first=3), strict=True))
    greys = dict.fromkeys(levels, PALETTE[0])
    ends: dict[str, float] = {}
    axes.set_xscale("log")
    for name, values in lines.items():
        mean = values.mean(axis=0)
        spread = np.std(values, axis=0, ddof=1) if len(values) > 1 else np.zeros_like(mean)
        error = spread / np.sqrt(len(values))
        axes.plot(
            at,
            mean,
            color=colour_of[name],
            linewidth=1.8,
            marker="o",
            markersize=3.5,
            clip_on=False,
        )
        axes.fill_between(
            at, mean - error, mean + error, color=colour_of[name], alpha=0.14, linewidth=0
        )
        ends[name] = float(mean[-1])
    for name, level in levels.items():
        axes.axhline(level, color=greys[name], linewidth=1.0, linestyle=(0, (5, 3)))
        ends[name] = level
    axes.set_xlim(min(at), max(at))
    for name, position in marks.items():
        axes.axvline(position, color="#8C8C8C", linewidth=1.0, linestyle=":")
        right = position**2 > min(at) * max(at)  # the text goes towards the middle
        axes.annotate(
            name,
            xy=(position, 1),
            xytext=(-4 if right else 4, -4),
            ha="right" if right else "left",
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            fontsize=8.5,
            color="#595959",
        )
    axes.set_xlabel(xlabel, fontsize=10, color=INK)
    axes.set_ylabel(ylabel, fontsize=10, color=INK)
    label_ends(axes, ends, colour_of | greys)
    write_title(axes, title, subtitle)
    return figure


def importances(
    names: Sequence[str], values: ArrayLike, *, top: int = 12, title: str = "Feature importances"
) -> "Figure":
    """Draw the largest importances as bars, longest on top."""
    heights = np.asarray(values, dtype=np.float64)
    if heights.shape != (len(names),):
        raise ValueError(
            f"there are {len(names)} names, but the importances have shape {heights.shape}"
        )
    chosen = np.argsort(-heights, kind="stable")[:top][::-1]
    figure, axes = new_axes(8.0, 1.1 + 0.3 * max(len(chosen), 3))
    axes.grid(visible=False)
    # By index: two long names may be equal once they are shortened.
    axes.barh(np.arange(len(chosen)), heights[chosen], color=PALETTE[3], height=0.68)
    axes.set_yticks(np.arange(len(chosen)), [shortened(str(names[j])) for j in chosen])
    for index, j in enumerate(chosen):
        axes.annotate(
            f"{100.0 * heights[j]:.1f} %",
            xy=(heights[j], index),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=INK,
        )
    axes.set_xlim(0, 1.1 * max(float(heights.max(initial=0.0)), 1e-12))
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", bottom=False, labelbottom=False)
    axes.tick_params(axis="y", left=False)
    hidden = len(names) - len(chosen)
    rest = f", {hidden} smaller ones not shown" if hidden else ""
    write_title(axes, title, f"share of the total gain{rest}")
    return figure


def training_curves(
    evals_result: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    metric: str | None = None,
    best_iteration: int | None = None,
    title: str = "Training",
) -> "Figure":
    """Draw a metric, by default the first, of an estimator's `evals_result_`, a line per set."""
    metrics = list(dict.fromkeys(name for scores in evals_result.values() for name in scores))
    shown = metric if metric is not None else next(iter(metrics), None)
    if shown not in metrics:
        raise ValueError(f"metric={shown!r} is not in evals_result, which has {metrics}")
    figure, axes = new_axes(8.0, 4.6)
    colour_of = dict(zip(evals_result, colours(len(evals_result), first=3), strict=True))
    ends: dict[str, float] = {}
    longest = 2
    for name, scores in evals_result.items():
        if shown not in scores:
            continue
        values = np.asarray(scores[shown], dtype=np.float64)
        steps = np.arange(1, values.size + 1)
        marker = "o" if values.size <= FEW_STEPS else None
        axes.plot(
            steps, values, color=colour_of[name], linewidth=1.8, marker=marker, markersize=3.5,
            clip_on=False,
        )  # fmt: skip
        longest = max(longest, values.size)
        finite = values[~np.isnan(values)]
        ends[name] = float(finite[-1]) if finite.size else np.nan
    if best_iteration is not None:
        axes.axvline(best_iteration, color="#8C8C8C", linewidth=1.0, linestyle=(0, (4, 3)))
    note = "" if best_iteration is None else f"dashed: the best step, {best_iteration}"
    axes.set_xlim(1, longest)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("boosting steps", fontsize=10, color=INK)
    axes.set_ylabel(shown, fontsize=10, color=INK)
    label_ends(axes, ends, colour_of)
    write_title(axes, title, note)
    return figure


def shortened(name: str) -> str:
    """Return a name of at most LONGEST_NAME characters: start and end, which differ most often."""
    half = (LONGEST_NAME - 1) // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[-half:]}"
