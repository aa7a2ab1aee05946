"""The tables of the report, as lines of Markdown."""

import re
from math import inf

from benchmarks.quality.libraries import OWN, get_library
from benchmarks.tables import NOTHING, number

FAILED = "failed"
# The folders of an absolute path: of the machine, not of the failure.
FOLDERS = re.compile(r"(?<![\w.])(?:/[\w.-]+)+/(?=[\w.-])")
MARKS = {"better": " ▲", "worse": " ▼", "alike": ""}


def name(library):
    return get_library(library).NAME


def heading(title, columns):
    """A heading and the first two lines of a table."""
    return [
        *("", f"### {title}", ""),
        "| | " + " | ".join(columns) + " |",
        "|---" + "|--:" * len(columns) + "|",
    ]


def losses(comparison, task, title):
    """Mean loss of each library and how far it is above the best, which is bold."""
    tables = [table for table in comparison.tables if comparison.fact(table, "task") == task]
    if not tables:
        return []
    lines = heading(title, ["rows, features", *map(name, comparison.libraries)])
    for table in tables:
        rows, features = (comparison.fact(table, key) for key in ("rows", "features"))
        cells = [f"{rows:,} × {features}"]
        cells += [_loss(comparison, table, library) for library in comparison.libraries]
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    return lines


def _loss(comparison, table, library):
    loss = comparison.loss(table, library)
    if loss == inf:
        return FAILED
    best = comparison.best(table)
    text = digits(loss)
    text = (
        f"**{text}**"
        if library == best
        else f"{text} {comparison.relative(table, library, best):+.1f} %"
    )
    if library != OWN and OWN in comparison.libraries:
        text += MARKS[comparison.verdict(table, library)]
    return text


def digits(value):
    """Four significant digits, never an exponent for what is not tiny."""
    return f"{value:.4g}" if value == 0.0 or abs(value) < 1e-3 else f"{value:#.4g}".rstrip(".")


def lost(comparison):
    """Every table on which a peer is ahead of sglb, the worst first."""
    results = []
    for table in comparison.tables:
        peer = comparison.best(table, comparison.peers)
        above = comparison.relative(table, OWN, peer)
        if above > 0.0:
            results.append((above, table, peer))
    if not results:
        return ["", "No peer is ahead of sglb on any table."]
    lines = heading("Where sglb is behind the best peer", ("above it", "best peer", "significant?"))
    message = {"better": "yes", "worse": "yes", "alike": "no"}
    for above, table, peer in sorted(results, reverse=True):
        far = FAILED if above == inf else f"{above:+.2f} %"
        significant = message[comparison.verdict(table, peer)]
        lines.append(f"| {table} | {far} | {name(peer)} | {significant} |")
    return lines


def error_and_area(comparison):
    """Share of wrong labels, and the area under the curve where there are two classes."""
    tables = [
        table for table in comparison.tables if comparison.fact(table, "task") != "regression"
    ]
    if not tables:
        return []
    lines = heading("Error in %, AUC", list(map(name, comparison.libraries)))
    for table in tables:
        cells = []
        for cell in comparison.cells[table].values():
            if cell.failed:
                cells.append(FAILED)
                continue
            text = f"{100 * cell.mean('error_rate'):.2f}"
            if comparison.fact(table, "task") == "binary":
                text += f", {cell.mean('auc'):.4f}"
            cells.append(text)
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    return lines


def seconds(comparison):
    """Fit time and rounds on each table, and totals."""
    lines = heading("Fit time in s (rounds)", list(map(name, comparison.libraries)))
    for table, row in comparison.cells.items():
        cells = [
            FAILED
            if cell.failed
            else f"{number(cell.seconds('fit_seconds'))} ({cell.mean('rounds'):.0f})"
            for cell in row.values()
        ]
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    if OWN not in comparison.libraries:
        return lines
    lines += heading(
        "Time divided by sglb's, on tables that both finished",
        ("fit, total", "fit, median", "predict, total", "predict, median"),
    )
    for peer in comparison.peers:
        cells = []
        for key in ("fit_seconds", "predict_seconds"):
            times = comparison.times(peer, OWN, key)
            if times is None:
                cells += [NOTHING, NOTHING]
            else:
                cells += [number(times[0] / times[1]), number(times[2])]
        lines.append(f"| {name(peer)} | " + " | ".join(cells) + " |")
    return lines


def failures(comparison):
    """Every failure with its message; seeds that failed alike share a line."""
    counts = {}
    for job, result in sorted(comparison.results.done.items()):
        if "error" in result:
            message = FOLDERS.sub("", result["error"].replace("`", "'").replace("\n", " "))
            key = (name(job.library), job.table, message)
            counts.setdefault(key, []).append(str(job.seed))
    if not counts:
        return []
    lines = ["", "### Failures", ""]
    return lines + [
        f"- {library} on {table}, seed {', '.join(seeds)}: `{message}`"
        for (library, table, message), seeds in counts.items()
    ]
