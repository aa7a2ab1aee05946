"""Markdown tables and the picture of samplers beside one another."""

import numpy as np

from benchmarks import machine
from benchmarks.dynamics import costs, descent, draws, valleys
from benchmarks.dynamics.valleys import table
from benchmarks.page import fill
from sglb.plots import style

PAGE = machine.REPOSITORY / "docs" / "dynamics.md"
BEGIN, END = "<!-- dynamics -->", "<!-- end of dynamics -->"
GAIN = 2.0  # the goal: hamiltonian's draws a second over langevin's


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


def seconds_of(results, part, name):
    """Method -> processor seconds of a step: steps in turn, or else the whole run's."""
    rows = rows_of(results, part, name)
    mean = {method: row["seconds"] / row["n_steps"] for method, row in rows.items()}
    return mean | costs.of(results, f"{name}, {part}")


def speeds(results, part, name, kind):
    """Method -> effective draws a second over langevin's, and the standard error."""
    rows, seconds = rows_of(results, part, name), seconds_of(results, part, name)

    def speed(method):
        row = rows[method]
        return row[kind] / row["n_steps"] / seconds[method]

    errors = {method: row.get(f"{kind}_error", np.nan) for method, row in rows.items()}
    ratio = {method: speed(method) / speed("langevin") for method in rows}
    return {
        method: (ratio[method], ratio[method] * np.hypot(errors[method], errors["langevin"]))
        for method in rows
    }


def draws_table(results, part, name, title):
    """Draws of one table; speeds are against langevin."""
    rows = rows_of(results, part, name)
    if "langevin" not in rows:
        return []
    base, seconds = rows["langevin"], seconds_of(results, part, name)
    by_kind = {kind: speeds(results, part, name, kind) for kind in ("bulk", "tail")}
    header = ["", "variance", "bulk / 1,000 steps", "tail / 1,000 steps", "µs a step"]
    header += ["bulk a second", "tail a second"]
    cells = []
    for method, row in rows.items():
        variance = f"{100 * row['bias']:+.1f} ± {100 * row['error']:.1f} %"
        if part == "greedy":
            ratio, unit = 1.0 + row["bias"], 1.0 + base["bias"]
            variance = f"{100 * (ratio / unit - 1):+.1f} ± {100 * row['error'] / unit:.1f} %"
        measured = [by_kind[kind][method] for kind in by_kind]
        cells.append(
            [
                method,
                variance,
                *(f"{1000 * row[kind] / row['n_steps']:.2f}" for kind in by_kind),
                f"{1e6 * seconds[method]:.0f}",
                *(
                    "1" if method == "langevin" else f"{ratio:.2f} ± {error:.2f}"
                    for ratio, error in measured
                ),
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
        measured = {
            method: ratio
            for method, ratio in speeds(results, "frozen", name, "bulk").items()
            if method.startswith("hamiltonian") and rows[method]["bias"] <= limit
        }
        best = max(measured, key=lambda method: measured[method][0])
        ratio, error = measured[best]
        verdict = "reached" if ratio >= GAIN else "**not reached**"
        lines.append(
            f"- {name}: the best of momentum, `{best}`, has {ratio:.2f} ± {error:.2f} times the"
            f" draws a second of langevin; the goal was {GAIN:g}: {verdict}"
        )
    return [*lines, ""] if lines else []


def markdown(results):
    lines = single(results)
    for name, n_rows in draws.TABLES.items():
        title = f"{name}, {n_rows:,} rows"
        lines += draws_table(results, "frozen", name, f"{title}, frozen structures")
        lines += draws_table(results, "greedy", name, f"{title}, searched structures")
    lines += goal_of_draws(results) + valleys.tables(results)
    return "\n".join(lines).strip()


def write(text, results):
    fill(PAGE, "How a chain moves", BEGIN, END, text)
    figure = picture(results)
    if figure is not None:
        style.save(figure, PAGE.with_suffix(".png"))


def picture(results):
    """Gain of momentum against friction, and what is left of the way on each problem."""
    measured = valleys.shares(results)
    if not measured or not rows_of(results, "single", "one structure"):
        return None
    titles = [
        "Effective draws a step over langevin's",
        "Way left to the best known loss, equal gradients",
    ]
    figure, (left, right) = style.panels(12.0, 4.4, titles)
    gains_of_momentum(results, left)
    ways_left(measured, right)
    return figure


def gains_of_momentum(results, axes):
    """Formulas of one structure as lines, chains of many structures as dots."""
    frictions = np.geomspace(0.05, 1.0, 40)
    base = draws.single_formula(1.0)
    for number, kind in enumerate(("mean", "square")):
        gain = [draws.single_formula(a)[kind] / base[kind] for a in frictions]
        label = f"one structure, {'mean' if kind == 'mean' else 'mean square'}"
        axes.plot(frictions, gain, color=style.PALETTE[number + 1], label=label)
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
        # Tables have the same frictions and nearly the same gains: side by side.
        at = [friction * (0.97, 1.03)[number] for friction in points]
        gains = [value / unit for value in points.values()]
        marker, colour = "os"[number], style.PALETTE[number + 3]
        axes.plot(at, gains, marker, color=colour, label=f"many structures, {name}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = (0.05, 0.1, 0.2, 0.5, 1.0)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    gains = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
    axes.set_yticks(gains, [f"{gain:g}" for gain in gains])
    axes.set_yticks([], minor=True)
    axes.axhline(1.0, color=style.INK, linewidth=0.8)
    style.name_axes(axes, "friction", "times langevin's, at equal bias")
    style.write_legend(axes, loc="upper right")


MARKERS = "osD^vPX"


def ways_left(measured, axes):
    """Mean share of each problem, and its standard error, a lane for each sampler."""
    for number, method in enumerate(descent.METHODS):
        values = [100.0 * by[method] for by in measured.values()]
        means = np.array([each.mean() for each in values])
        errors = np.array([each.std(ddof=1) / np.sqrt(len(each)) for each in values])
        lanes = np.arange(len(means)) + 0.11 * (number - (len(descent.METHODS) - 1) / 2)
        axes.errorbar(
            lanes,
            means,
            errors,
            fmt=MARKERS[number],
            color=style.PALETTE[number],
            markersize=5,
            linewidth=1.2,
            label=method,
        )
    for edge in range(1, len(measured)):
        axes.axvline(edge - 0.5, color=style.FAINT, linewidth=0.8)
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.6)
    ticks = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylim(-0.1, 130.0)
    axes.set_xticks(range(len(measured)), list(measured))
    axes.tick_params(axis="x", length=0)
    style.name_axes(axes, "", "% left: mean and standard error")
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
