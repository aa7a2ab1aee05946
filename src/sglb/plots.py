"""Draw a training or an experiment: arrays in, a matplotlib Figure out.

The last room on the data's way. Nothing here uses pyplot or any global state: a figure belongs to
the caller, on a machine with or without a display. A notebook shows a figure that is the last value
of a cell. Bands are mean +- 1 standard error, sd / sqrt(n).
"""

import io
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito (2008): distinct for every common kind of colour vision.
PALETTE = (
    "#6E6E6E", "#E69F00", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#56B4E9", "#7A4B1E",
    "#000000",
)  # fmt: skip
INK, FAINT = "#262626", "#D9D9D9"
DOTS_PER_INCH = 150
SHOWN_PER_INCH = 100  # pixels of a notebook; finer screens use all the dots
FEW_STEPS = 20  # a line of up to this many steps marks each by a point
LONGEST_NAME = 40  # characters that leave bars more than half of the width


def panels(width: float, height: float, titles: Sequence[str]) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure of this size in inches with titled axes, two in a row."""
    figure = _figure(width, height)
    n_rows = -(-len(titles) // 2)
    panels = [figure.add_subplot(n_rows, 2, number + 1) for number in range(len(titles))]
    for axes, title in zip(panels, titles, strict=True):
        _quiet(axes)
        axes.set_title(title, loc="left", fontsize=10.5, color=INK, pad=8)
    return figure, panels


def _axes(width: float, height: float) -> "tuple[Figure, Axes]":
    """Return an empty figure of this size in inches with a pair of axes."""
    figure = _figure(width, height)
    axes = figure.add_subplot()
    _quiet(axes)
    return figure, axes


def _figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ImportError('plots need matplotlib: pip install "sglb[plots]"') from error
    figure = Figure(figsize=(width, height), facecolor="white")
    figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.12)
    # Notebooks call this method. They know figures of pyplot, which is not used here.
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def _png(figure: "Figure") -> tuple[bytes, dict[str, int]]:
    """Return a figure as a PNG, and the size at which a notebook shows it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    width, height = (round(SHOWN_PER_INCH * inches) for inches in figure.get_size_inches())
    return buffer.getvalue(), {"width": width, "height": height}


def _quiet(axes: "Axes") -> None:
    """Remove all lines that are not needed to read off numbers."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#8C8C8C")
    axes.tick_params(colors=INK, labelsize=9, color="#8C8C8C")
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def _title(axes: "Axes", title: str, subtitle: str = "") -> None:
    """Write a title and a quieter line under it, both flush left."""
    axes.set_title(title, loc="left", fontsize=12, color=INK, pad=24 if subtitle else 10)
    if subtitle:
        axes.annotate(
            subtitle,
            xy=(0, 1),
            xytext=(0, 9),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=9,
            color="#595959",
        )


def _spread_out(heights: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Return the heights moved apart to at least `gap`, each as little as possible.

    Labels that would overlap form a block around their mean (pool adjacent violators).
    """
    order = np.argsort(heights)
    blocks: list[list[float]] = []  # each: sum of its heights, and their number
    for height in heights[order]:
        blocks.append([float(height), 1.0])
        while len(blocks) > 1:
            (left_sum, left_size), (right_sum, right_size) = blocks[-2], blocks[-1]
            left = left_sum / left_size + (left_size - 1) / 2 * gap
            right = right_sum / right_size - (right_size - 1) / 2 * gap
            if right - left >= gap:
                break
            blocks[-2:] = [[left_sum + right_sum, left_size + right_size]]
    placed = np.empty_like(heights)
    at = 0
    for total, size in blocks:
        count = int(size)
        centre = total / size
        placed[order[at : at + count]] = centre + (np.arange(count) - (count - 1) / 2) * gap
        at += count
    return placed


