"""Tables of the parts beside the tuned comparison."""

from statistics import mean, median

import numpy as np

from benchmarks.ranking.chains import METRICS
from benchmarks.ranking.comparison import Scores, difference
from benchmarks.tables import NOTHING, number

LONG = "twice"
STOCHASTIC = ("catboost StochasticRank", "sglb stochastic_rank", 10.0)
LAMBDARANK = ("lightgbm lambdarank", "sglb lambdarank", 3.0)


def heading(title, columns):
    return [
        "",
        f"### {title}",
        "",
        "| | " + " | ".join(columns) + " |",
        "|---|" + "--:|" * len(columns),
    ]


def defaults(results):
    """Estimators as they come."""
    scores = Scores(results, "defaults")
    if not scores.sets:
        return []
    lines = heading(
        "NDCG@10 on test queries without any setting",
        [*scores.sets, "all queries", "sglb minus this"],
    )
    for ranker in scores.rankers:
        measured = [scores.of(name, ranker) for name in scores.sets]
        measured.append(scores.pooled(ranker) if scores.common(ranker) == scores.sets else None)
        cells = [NOTHING if value is None else f"{value.mean():.4f}" for value in measured]
        is_own = ranker == scores.rankers[0]
        cells.append(NOTHING if is_own else str(scores.against(scores.rankers[0], ranker)))
        lines.append(f"| {ranker} | " + " | ".join(cells) + " |")
    trees = []
    for name in scores.sets:
        counts = results.column("defaults", name, scores.rankers[0], "trees").values()
        if counts:
            trees.append(f"{name} {round(mean(counts))}")
    return [*lines, "", f"Trees of {scores.rankers[0]}: {', '.join(trees)}."]


def length(results):
    """NDCG@10 of held-out training queries by length, less that of the automatic length."""
    names, rules = results.names("length", 1), results.names("length", 3)
    if not names:
        return []
    lines = heading(
        "Number of trees of a default chain: NDCG@10 on held-out training queries",
        [*names, "mean of sets", "all queries less automatic"],
    )

    def scores(name, rule):
        measured = results.column("length", name, rule, "queries")
        return np.concatenate([measured[fold][0] for fold in sorted(measured)])

    automatic = np.concatenate([scores(name, "automatic") for name in names])
    for rule in rules:
        values = [scores(name, rule) for name in names]
        means = [float(value.mean()) for value in values]
        cells = [f"{value:.4f}" for value in (*means, mean(means))]
        gap = difference(np.concatenate(values), automatic)
        cells.append(NOTHING if rule == "automatic" else str(gap))
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    trees = []
    for name in names:
        counts = results.column("length", name, "automatic", "trees").values()
        trees.append(f"{name} {', '.join(map(str, sorted(counts)))}")
    return [*lines, "", f"Automatic numbers of trees: {'; '.join(trees)}."]


def langevin(results, part, title):
    """What chains lose when they take twice as many trees."""
    names = results.names(part, 1)
    if not names:
        return []
    samplers = ("langevin", "plain")
    columns = ["trees", *(f"{s}, {w}" for s in samplers for w in ("once", LONG))]
    columns += [*(f"{s} loses" for s in samplers), "langevin − plain, " + LONG]
    lines = heading(f"{title}: NDCG@10 on test queries", columns)
    pooled = []
    for name in names:
        measured = {
            sampler: np.mean(list(results.column(part, name, sampler, "queries").values()), axis=0)
            for sampler in samplers
        }
        trees = next(iter(results.column(part, name, "langevin", "trees").values()))
        pooled.append(np.concatenate([measured[sampler] for sampler in samplers]))
        lines.append(_langevin_row(name, str(trees), pooled[-1]))
    lines.append(_langevin_row("**all queries**", NOTHING, np.concatenate(pooled, axis=1)))
    return lines


def _langevin_row(name, trees, scores):
    """Rows of scores: langevin and plain, each once and twice as long."""
    cells = [trees, *(f"{values.mean():.4f}" for values in scores)]
    cells += [str(difference(scores[0], scores[1])), str(difference(scores[2], scores[3]))]
    cells.append(str(difference(scores[1], scores[3])))
    return f"| {name} | " + " | ".join(cells) + " |"


def matching(results):
    """Trained by one metric, scored by all."""
    lines = []
    for name in results.names("matching", 1):
        columns = ["trees", *(f"{metric.upper()}@10" for metric in METRICS)]
        lines += heading(f"StochasticRank of one metric, scored by all: {name}", columns)
        measured = {
            metric: next(iter(results.column("matching", name, metric, "scores").values()))
            for metric in METRICS
            if results.column("matching", name, metric, "scores")
        }
        averages = {
            trained: {scored: np.mean(values, axis=0) for scored, values in scores.items()}
            for trained, scores in measured.items()
        }
        for trained, scores in averages.items():
            trees = next(iter(results.column("matching", name, trained, "trees").values()))
            cells = [str(trees)]
            for scored in METRICS:
                text = f"{scores[scored].mean():.4f}"
                best = max(averages, key=lambda other: averages[other][scored].mean())
                text = f"**{text}**" if trained == best else text
                if trained != scored and scored in averages:
                    text += f" ({difference(scores[scored], averages[scored][scored])})"
                cells.append(text)
            lines.append(f"| trained by {trained} | " + " | ".join(cells) + " |")
    if lines:
        lines += ["", "In brackets: less the chain that was trained by the column's metric."]
    return lines


def times(results):
    """Seconds of each ranker and ratios within a repeat."""
    rankers = results.names("times", 3)
    if not rankers:
        return []
    seconds = {}
    for job, row in results.done.items():
        if job.part == "times" and "seconds" in row:
            seconds.setdefault(job.method, {})[job.split] = row["seconds"]
    (trees, *_) = (row["trees"] for job, row in results.done.items() if job.part == "times")
    base = seconds.get("sglb query_squared", {})
    lines = heading(
        f"Seconds of the processor, {trees} trees, one thread, all training queries of"
        f" {results.names('times', 1)[0]}",
        ["seconds, median", "times sglb query_squared (least to most)"],
    )
    for ranker in sorted(seconds, key=lambda ranker: median(seconds[ranker].values())):
        measured = seconds[ranker]
        ratios = [measured[repeat] / base[repeat] for repeat in measured if repeat in base]
        lines.append(
            f"| {ranker} | {number(median(measured.values()))}"
            f" | {median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}) |"
        )
    lines.append("")
    for slow, same, goal in (STOCHASTIC, LAMBDARANK):
        for ours in (same, "sglb query_squared"):
            if slow in seconds and ours in seconds:
                ratio = median(seconds[slow][r] / seconds[ours][r] for r in seconds[ours])
                lines.append(
                    f"- `{ours}` is {ratio:.1f} times as fast as `{slow}`; the goal was {goal:g}:"
                    f" {'reached' if ratio >= goal else '**not reached**'}."
                )
    return lines
