"""Two figures: mean ranks with the critical difference, and time against loss."""

from math import isfinite

from benchmarks.figure import COLOURS
from benchmarks.quality.libraries import OWN, get_library
from benchmarks.quality.significance import alike, critical_difference, mean_ranks

NEAR = 1.0  # percent; the axis of losses is linear up to here, logarithmic beyond
STEPS = [step * scale for scale in (1, 10, 100, 1000) for step in (1, 2, 5)]
TICKS = [*(-step for step in reversed(STEPS)), 0, *STEPS]


def _canvas(width, height):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height))


def _save(figure, path):
    import matplotlib.pyplot as plt

    from sglb.files import whole_file

    with whole_file(path) as draft:
        figure.savefig(draft, dpi=150, bbox_inches="tight")
    plt.close(figure)


def _colour(library):
    return COLOURS[get_library(library).PACKAGE]


def ranks(comparison, path):
    """Libraries on a line of mean ranks; a bar joins those that the test cannot tell apart."""
    result = mean_ranks(comparison.losses)
    order = result.argsort(kind="stable")
    places = [float(result[position]) for position in order]
    names = [comparison.libraries[position] for position in order]
    difference = critical_difference(len(names), len(comparison.tables))
    runs = alike(places, difference)
    left = (len(names) + 1) // 2  # labels on the left hand, the others on the right
    depth = 0.6 * max(left, len(names) - left) + 0.25 * len(runs) + 0.6
    figure, axes = _canvas(7.5, 0.55 * depth + 1.1)
    axes.hlines(0.0, 1, len(names), color="black", linewidth=1)
    for rank in range(1, len(names) + 1):
        axes.vlines(rank, 0.0, 0.12, color="black", linewidth=1)
        axes.text(rank, 0.2, str(rank), ha="center", fontsize=9)
    for position, (rank, library) in enumerate(zip(places, names, strict=True)):
        on_left = position < left
        row = position if on_left else len(names) - 1 - position
        low = -0.4 - 0.25 * len(runs) - 0.6 * row
        edge = 0.75 if on_left else len(names) + 0.25
        axes.plot([rank, rank, edge], [0.0, low, low], color=_colour(library), linewidth=1.5)
        axes.text(
            edge + (-0.05 if on_left else 0.05),
            low,
            f"{get_library(library).NAME}  {rank:.2f}",
            ha="right" if on_left else "left",
            va="center",
            fontsize=10,
            fontweight="bold" if library == OWN else "normal",
        )
    for level, (first, last) in enumerate(runs):
        height = -0.2 - 0.25 * level
        axes.plot(
            [places[first] - 0.03, places[last] + 0.03],
            [height, height],
            color="0.2",
            linewidth=4,
            solid_capstyle="butt",
        )
    axes.plot([1, 1 + difference], [0.75, 0.75], "|-", color="black", linewidth=1)
    axes.text(
        1 + difference / 2, 0.95, f"critical difference {difference:.2f}", fontsize=9, ha="center"
    )
    axes.set_xlim(-0.6, len(names) + 1.6)
    axes.set_ylim(-depth, 1.3)
    axes.set_title(f"Mean rank over {len(comparison.tables)} tables, 1 is best", fontsize=10)
    axes.axis("off")
    _save(figure, path)


def points(comparison, peer):
    """(fit time over sglb's, loss above sglb's in percent) on the tables that both finished."""
    result = []
    for table, row in comparison.cells.items():
        above = comparison.relative(table, peer, OWN)
        if not (row[peer].failed or row[OWN].failed) and isfinite(above):
            result.append(
                (row[peer].seconds("fit_seconds") / row[OWN].seconds("fit_seconds"), above)
            )
    return result


def trade(comparison, path):
    """Each point a peer on a table: right of the cross it is slower, above it worse than sglb."""
    figure, axes = _canvas(7.5, 5.0)
    from matplotlib.ticker import LogLocator, NullFormatter

    for peer in comparison.peers:
        result = points(comparison, peer)
        if result:
            times, above = zip(*result, strict=True)
            axes.plot(
                *(times, above, "o"),
                color=_colour(peer),
                markersize=6,
                markeredgecolor="white",
                alpha=0.85,
                label=f"{get_library(peer).NAME} ({len(result)})",
            )
    axes.axhline(0.0, color=COLOURS["sglb"], linewidth=1)
    axes.axvline(1.0, color=COLOURS["sglb"], linewidth=1)
    axes.axhspan(-NEAR, NEAR, color="0.95", zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=NEAR)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(0.06)
    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in TICKS if low <= tick <= high])
    axes.yaxis.set_major_formatter("{x:+g} %")
    axes.set_ylim(low, high)
    axes.set_xlabel("fit time over sglb's")
    axes.set_ylabel("test loss above sglb's")
    axes.set_title("Peers on each table; sglb is the cross, the band is within 1 %", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    _save(figure, path)