def _label_ends(axes: "Axes", ends: Mapping[str, float], colours: Mapping[str, str]) -> None:
    """Name each line to the right of its end; a line of NaN alone at the bottom."""
    low, high = axes.get_ylim()
    ends = {name: low if np.isnan(height) else height for name, height in ends.items()}
    # A line of 9-point text is about 6 % of the height of these axes.
    heights = _spread_out(np.array(list(ends.values())), 0.06 * (high - low))
    for (name, _), height in zip(ends.items(), heights, strict=True):
        axes.annotate(
            name,
            xy=(1, float(height)),
            xytext=(6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
            color=_darker(colours[name]),
            annotation_clip=False,
        )


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
    figure, axes = _axes(8.0, 4.6)
    colours = dict(zip(curves, _colours(len(curves)), strict=True))
    ends: dict[str, float] = {}
    low, high = np.inf, -np.inf
    for name, values in tables.items():
        folds, steps = values.shape
        mean = values.mean(axis=0)
        error = np.std(values, axis=0, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(steps)
        steps_drawn = np.arange(1, steps + 1) if at is None else np.asarray(at)
        axes.plot(steps_drawn, mean, color=colours[name], linewidth=1.5, solid_capstyle="round")
        axes.fill_between(
            steps_drawn, mean - error, mean + error, color=colours[name], alpha=0.14, linewidth=0
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
    _label_ends(axes, ends, colours)
    _title(axes, title, subtitle)
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
    figure, axes = _axes(8.0, 4.6)
    colours = dict(zip(lines, _colours(len(lines), first=3), strict=True))
    greys = dict.fromkeys(levels, PALETTE[0])
    ends: dict[str, float] = {}
    axes.set_xscale("log")
    for name, values in lines.items():
        mean = values.mean(axis=0)
        spread = np.std(values, axis=0, ddof=1) if len(values) > 1 else np.zeros_like(mean)
        error = spread / np.sqrt(len(values))
        axes.plot(
            at, mean, color=colours[name], linewidth=1.8, marker="o", markersize=3.5, clip_on=False
        )
        axes.fill_between(
            at, mean - error, mean + error, color=colours[name], alpha=0.14, linewidth=0
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
    _label_ends(axes, ends, colours | greys)
    _title(axes, title, subtitle)
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
    figure, axes = _axes(8.0, 1.1 + 0.3 * max(len(chosen), 3))
    axes.grid(visible=False)
    # By index: two long names may be equal once they are shortened.
    axes.barh(np.arange(len(chosen)), heights[chosen], color=PALETTE[3], height=0.68)
    axes.set_yticks(np.arange(len(chosen)), [_shortened(str(names[j])) for j in chosen])
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
    _title(axes, title, f"share of the total gain{rest}")
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
    figure, axes = _axes(8.0, 4.6)
    colours = dict(zip(evals_result, _colours(len(evals_result), first=3), strict=True))
    ends: dict[str, float] = {}
    longest = 2
    for name, scores in evals_result.items():
        if shown not in scores:
            continue
        values = np.asarray(scores[shown], dtype=np.float64)
        steps = np.arange(1, values.size + 1)
        marker = "o" if values.size <= FEW_STEPS else None
        axes.plot(
            steps, values, color=colours[name], linewidth=1.8, marker=marker, markersize=3.5,
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
    _label_ends(axes, ends, colours)
    _title(axes, title, note)
    return figure


def _shortened(name: str) -> str:
    """Return a name of at most LONGEST_NAME characters: start and end, which differ most often."""
    half = (LONGEST_NAME - 1) // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def _colours(count: int, first: int = 0) -> list[str]:
    """Return `count` colours of the palette from number `first` on, starting over at its end."""
    return [PALETTE[(first + number) % len(PALETTE)] for number in range(count)]


def _darker(colour: str) -> str:
    """Return a colour at three quarters of its brightness: text is thinner than its line."""
    return "#" + "".join(f"{int(colour[at : at + 2], 16) * 3 // 4:02X}" for at in (1, 3, 5))


def save(figure: "Figure", path: str | Path, **options: Any) -> None:
    """Write a figure as PNG, PDF or SVG, by the extension, completely or not at all."""
    from sglb.files import whole_file

    with whole_file(Path(path)) as draft:
        figure.savefig(draft, dpi=DOTS_PER_INCH, **options)
