"""Records -> the Markdown that is printed or put into docs/benchmarks.md, and the figure."""

from statistics import median

from benchmarks import machine
from benchmarks.page import fill
from benchmarks.peers import PEERS, get_peer
from benchmarks.problems import get_problem
from benchmarks.tables import heading, table

BEGIN, END = "<!-- results: written by python -m benchmarks -->", "<!-- end of results -->"
FIGURE = "benchmarks.png"
QUIET = 0.1  # cores that others may take before numbers suffer


def markdown(records, missing=()):
    """Tables, what differs between the libraries, and where all that was measured."""
    last = records.runs[-1]
    used = [name for name in PEERS if any(name in rows for rows in records.results.values())]
    lines = machine.lines([run.machine for run in records.runs])
    every = [result for rows in records.results.values() for row in rows.values() for result in row]
    repeats = {len(row) for rows in records.results.values() for row in rows.values()}
    few, most = min(repeats), max(repeats)
    lines += [f"- `{run.command}`" for run in records.runs]
    counted = f"{most}" if few == most else f"{few} to {most}"
    lines += [f"- medians of {counted} process{'es' if most > 1 else ''} each", _disturbance(every)]
    if missing:
        names = ", ".join(get_peer(name).NAME for name in missing)
        lines.append(f"- not installed, left out: {names}")
    for name, rows in records.results.items():
        problem = get_problem(name).smaller(last.rows, last.trees)
        threads = problem.threads or last.threads
        lines += ["", f"### {heading(problem, threads)}", "", *table(problem, rows, threads)]
    lines += ["", "### Settings of each library", ""]
    lines += [f"- **{get_peer(name).NAME}**: {get_peer(name).NOTE}." for name in used]
    return "\n".join(lines)


def _disturbance(results):
    """What ran beside the libraries; threads that wait in a busy loop suffer most from it."""
    cores = [result["others"] for result in results]
    line = f"- other processes used {median(cores):.2f} cores (median), at most {max(cores):.2f}"
    if median(cores) > QUIET:
        line += ": **the machine was busy: do not trust these numbers**"
    return line


def write(text, records, folder):
    """Put the report between the marks of benchmarks.md, the figure beside it."""
    from benchmarks.figure import draw

    folder.mkdir(parents=True, exist_ok=True)
    if draw(records, folder / FIGURE):
        text = f"![Fit time against test loss]({FIGURE})\n\n{text}"
    fill(folder / "benchmarks.md", "Benchmarks", BEGIN, END, text)
