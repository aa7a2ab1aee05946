"""Markdown tables of the losses that samplers reach where there are many valleys."""

import numpy as np

from benchmarks.dynamics import costs, descent
from benchmarks.dynamics.problems import PROBLEMS
from benchmarks.quality.significance import LEVEL, paired

TITLES = {
    "descent": "**Many valleys, equally many gradients**",
    "timed": "**Many valleys, equal time**",
    "long": f"**Many valleys, {descent.LONG} times as many gradients**",
}
# What plain and stochastic boosting fail on, by the goal.
N_FAILED = 2


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def methods_of(part):
    return descent.LONG_METHODS if part == "long" else descent.METHODS


def shares(results, part="descent"):
    """Problem -> method -> share of the way that is left, by seeds that have all methods."""
    measured = {}
    for problem in PROBLEMS:
        places = {job[:3] for job in results.done if job[:2] == (part, problem)}
        by_seed = [descent.left(results, part, problem, seed) for *_, seed in sorted(places)]
        whole = [share for share in by_seed if set(share) == set(methods_of(part))]
        if whole:
            measured[problem] = {
                method: np.array([share[method] for share in whole]) for method in whole[0]
            }
    return measured


def printed(values):
    return f"{100 * values.mean():.1f} %"


def mark(values, baseline):
    """An arrow if the share that is left differs from plain boosting's, and is printed so."""
    test = paired(values, baseline, 0.0)
    if test is None or not test.p < LEVEL or printed(values) == printed(baseline):
        return ""
    return " ▲" if test.t < 0.0 else " ▼"


def n_arrived(values):
    return int((values <= descent.LEFT).sum())


def times(results, method, measured):
    """Time of a gradient over that of plain boosting: the smallest and the largest problem's."""
    ratios = []
    for problem in measured:
        seconds = costs.of(results, problem)
        if {method, "plain"} <= set(seconds):
            ratios.append(seconds[method] / seconds["plain"])
    return f"{min(ratios):.1f} to {max(ratios):.1f}" if ratios else ""


def tables(results):
    """Tables of all parts that there are results of, and whether the goal is reached."""
    setting, lines = descent.chosen(results), []
    for part, title in TITLES.items():
        measured = shares(results, part)
        if not measured:
            continue
        rows = []
        for method in methods_of(part):
            cells = [
                f"{printed(by[method])} ({n_arrived(by[method])}){mark(by[method], by['plain'])}"
                for by in measured.values()
            ]
            rows.append([setting[method], *cells, times(results, method, measured)])
        seeds = (f"{problem}, {len(by['plain'])} seeds" for problem, by in measured.items())
        lines += [
            f"{title}: mean share of the way from the start to the best known loss that is left;"
            f" in brackets the seeds with at most {100 * descent.LEFT:g} % left",
            "",
            *table(["", *seeds, "time"], rows),
            "",
            *goal(measured),
        ]
    return lines


def solved(measured, method):
    """Problems on which a sampler comes to the best known loss for most seeds."""
    return [
        problem for problem, by in measured.items() if 2 * n_arrived(by[method]) > len(by[method])
    ]


def goal(measured):
    """On which problems a sampler comes to the best known loss for most seeds."""
    methods = list(next(iter(measured.values())))
    lines = [
        f"- `{method}` comes to the best known loss for more than half of the seeds on"
        f" {len(solved(measured, method))} of {len(measured)} problems"
        f" ({', '.join(solved(measured, method)) or 'none'})"
        for method in methods
    ]
    if set(measured) != set(PROBLEMS):
        return [*lines, ""]
    either = {*solved(measured, "annealed"), *solved(measured, "tempering")}
    missing = [problem for problem in measured if problem not in either]
    verdict = "reached" if not missing else f"**not reached** ({', '.join(missing)})"
    lines.append(f"- annealed or tempering on each of the problems: {verdict}")
    baseline = {*solved(measured, "plain"), *solved(measured, "stochastic")}
    n_failed = len(measured) - len(baseline)
    verdict = "so it is" if n_failed >= N_FAILED else "**not so**"
    lines.append(
        f"- plain and stochastic boosting both fail on {n_failed}; at least {N_FAILED} were"
        f" expected: {verdict}"
    )
    return [*lines, ""]
