"""Fit time against test loss, one panel a problem: down and to the left is better."""

from math import ceil
from textwrap import wrap

from benchmarks.peers import PEERS, get_peer
from benchmarks.problems import get_problem
from benchmarks.tables import Row, heading

# One colour a package, one marker a variant of it; sglb is the strong one.
COLOURS = {
    "sglb": "#c1121f",
    "catboost": "#e09f3e",
    "lightgbm": "#3a7d44",
    "xgboost": "#1d6fa5",
    "hessboost": "#7b5ea7",
    "scikit-learn": "#6c757d",
    "chimeraboost": "#2a9d8f",
}
MARKERS = "osD^"
COLUMNS = 3
WIDTH = 56  # letters that fit above a panel


def style(library):
    package = get_peer(library).PACKAGE
    variants = [name for name in PEERS if package == get_peer(name).PACKAGE]
    return {
        "color": COLOURS[package],
        "marker": MARKERS[variants.index(library)],
        "markersize": 9 if package == "sglb" else 7,
        "markeredgecolor": "white",
        "linestyle": "none",
        "label": get_peer(library).NAME,
    }


def panel(axes, problem, rows, threads):
    from matplotlib.ticker import LogLocator, NullFormatter

    for library, repeats in rows.items():
        row = Row.of(library, repeats)
        if row.values:
            axes.plot(row.values["seconds"], row.values["loss"], **style(library))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    first, _, rest = heading(problem, threads).removeprefix("Fit: ").partition("; ")
    axes.set_title("\n".join([first, *wrap(rest, WIDTH)]), fontsize=8)
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def draw(records, path):
    """Save the figure; False if no problem has both a time and a loss."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    last = records.runs[-1]
    fits = {
        name: rows
        for name, rows in records.results.items()
        if get_problem(name).measure == "fit"
        and any("loss" in repeat for repeats in rows.values() for repeat in repeats)
    }
    if not fits:
        return False
    across = min(COLUMNS, len(fits))
    down = ceil(len(fits) / across)
    figure, grid = plt.subplots(
        down, across, figsize=(4.2 * across, 3.2 * down + 0.9), squeeze=False
    )
    for axes, (name, rows) in zip(grid.flat, fits.items(), strict=False):
        problem = get_problem(name).smaller(last.rows, last.trees)
        panel(axes, problem, rows, problem.threads or last.threads)
    for axes in grid.flat[len(fits) :]:
        axes.axis("off")
    for axes in grid[-1]:
        axes.set_xlabel("fit, seconds", fontsize=8)
    for axes in grid[:, 0]:
        axes.set_ylabel("test loss", fontsize=8)
    handles = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.tight_layout(rect=(0, 0.9 / (3.2 * down + 0.9), 1, 1))
    figure.legend(handles.values(), handles, loc="lower center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True
