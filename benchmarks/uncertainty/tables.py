"""Tables of the parts without distributions of y, as lines of Markdown."""

from statistics import mean, median, stdev

from benchmarks.quality.tables import heading as quality_heading
from benchmarks.tables import NOTHING, number
from benchmarks.uncertainty.classes import MEASURES


def heading(title, columns):
    return quality_heading(title, list(columns))


def classes(results):
    """Log loss and calibration of means of draws, and knowledge in other domains."""
    names = results.names("classes", 1)
    if not names:
        return []

    def value(table, key, method="sglb"):
        result = results.column("classes", table, method, key)
        return mean(result.values()) if result else None

    columns = ("log loss of the model", "of the mean of draws", "ECE", "ECE of the mean")
    columns += ("knowledge", "PRR", "prior variance", "posterior / fit, seconds")
    lines = heading("Posterior of classifiers", columns)
    changes = []
    for table in names:
        model, loss = value(table, "model_loss"), value(table, "loss")
        if loss is None:
            continue
        changes.append(100.0 * (loss / model - 1.0))
        seconds = [value(table, key) for key in ("posterior_seconds", "fit_seconds")]
        lines.append(
            f"| {table} | {model:.4f} | {loss:.4f} ({changes[-1]:+.2f} %)"
            f" | {value(table, 'model_ece'):.4f} | {value(table, 'ece'):.4f}"
            f" | {value(table, 'knowledge'):.4f} | {value(table, 'prr'):.3f}"
            f" | {value(table, 'prior_variance'):g}"
            f" | {number(seconds[0])} / {number(seconds[1])} |"
        )
    if changes:
        worst = max(changes)
        lines += ["", f"Mean change of the log loss: {mean(changes):+.3f} %, worst {worst:+.2f} %."]
    lines += _around_five(names, value)
    lines += _domains(names, value)
    return lines + _peers(names, value)


def _around_five(names, value):
    """The mean of draws around five chains against the model of one chain."""
    pairs = [(value(t, "loss", "sglb, 5 chains"), value(t, "model_loss")) for t in names]
    changes = [100.0 * (loss / model - 1.0) for loss, model in pairs if loss and model]
    if changes:
        yield (
            "The mean of draws around `n_chains=5` against the model of one chain:"
            f" {mean(changes):+.3f} % in the mean, worst {max(changes):+.2f} %."
        )


def _domains(names, value):
    columns = [f"{method}" for method in MEASURES]
    lines = heading(
        "Out-of-domain AUC of knowledge (of total entropy): columns permuted · of another table",
        columns,
    )
    keys = ("permuted_knowledge", "permuted_total", "foreign_knowledge", "foreign_total")
    sums = {method: [] for method in MEASURES}
    for table in names:
        cells = []
        for method in MEASURES:
            result = [value(table, key, method) for key in keys]
            if None in result:
                cells.append(NOTHING)
                continue
            sums[method].append(result)
            cells.append(_auc(result))
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    means = [
        _auc([mean(column) for column in zip(*rows, strict=True)]) if rows else NOTHING
        for rows in sums.values()
    ]
    return [*lines, "| **mean** | " + " | ".join(means) + " |", *_spreads(names, value)]


def _spreads(names, value):
    """The same of the variance of raw scores, which does not care how likely the classes are."""
    keys = ("permuted_spread", "foreign_spread")
    rows = {t: {m: [value(t, key, m) for key in keys] for m in MEASURES} for t in names}
    lines = []
    for table, results in [*rows.items(), ("**mean**", None)]:
        cells = []
        for method in MEASURES:
            pair = results and results[method]
            if results is None:
                known = [row[method] for row in rows.values() if None not in row[method]]
                pair = [mean(column) for column in zip(*known, strict=True)] if known else [None]
            cells.append(NOTHING if None in pair else f"{pair[0]:.3f} · {pair[1]:.3f}")
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    title = "Out-of-domain AUC of the variance of raw scores: columns permuted · of another table"
    return [*heading(title, list(MEASURES)), *lines]


def _auc(result):
    return f"{result[0]:.2f} ({result[1]:.2f}) · {result[2]:.2f} ({result[3]:.2f})"


def _peers(names, value):
    """Log loss of each model and of its ensemble, ECE, and PRR."""
    lines = heading("Log loss of the model, of the ensemble; ECE of it; PRR", list(MEASURES))
    for table in names:
        cells = []
        for method in MEASURES:
            result = [value(table, key, method) for key in ("model_loss", "loss", "ece", "prr")]
            cells.append(
                NOTHING
                if None in result
                else f"{result[0]:.4f}, {result[1]:.4f}; {result[2]:.4f}; {result[3]:.2f}"
            )
        lines.append(f"| {table} | " + " | ".join(cells) + " |")
    return lines


def known(results):
    """Coverage of known functions, with standard errors over simulated data sets."""
    names = results.names("known", 1)
    if not names:
        return []
    plans = results.names("known", 3)
    plans.sort(key=lambda plan: (plan.split()[0] != "laplace", plan.split()[1] != "auto", plan))
    lines = heading(
        "Known functions: coverage in % of f by 90 % intervals, mean width",
        ["simulations", *plans],
    )
    for table in sorted(names):
        cells, count = [], 0
        for plan in plans:
            shares = list(results.column("known", table, plan, "coverage").values())
            if not shares:
                cells.append("as laplace 0.3" if plan == "laplace auto" else NOTHING)
                continue
            count = len(shares)
            error = 100.0 * stdev(shares) / count**0.5 if count > 1 else float("nan")
            width = mean(results.column("known", table, plan, "width").values())
            cells.append(f"{100.0 * mean(shares):.1f} ± {error:.1f}, {width:.2g}")
        lines.append(f"| {table} | {count} | " + " | ".join(cells) + " |")
    lines += heading("Known functions: RMSE of the mean of the draws to f", ["model", *plans])
    for table in sorted(names):
        cells = []
        for plan in plans:
            result = results.column("known", table, plan, "draws_error")
            cells.append(f"{mean(result.values()):.3g}" if result else NOTHING)
        alone = results.column("known", table, "laplace 1.0", "model_error")
        lines.append(f"| {table} | {mean(alone.values()):.3g} | " + " | ".join(cells) + " |")
    return lines


def times(results):
    """Seconds and ratios; medians of repeats, ratios within a repeat."""
    result = {}
    for job, row in results.done.items():
        if job.part == "times" and "error" not in row:
            result.setdefault((job.method, int(job.table)), {})[job.split] = row
    if not result:
        return []
    message = {
        "uncertainty": "`uncertainty=True` against the plain fit",
        "posterior": "posterior of 100 draws against the fit",
        "ngboost": "NGBoost, 500 rounds, against `uncertainty=True`",
    }
    columns = ("rows", "repeats", "seconds", "of the base", "ratio (least to most)")
    lines = heading("Times", columns)
    for (method, n_rows), rows in sorted(result.items(), key=lambda item: item[0]):
        alone = result.get(("uncertainty", n_rows), {})
        base = {
            split: row.get("base_seconds", alone.get(split, {}).get("seconds"))
            for split, row in rows.items()
        }
        both = [split for split in rows if base[split] is not None]
        ratios = [rows[split]["seconds"] / base[split] for split in both]
        if not ratios:
            continue
        lines.append(
            f"| {message[method]} | {n_rows:,} | {len(both)}"
            f" | {number(median(rows[s]['seconds'] for s in both))}"
            f" | {number(median(base[s] for s in both))}"
            f" | {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |"
        )
    return lines
