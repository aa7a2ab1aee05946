"""Markdown tables and the picture of samplers beside one another."""

import numpy as np

from benchmarks import machine
from benchmarks.dynamics import descent, draws
from benchmarks.dynamics.problems import PROBLEMS
from benchmarks.page import fill
from benchmarks.quality.significance import LEVEL, paired
from sglb.plots import style

PAGE = machine.REPOSITORY / "docs" / "dynamics.md"
BEGIN, END = "<!-- dynamics -->", "<!-- end of dynamics -->"
GAIN = 2.0  # the goal: hamiltonian's draws a second over langevin's


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def rows_of(results, part, name):
    """Method -> row of a table or structure."""
    return {
        job.method: row
        for job, row in results.done.items()
        if (job.part, job.table) == (part, name)
    }


def single(results):
    rows = rows_of(results, "single", "one structure")
    if not rows:
        return []
    base = rows["1"]
    header = [
        "friction",
        "rate × k",
        "bias",
        "mean",
        "mean square",
        "bulk",
        "tail",
        "bulk a second",
    ]
    cells = []
    for friction, row in rows.items():
        formula, n = row["formula"], row["n_steps"]
        speed = (row["bulk"] / row["seconds"]) / (base["bulk"] / base["seconds"])
        cells.append(
            [
                f"{friction} (langevin)" if friction == "1" else friction,
                f"{formula['rate']:.3f}",
                f"{100 * row['bias']:+.1f} %",
                f"{formula['mean']:.3f}",
                f"{formula['square']:.3f}",
                f"{row['bulk'] / n:.3f}",
                f"{row['tail'] / n:.3f}",
                f"{speed:.1f} ×",
            ]
        )
    return ["**One structure**: effective draws a step", "", *table(header, cells), ""]


def draws_table(results, part, name, title):
    """Draws of one table; speeds are against langevin."""
    rows = rows_of(results, part, name)
    if "langevin" not in rows:
        return []
    base = rows["langevin"]
    header = ["", "variance", "bulk / 1,000 steps", "tail / 1,000 steps", "µs a step"]
    header += ["bulk a second", "tail a second"]
    cells = []
    for method, row in rows.items():
        variance = f"{100 * row['bias']:+.1f} ± {100 * row['error']:.1f} %"
        if part == "greedy":
            ratio, unit = 1.0 + row["bias"], 1.0 + base["bias"]
            variance = f"{100 * (ratio / unit - 1):+.1f} ± {100 * row['error'] / unit:.1f} %"
        speeds = [
            (row[kind] / row["seconds"]) / (base[kind] / base["seconds"])
            for kind in ("bulk", "tail")
        ]
        cells.append(
            [
                method,
                variance,
                *(f"{1000 * row[kind] / row['n_steps']:.2f}" for kind in ("bulk", "tail")),
                f"{1e6 * row['seconds'] / row['n_steps']:.0f}",
                *(f"{speed:.2f} ×" for speed in speeds),
            ]
        )
    return [f"**{title}**", "", *table(header, cells), ""]


def goal_of_draws(results):
    """Whether hamiltonian has twice langevin's draws a second at a bias that is no larger."""
    lines = []
    for name in draws.TABLES:
        rows = rows_of(results, "frozen", name)
        if "langevin" not in rows:
            continue
        base = rows["langevin"]
        limit = base["bias"] + 2.0 * np.hypot(base["error"], base["error"])
        speeds = {
            method: (row["bulk"] / row["seconds"]) / (base["bulk"] / base["seconds"])
            for method, row in rows.items()
            if method.startswith("hamiltonian") and row["bias"] <= limit
        }
        best = max(speeds, key=speeds.get)
        verdict = "reached" if speeds[best] >= GAIN else "**not reached**"
        lines.append(
            f"- {name}: the best of momentum, `{best}`, has {speeds[best]:.2f} times the draws a"
            f" second of langevin; the goal was {GAIN:g}: {verdict}"
        )
    return [*lines, ""] if lines else []


def seeds_of(results, part, problem):
    """Seeds that all methods of a part have a result of."""
    wanted = descent.METHODS if part == "descent" else descent.LONG_METHODS
    seeds = sorted({job.split for job in results.done if (job.part, job.table) == (part, problem)})
    return [
        seed for seed in seeds if set(descent.of_seed(results, part, problem, seed)) == set(wanted)
    ]


def shares(results, part="descent"):
    """Problem -> method -> share of the way that is left, by seed."""
    measured = {}
    for problem in PROBLEMS:
        by_seed = [
            descent.left(results, part, problem, seed) for seed in seeds_of(results, part, problem)
        ]
        if by_seed:
            measured[problem] = {
                method: np.array([share[method] for share in by_seed]) for method in by_seed[0]
            }
    return measured


def mark(values, baseline):
    """An arrow if the share that is left differs from that of plain boosting."""
    test = paired(values, baseline, 0.0)
    if test is None or not test.p < LEVEL:
        return ""
    return " ▲" if test.t < 0.0 else " ▼"


