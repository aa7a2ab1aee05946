"""Results -> the Markdown that is printed or put into docs/uncertainty_measured.md."""

from statistics import mean

from benchmarks import machine
from benchmarks.page import fill
from benchmarks.quality.significance import LEVEL, paired
from benchmarks.tables import NOTHING
from benchmarks.uncertainty import tables
from benchmarks.uncertainty.goals import GOALS, PUBLISHED
from benchmarks.uncertainty.methods import LAWS, METHODS, OWN, get_method, installed, variants

BEGIN = "<!-- uncertainty: written by python -m benchmarks.uncertainty -->"
END = "<!-- end of uncertainty -->"
OURS = tuple(variants(LAWS))
STUDENTS = tuple(name for name in OURS if not name.endswith(", normal"))
PEERS = tuple(name for name in variants(METHODS) if name not in OURS)


def markdown(results):
    """All tables of the parts that have results."""
    packages = [get_method(name).PACKAGE for name in METHODS]
    commits = sorted({row["commit"] for row in results.done.values() if "commit" in row})
    missing = [get_method(name).NAME for name in METHODS if not installed(name)]
    lines = [
        *machine.describe(packages),
        f"- results of commit {', '.join(commits)}",
        *(f"- `{command.strip()}`" for command in dict.fromkeys(results.commands)),
        *([f"- not installed: {', '.join(missing)}"] if missing else []),
    ]
    if results.names("regression", 1):
        lines += regression(results)
    for part in (tables.classes, tables.known, tables.times):
        lines += part(results)
    return "\n".join(lines + failures(results))


def regression(results):
    lines = ["", "### Settings", ""]
    lines += [f"- **{get_method(name).NAME}**: {get_method(name).NOTE}." for name in METHODS]
    return [
        *lines,
        *goals(results),
        *losses(results),
        *scores(results, "crps", "CRPS (lower is better)"),
        *scores(results, "rmse", "RMSE"),
        *coverage(results),
        *scores(results, "interval_score", "Interval score at 90 % (lower is better)"),
        *by_scale(results),
        *scores(results, "fit_seconds", "Seconds of the processor for a fit"),
    ]


def average(results, table, method, key):
    """Mean over splits, with their number where sglb has more; None without results."""
    values = results.column("regression", table, method, key)
    if not values:
        return None
    return mean(values.values())


def cell(results, table, method, key, style="{:.3g}"):
    value = average(results, table, method, key)
    if value is None:
        return NOTHING
    n_splits = len(results.column("regression", table, method, key))
    all_splits = len(results.column("regression", table, OWN, key))
    return style.format(value) + (f" ({n_splits})" if n_splits < all_splits else "")


def common_splits(results, table, key, ours, peer):
    """Scores of a variant of sglb and of a peer on the splits that both have."""
    first = results.column("regression", table, ours, key)
    second = results.column("regression", table, peer, key)
    splits = [split for split in first if split in second]
    return [first[split] for split in splits], [second[split] for split in splits]


def best_peer(results, table, key, ours=OWN):
    """The peer of the lowest mean beside sglb on the splits of both, chosen in hindsight."""
    behind = {}
    for peer in PEERS:
        first, second = common_splits(results, table, key, ours, peer)
        if first:
            behind[peer] = mean(second) - mean(first)
    return min(behind, key=behind.get, default=None)


def difference(results, table, key, ours):
    """What sglb is below the best peer by, and p of the corrected paired test.

    The number of splits is told where the peer has fewer than sglb.
    """
    peer = best_peer(results, table, key, ours)
    if peer is None:
        return NOTHING
    first, second = common_splits(results, table, key, ours, peer)
    row = next(
        row for job, row in results.done.items() if job.table == table and "test_rows" in row
    )
    text = f"{mean(first) - mean(second):+.3f} {peer}"
    if len(first) < len(results.column("regression", table, ours, key)):
        text += f" ({len(first)})"
    test = paired(first, second, row["test_rows"] / row["rows"])
    if test is None:
        return text
    mark = "" if test.p >= LEVEL else " ▼" if test.t > 0.0 else " ▲"
    return f"{text}, p {test.p:.2g}{mark}"


