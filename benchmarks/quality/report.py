"""A comparison -> the Markdown that is printed or put into docs/quality.md."""

from collections import Counter
from statistics import fmean, median

from benchmarks.page import fill
from benchmarks.quality.comparison import QUIET, Comparison
from benchmarks.quality.goals import goals
from benchmarks.quality.left_out import LEFT_OUT
from benchmarks.quality.libraries import OWN, get_library
from benchmarks.quality.significance import LEVEL, critical_difference, friedman, mean_ranks
from benchmarks.quality.tables import (
    error_and_area,
    failures,
    heading,
    losses,
    lost,
    name,
    seconds,
)

BEGIN, END = "<!-- results: written by python -m benchmarks.quality -->", "<!-- end of results -->"
# The second is the honest one: the first has seen its tables before.
GROUPS = {
    "Tables the defaults were chosen on": lambda table: table not in LEFT_OUT,
    "Left-out tables": lambda table: table in LEFT_OUT,
}
RANKS, TRADE = "quality_ranks.png", "quality_time.png"


def markdown(results):
    """Where it was measured, the goals, ranks, each table, times, failures."""
    comparison = Comparison(results)
    lines = _conditions(results, comparison)
    if not comparison.cells:
        return "\n".join([*lines, "", "No table that every library has seen yet."])
    lines += _goals(comparison)
    for title, wanted in GROUPS.items():
        group = Comparison(results, wanted)
        if len(group.libraries) > 1 and group.cells:
            lines += _ranks(group, title)
        if OWN in group.libraries and group.peers and group.cells:
            lines += _against(group, title)
    if OWN in comparison.libraries and comparison.peers:
        lines += lost(comparison)
    for task, title in (
        ("binary", "Log loss, two classes"),
        ("multiclass", "Log loss, several classes"),
        ("regression", "Root mean squared error"),
    ):
        lines += losses(comparison, task, title)
    lines += [*error_and_area(comparison), *seconds(comparison), *failures(comparison)]
    lines += ["", "### Settings of each library", ""]
    lines += [
        f"- **{name(library)}**: {get_library(library).NOTE}." for library in comparison.libraries
    ]
    return "\n".join(lines)


def _conditions(results, comparison):
    last = results.runs[-1]
    lines = list(last.machine)
    lines += [f"- `{command}`" for command in dict.fromkeys(run.command for run in results.runs)]
    kept = last.conditions
    cut = "" if kept.max_rows is None else f", tables cut to {kept.max_rows:,} rows"
    plural = "s" if kept.threads > 1 else ""
    lines.append(
        f"- at most {kept.max_rounds:,} rounds, patience {kept.patience},"
        f" {kept.threads} thread{plural}{cut}"
    )
    if comparison.cells:
        least, most = comparison.n_seeds
        splits = f"{least}" if least == most else f"{least} to {most}"
        lines.append(f"- {len(comparison.tables)} tables, {splits} splits each")
    if comparison.unfinished:
        names = ", ".join(comparison.unfinished)
        lines.append(f"- left out because a library has not finished them: {names}")
    if commits := sorted({r["commit"] for r in results.done.values() if "commit" in r}):
        lines.append(f"- measured at commit {', '.join(commits)}")
    cores = [result["others"] for result in results.done.values() if "others" in result]
    if cores:
        lines.append(
            f"- other processes used {median(cores):.2f} cores (median), at most {max(cores):.2f}"
        )
        lines += _rest(comparison)
    return lines


def _rest(comparison):
    """Which times were measured while others worked."""
    cells = {
        (name(library), table): cell
        for table, row in comparison.cells.items()
        for library, cell in row.items()
        if not cell.failed
    }
    results = [result for cell in cells.values() for result in cell.results]
    busy = Counter(library for (library, _), cell in cells.items() if not cell.quiet)
    n_busy = sum(result.get("others", 0.0) > QUIET for result in results)
    if not n_busy:
        return []
    message = f"- {n_busy} of {len(results)} fits ran beside other work: their times are not used"
    if busy:
        counts = ", ".join(f"{library} {n}" for library, n in busy.items())
        message += (
            f" if another split has one. **Do not rely on the times of {sum(busy.values())} of"
            f" {len(cells)} pairs of a library and a table, which have no other ({counts})**"
        )
    return [message]


def _goals(comparison):
    result = goals(comparison)
    if not result:
        return []
    lines = ["", "### Goals", "", "| goal | result | met |", "|---|---|---|"]
    return lines + [
        f"| {goal.text} | {goal.result} | {'yes' if goal.met else '**no**'} |" for goal in result
    ]


def _ranks(comparison, title):
    ranks = mean_ranks(comparison.losses)
    lines = heading(
        f"{title} ({len(comparison.tables)})",
        ("mean rank", "best on", "mean loss above the best", "median", "failed on"),
    )
    for position in ranks.argsort(kind="stable"):
        library = comparison.libraries[position]
        above = [
            comparison.relative(table, library, comparison.best(table))
            for table in comparison.tables
            if not comparison.cells[table][library].failed
        ]
        best = sum(comparison.best(table) == library for table in comparison.tables)
        failed = sum(comparison.cells[table][library].failed for table in comparison.tables)
        mean = f"{fmean(above):.2f} % | {median(above):.2f} %" if above else "– | –"
        lines.append(f"| {name(library)} | {ranks[position]:.2f} | {best} | {mean} | {failed} |")
    return [*lines, "", _friedman(comparison)]


def _friedman(comparison):
    p = friedman(comparison.losses)
    if p is None:
        return "Too few libraries or tables to test the ranks."
    difference = critical_difference(len(comparison.libraries), len(comparison.tables))
    return (
        f"Friedman test of equal ranks: p = {p:.2g}. Mean ranks differ significantly if they are"
        f" more than {difference:.2f} apart (Nemenyi test, {100 * LEVEL:g} % over all pairs)."
    )


def _against(comparison, title):
    lines = heading(
        f"{title}: sglb against each library",
        ("lower loss on", "higher loss on", "significantly lower", "significantly higher"),
    )
    for peer in comparison.peers:
        ahead, behind = comparison.wins(peer)
        verdicts = [comparison.verdict(table, peer) for table in comparison.tables]
        counts = [len(ahead), len(behind), verdicts.count("better"), verdicts.count("worse")]
        lines.append(f"| {name(peer)} | " + " | ".join(map(str, counts)) + " |")
    return lines


def write(text, results, folder):
    """Put the report between the marks of quality.md, the figures beside it."""
    from benchmarks.quality import figures

    comparison = Comparison(results)
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    if len(comparison.libraries) > 2 and len(comparison.tables) > 1:
        figures.ranks(comparison, folder / RANKS)
        shown.append(f"![Mean ranks and the critical difference]({RANKS})")
    if OWN in comparison.libraries and comparison.peers and comparison.tables:
        figures.trade(comparison, folder / TRADE)
        shown.append(f"![Fit time and loss relative to sglb]({TRADE})")
    fill(folder / "quality.md", "Quality", BEGIN, END, "\n\n".join([*shown, text]))
