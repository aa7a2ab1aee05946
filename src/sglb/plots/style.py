"""The look of all figures: colours, empty axes, titles, names of lines, files."""

import io
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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


def panels(width: float, height: float, titles: Sequence[str]) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure of this size in inches with titled axes, two in a row."""
    figure = new_figure(width, height)
    n_rows = -(-len(titles) // 2)
    panels = [figure.add_subplot(n_rows, 2, number + 1) for number in range(len(titles))]
    for axes, title in zip(panels, titles, strict=True):
        quiet(axes)
        axes.set_title(title, loc="left", fontsize=10.5, color=INK, pad=8)
    return figure, panels


def new_axes(width: float, height: float) -> "tuple[Figure, Axes]":
    """Return an empty figure of this size in inches with a pair of axes."""
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    quiet(axes)
    return figure, axes


def axes_to_draw_on(axes: "Axes | None", width: float, height: float) -> "Axes":
    """Return the axes of the caller, made quiet, or new ones of a figure of this size."""
    if axes is None:
        return new_axes(width, height)[1]
    quiet(axes)
    return axes


def name_axes(axes: "Axes", xlabel: str, ylabel: str) -> None:
    """Write what the axes show."""
    axes.set_xlabel(xlabel, fontsize=10, color=INK)
    axes.set_ylabel(ylabel, fontsize=10, color=INK)


def write_legend(axes: "Axes", **options: Any) -> None:
    """Explain lines and bands in a corner, without a frame."""
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, **options)


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure of this size in inches."""
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


def quiet(axes: "Axes") -> None:
    """Remove all lines that are not needed to read off numbers."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#8C8C8C")
    axes.tick_params(colors=INK, labelsize=9, color="#8C8C8C")
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def write_title(axes: "Axes", title: str, subtitle: str = "") -> None:
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


def spread_out(heights: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
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


def label_ends(axes: "Axes", ends: Mapping[str, float], colour_of: Mapping[str, str]) -> None:
    """Name each line to the right of its end; a line of NaN alone at the bottom.

    A thin line leads from the end to the name, which may be a little above or below it.
    """
    low, high = axes.get_ylim()
    ends = {name: low if np.isnan(height) else height for name, height in ends.items()}
    # A line of 9-point text is about 6 % of the height of these axes.
    heights = spread_out(np.array(list(ends.values())), 0.06 * (high - low))
    for (name, end), height in zip(ends.items(), heights, strict=True):
        axes.annotate(
            name,
            xy=(1, float(end)),
            xytext=(1.03, float(height)),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            va="center",
            fontsize=9.5,
            color=darker(colour_of[name]),
            arrowprops={
                "arrowstyle": "-",
                "color": colour_of[name],
                "linewidth": 0.7,
                "shrinkA": 1.0,
                "shrinkB": 1.0,
                "relpos": (0.0, 0.5),
            },
            annotation_clip=False,
        )


def colours(count: int, first: int = 0) -> list[str]:
    """Return `count` colours of the palette from number `first` on, starting over at its end."""
    return [PALETTE[(first + number) % len(PALETTE)] for number in range(count)]


def darker(colour: str) -> str:
    """Return a colour at three quarters of its brightness: text is thinner than its line."""
    return "#" + "".join(f"{int(colour[at : at + 2], 16) * 3 // 4:02X}" for at in (1, 3, 5))


def lighter(colour: str, share: float) -> str:
    """Return a mixture of a share of a colour and white."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 - share * (255 - part)):02X}" for part in parts)


def save(figure: "Figure", path: str | Path, **options: Any) -> None:
    """Write a figure as PNG, PDF or SVG, by the extension, completely or not at all."""
    from sglb.files import whole_file

    with whole_file(Path(path)) as draft:
        figure.savefig(draft, dpi=DOTS_PER_INCH, **options)