def losses(results):
    """Minus log likelihood of all methods with distributions, and paired tests."""
    names = [name for name in (*OURS, *PEERS) if any(_has(results, name, "nll"))]
    ours = [name for name in OURS if name in names]
    columns = ["splits", *names, *(f"{name} − best peer" for name in ours)]
    lines = tables.heading("Minus log likelihood, nats (lower is better)", columns)
    for table in _sets(results):
        splits = len(results.column("regression", table, OWN, "nll"))
        cells = [str(splits), *(cell(results, table, n, "nll", "{:.3f}") for n in names)]
        cells += [difference(results, table, "nll", name) for name in ours]
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    return [
        *lines,
        "",
        "▲ sglb is significantly better (5 %, Nadeau and Bengio's test), ▼ worse. In brackets: the"
        " number of splits, or of those that both have, where it is less than all.",
    ]


def goals(results):
    """Goal and result; published figures are of normal distributions."""
    names = [name for name in OURS if any(_has(results, name, "nll", GOALS))]
    columns = ("goal", *names, "best published tree, normal", "reached?", "better than published?")
    lines = tables.heading("Goal and found, minus log likelihood", columns)
    for table, goal in GOALS.items():
        value, author = PUBLISHED[table]
        result = {name: average(results, table, name, "nll") for name in names}
        if all(number is None for number in result.values()):
            continue
        cells = [
            f"{goal:.2f}",
            *(cell(results, table, name, "nll", "{:.3f}") for name in names),
            f"{value:.2f} {author}",
            _reached({name: result[name] for name in names if name in STUDENTS}, goal),
            _reached({name: result[name] for name in names if name not in STUDENTS}, value),
        ]
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    return lines


def _reached(result, goal):
    """Which variants are at a goal or below it."""
    known = {name: value for name, value in result.items() if value is not None}
    if not known:
        return NOTHING
    reached = [name for name, value in known.items() if value <= goal]
    if len(reached) == len(known):
        return "yes"
    return ", ".join(reached) + " only" if reached else "**no**"


def scores(results, key, title):
    """One score of all methods that have it; the best is bold."""
    ours = STUDENTS if key in ("rmse", "fit_seconds") else OURS  # the same of both laws
    names = [name for name in (*ours, *PEERS) if any(_has(results, name, key))]
    lines = tables.heading(title, names)
    for table in _sets(results):
        values = {name: average(results, table, name, key) for name in names}
        best = min(value for value in values.values() if value is not None)
        cells = []
        for name in names:
            text = cell(results, table, name, key)
            cells.append(f"**{text}**" if values[name] == best else text)
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    return lines


def coverage(results):
    """Coverage in percent and mean width of 90 % intervals."""
    names = [name for name in (*OURS, *PEERS) if any(_has(results, name, "width"))]
    lines = tables.heading("Coverage of 90 % intervals in %, mean width", names)
    for table in _sets(results):
        cells = [
            NOTHING
            if (share := average(results, table, name, "coverage")) is None
            else f"{100.0 * share:.1f}, {cell(results, table, name, 'width')}"
            for name in names
        ]
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    means = []
    for name in names:
        shares = [average(results, table, name, "coverage") for table in _sets(results)]
        known = [share for share in shares if share is not None]
        means.append(f"{100.0 * mean(known):.1f}" if known else NOTHING)
    return [*lines, "| **mean** | " + " | ".join(means) + " |"]


def by_scale(results):
    """Coverage by quintile of the predicted width, on sets with many test rows."""
    names = [name for name in (*OURS, *PEERS) if any(_has(results, name, "by_scale"))]
    if not names:
        return []
    lines = tables.heading(
        "Coverage of 90 % intervals in %, by quintile of predicted scale, the smallest first", names
    )
    for table in _sets(results):
        cells = []
        for name in names:
            result = list(results.column("regression", table, name, "by_scale").values())
            shares = [mean(column) for column in zip(*result, strict=False)]
            cells.append(" ".join(f"{100.0 * share:.0f}" for share in shares) or NOTHING)
        if any(text != NOTHING for text in cells):
            lines.append(f"| {table} | " + " | ".join(cells) + " |")
    return lines


def failures(results):
    """Every failure with its message."""
    result = [(job, row["error"]) for job, row in results.done.items() if "error" in row]
    if not result:
        return []
    return ["", "### Failures", "", *(f"- {' '.join(map(str, job))}: {why}" for job, why in result)]


def _sets(results):
    return [
        name for name in results.names("regression", 1) if any(_has(results, OWN, "nll", [name]))
    ]


def _has(results, method, key, names=None):
    names = results.names("regression", 1) if names is None else names
    return (bool(results.column("regression", name, method, key)) for name in names)


def write(text):
    path = machine.REPOSITORY / "docs" / "uncertainty_measured.md"
    fill(path, "Measured", BEGIN, END, text)
