"""Results -> Markdown tables, one a problem: medians over repeats and ratios to sglb."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log10
from statistics import median

from benchmarks.measures import STATES
from benchmarks.peers import get_peer

BASE, GRADIENT = "sglb_langevin", "sglb_gradient"
NOTHING = "–"


@dataclass(frozen=True)
class Row:
    """One library on one problem: medians of what its repeats measured."""

    library: str
    values: dict[str, float]
    fastest: float | None
    slowest: float | None
    error: str | None

    @classmethod
    def of(cls, library, repeats):
        done = [repeat for repeat in repeats if "error" not in repeat]
        errors = [repeat["error"] for repeat in repeats if "error" in repeat]
        keys = {key for repeat in done for key in repeat if repeat[key] is not None}
        seconds = [repeat["seconds"] for repeat in done]
        return cls(
            library,
            {key: median(repeat[key] for repeat in done) for key in keys},
            min(seconds, default=None),
            max(seconds, default=None),
            errors[0] if errors else None,
        )


@dataclass(frozen=True)
class Column:
    title: str
    cell: Callable  # (row, rows by library, problem, threads) -> text


def number(value, scale=1.0):
    """Three significant digits, never an exponent."""
    if value is None:
        return NOTHING
    value *= scale
    digits = 2 - floor(log10(value)) if value > 0 else 0
    return f"{value:,.{max(0, digits)}f}"


def show(title, key, scale=1.0):
    return Column(title, lambda row, *_: number(row.values.get(key), scale))


def spread(scale):
    def cell(row, *_):
        return f"{number(row.fastest, scale)} – {number(row.slowest, scale)}"

    return Column("fastest – slowest", cell)


def ratio(title, base):
    def cell(row, rows, *_):
        if base not in rows or "seconds" not in rows[base].values:
            return NOTHING
        return number(row.values["seconds"] / rows[base].values["seconds"])

    return Column(title, cell)


def share(title, key, measured="seconds"):
    """A measured time as a multiple of another time of the same library."""

    def cell(row, *_):
        time = row.values.get(measured)
        return NOTHING if time is None else number(time / row.values[key])

    return Column(title, cell)


def pace(row, rows, problem, threads):
    work = problem.n_trees * problem.n_test
    return number(row.values["seconds"] * threads / work, 1e9)


MEMORY = show("memory above the data, MB", "memory", 1e-6)
LOSS = Column("test loss", lambda row, *_: f"{row.values['loss']:.4f}")

COLUMNS = {
    "fit": (
        show("fit, s", "seconds"),
        spread(1.0),
        ratio("times sglb", BASE),
        ratio("times sglb gradient", GRADIENT),
        show("CPU, s", "cpu_seconds"),
        MEMORY,
        LOSS,
    ),
    "custom": (
        show("fit, s", "seconds"),
        spread(1.0),
        ratio("times sglb", BASE),
        show("built-in loss, s", "built_in_seconds"),
        share("times built-in", "built_in_seconds"),
        MEMORY,
        LOSS,
    ),
    "predict": (
        show("predict, ms", "seconds", 1e3),
        spread(1e3),
        ratio("times sglb", BASE),
        Column("ns per tree, row and thread", pace),
        LOSS,
    ),
    "one_row": (
        show("array, µs", "seconds", 1e6),
        spread(1e6),
        ratio("times sglb", BASE),
        show("pandas frame, µs", "frame_seconds", 1e6),
        show("call for one row, µs", "row_seconds", 1e6),
    ),
    "states": (
        show(f"{STATES} states, ms", "seconds", 1e3),
        spread(1e3),
        ratio("times sglb", BASE),
        show("one prediction, ms", "single_seconds", 1e3),
        share("times one prediction", "single_seconds"),
        show("scores alone, ms", "score_seconds", 1e3),
        share("times one prediction", "single_seconds", "score_seconds"),
    ),
    "imports": (show("import, s", "seconds"), spread(1.0), ratio("times sglb", BASE)),
}


def heading(problem, threads):
    """What was asked, in one line."""
    on = f"{threads} thread{'s' if threads > 1 else ''}"
    if problem.default_threads:
        on = "threads by default"
    trees = f"{problem.n_trees:,} trees of depth {problem.depth}"
    if problem.rounds_by_class:
        trees += f" ({problem.rounds_by_class} rounds where each class has its own)"
    rate = f"learning rate {problem.learning_rate:g}"
    return {
        "fit": f"Fit: {problem.n_rows:,} rows, {problem.description}; {trees}, {rate}, {on}",
        "custom": f"Custom loss: {problem.n_rows:,} rows, {problem.description}; {trees}, {on}",
        "predict": f"Predict: {problem.n_test:,} rows, {problem.description}; {trees}, {on}",
        "one_row": f"Predict one row: {problem.description}; {trees}, {on}",
        "states": f"Uncertainty: {problem.n_test:,} rows, {problem.description}; {trees}, {on}",
        "imports": f"Import {problem.description}",
    }[problem.measure]


def table(problem, by_library, threads):
    """Lines of Markdown, the fastest library first, those that failed last."""
    rows = {library: Row.of(library, repeats) for library, repeats in by_library.items()}
    columns = COLUMNS[problem.measure]
    lines = [
        "| | " + " | ".join(column.title for column in columns) + " |",
        "|---" + "|--:" * len(columns) + "|",
    ]
    for row in sorted(rows.values(), key=lambda row: row.values.get("seconds", float("inf"))):
        peer = get_peer(row.library)
        name = peer.PACKAGE if problem.measure == "imports" else peer.NAME
        if row.values:
            cells = [column.cell(row, rows, problem, threads) for column in columns]
        else:
            cells = ["failed", *[NOTHING] * (len(columns) - 1)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    for row in rows.values():
        if row.error:
            message = row.error.replace("`", "'")
            lines += ["", f"{get_peer(row.library).NAME} failed: `{message}`"]
    return lines