def cell(values, baseline, n_arrived):
    return f"{100 * values.mean():.1f} % ({n_arrived}){mark(values, baseline)}"


def seconds(results, part, method, measured):
    """Processor time of a method over that of plain boosting, median over all runs."""
    ratios = []
    for problem in measured:
        for seed in seeds_of(results, part, problem):
            ran = descent.of_seed(results, part, problem, seed)
            ratios.append(ran[method]["seconds"] / ran["plain"]["seconds"])
    return float(np.median(ratios))


def descents(results, part="descent"):
    measured = shares(results, part)
    if not measured:
        return []
    setting = descent.chosen(results)
    n = {problem: len(by_method["plain"]) for problem, by_method in measured.items()}
    reached = {
        problem: {m: int((values <= descent.LEFT).sum()) for m, values in by_method.items()}
        for problem, by_method in measured.items()
    }
    rows = []
    for method in descent.METHODS:
        if method in next(iter(measured.values())):
            cells = [
                cell(by_method[method], by_method["plain"], reached[problem][method])
                for problem, by_method in measured.items()
            ]
            rows.append(
                [setting[method], *cells, f"{seconds(results, part, method, measured):.2f}"]
            )
    budget = "" if part == "descent" else f" after {descent.LONG} times as many gradients"
    header = ["", *(f"{problem}, {n[problem]} seeds" for problem in measured), "time"]
    lines = [
        f"**Many valleys{budget}**: mean share of the way from the start to the best known loss"
        f" that is left; in brackets the seeds with at most {100 * descent.LEFT:g} % left",
        "",
        *table(header, rows),
        "",
    ]
    return lines + goal_of_descents(reached, n)


def goal_of_descents(reached, n):
    """On which problems a sampler comes to the best known loss for most seeds."""

    def solved(method):
        return [problem for problem in n if 2 * reached[problem][method] > n[problem]]

    lines = [
        f"- {method} comes to the best known loss for more than half of the seeds on"
        f" {len(solved(method))} of {len(n)} problems ({', '.join(solved(method)) or 'none'})"
        for method in descent.METHODS
        if method in next(iter(reached.values()))
    ]
    if set(n) != set(PROBLEMS):
        return [*lines, ""]
    either = {*solved("annealed"), *solved("tempering")}
    missing = [problem for problem in n if problem not in either]
    verdict = "reached" if not missing else f"**not reached** ({', '.join(missing)})"
    lines.append(f"- annealed or tempering on each of the problems: {verdict}")
    return [*lines, ""]


def markdown(results):
    lines = single(results)
    for name, n_rows in draws.TABLES.items():
        title = f"{name}, {n_rows:,} rows"
        lines += draws_table(results, "frozen", name, f"{title}, frozen structures")
        lines += draws_table(results, "greedy", name, f"{title}, searched structures")
    lines += goal_of_draws(results)
    lines += descents(results) + descents(results, "long")
    return "\n".join(lines).strip()


def write(text, results):
    fill(PAGE, "How a chain moves", BEGIN, END, text)
    figure = picture(results)
    if figure is not None:
        style.save(figure, PAGE.with_suffix(".png"))


def picture(results):
    """Gain of momentum against friction, and what is left of the way on each problem."""
    measured = shares(results)
    if not measured or not rows_of(results, "single", "one structure"):
        return None
    titles = ["Effective draws a step over langevin's", "Way to the best known loss that is left"]
    figure, (left, right) = style.panels(11.0, 4.2, titles)
    frictions = np.geomspace(0.05, 1.0, 40)
    base = draws.single_formula(1.0)
    for number, kind in enumerate(("mean", "square")):
        gain = [draws.single_formula(a)[kind] / base[kind] for a in frictions]
        label = f"one structure, {'mean' if kind == 'mean' else 'mean square'}"
        left.plot(frictions, gain, color=style.PALETTE[number + 1], label=label)
    for number, name in enumerate(draws.TABLES):
        rows = rows_of(results, "frozen", name)
        if "langevin" not in rows:
            continue
        points = {
            float(method.split()[1]): row["bulk"] / row["n_steps"]
            for method, row in rows.items()
            if method.startswith("hamiltonian") and "fast" not in method
        }
        unit = rows["langevin"]["bulk"] / rows["langevin"]["n_steps"]
        gains = [value / unit for value in points.values()]
        left.plot(list(points), gains, "o", color=style.PALETTE[number + 3], label=name)
    left.set_xscale("log")
    left.set_yscale("log")
    left.axhline(1.0, color=style.INK, linewidth=0.8)
    style.name_axes(left, "friction", "times langevin's, at equal bias")
    style.write_legend(left, loc="upper right")
    for number, method in enumerate(descent.METHODS):
        means = [100.0 * max(by[method].mean(), 1e-4) for by in measured.values()]
        places = np.arange(len(means)) + 0.09 * (number - 3)
        right.plot(places, means, "o", color=style.PALETTE[number], label=method)
    right.set_yscale("log")
    right.set_xticks(range(len(measured)), list(measured))
    style.name_axes(right, "", "% left, mean of the seeds")
    right.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
