"""Results -> the Markdown that is printed or put into docs/ranking.md."""

from math import isnan, nan

import numpy as np

from benchmarks import machine
from benchmarks.page import fill
from benchmarks.ranking import tables
from benchmarks.ranking.comparison import Scores, difference, frozen
from benchmarks.ranking.methods import METHODS, get_method, installed
from benchmarks.ranking.tables import heading
from benchmarks.ranking.tuning import MAX_TREES
from benchmarks.tables import NOTHING

BEGIN = "<!-- ranking: written by python -m benchmarks.ranking -->"
END = "<!-- end of ranking -->"
OWN = "sglb query_squared"
RIVAL = "lightgbm lambdarank"
# Not below the best ranker of CatBoost by more than this.
MARGIN = 0.002
LEVEL = 0.01


def markdown(results):
    """All tables of the parts that have results."""
    commits = sorted({row["commit"] for row in results.done.values() if "commit" in row})
    about = machine.facts([get_method(name).PACKAGE for name in METHODS])
    missing = [get_method(name).NAME for name in METHODS if not installed(name)]
    lines = [
        f"- {about['machine']}",
        "- " + ", ".join(f"{name} {number}" for name, number in about["versions"].items()),
        f"- results of commits {', '.join(commits)}",
        *([f"- not installed: {', '.join(missing)}"] if missing else []),
    ]
    scores = Scores(results)
    if scores.sets:
        lines += [*quality(scores), *goals(scores), *differences(scores), *means(scores)]
        lines += settings(results, scores)
    lines += [*tables.defaults(results), *tables.length(results)]
    lines += tables.langevin(results, "langevin", "Twice the tuned number of trees")
    title = "900 trees instead of 450, default rate (added when the tuned chains had been seen)"
    lines += tables.langevin(results, "long", title)
    lines += [*tables.matching(results), *tables.times(results)]
    return "\n".join(lines + failures(results))


def quality(scores):
    """NDCG@10 of each ranker; the best of a set is bold."""
    lines = heading(
        "NDCG@10 on test queries, tuned, mean of five seeds",
        [*scores.sets, "all queries", "mean of sets"],
    )
    owner = max(scores.rankers, key=lambda ranker: len(scores.common(ranker)))
    counts = [len(scores.of(name, owner)) for name in scores.common(owner)]
    lines.append(f"| scored queries | {' | '.join(map(str, counts))} | {sum(counts)} | |")
    rows = {}
    for ranker in scores.rankers:
        measured = [scores.of(name, ranker) for name in scores.sets]
        values = [nan if value is None else float(value.mean()) for value in measured]
        has_all = scores.common(ranker) == scores.sets
        pooled = float(scores.pooled(ranker).mean()) if has_all else nan
        rows[ranker] = [*values, pooled, sum(values) / len(values)]
    best = np.nanmax(list(rows.values()), axis=0)
    for ranker, values in rows.items():
        cells = [_marked(value, top) for value, top in zip(values, best, strict=True)]
        lines.append(f"| {ranker} | " + " | ".join(cells) + " |")
    return lines


def _marked(value, best):
    if isnan(value):
        return NOTHING
    return f"**{value:.4f}**" if value == best else f"{value:.4f}"


def differences(scores):
    """The default loss of sglb against every other ranker, over all queries and in each set."""
    if OWN not in scores.rankers:
        return []
    columns = ["all queries", "p", "one-sided 95 % bound below", "mean of sets", *scores.sets]
    lines = heading(f"`{OWN}` minus each ranker, NDCG@10 by query, ± standard error", columns)
    for ranker in scores.rankers:
        common = scores.common(OWN, ranker)
        if ranker == OWN or not common:
            continue
        measured = scores.against(OWN, ranker)
        cells = [
            str(measured),
            f"{measured.p:.2g}",
            f"{measured.bound:+.4f}",
            f"{scores.by_set(OWN, ranker):+.4f}",
            *(
                str(difference(scores.of(name, OWN), scores.of(name, ranker)))
                if name in common
                else NOTHING
                for name in scores.sets
            ),
        ]
        lines.append(f"| {_named(scores, ranker)} | " + " | ".join(cells) + " |")
    return [
        *lines,
        "",
        "Standard errors are those of a sample of queries; they do not contain what another sample"
        " of training queries, or another six trials, would change.",
    ]


def goals(scores):
    """What was aimed at before the test, and what came out."""
    best = scores.best("catboost", OWN)
    if not scores.common(OWN, RIVAL) or best is None:
        return []
    lines = heading(
        "Goals, over all test queries", ["difference", "p", "one-sided 95 % bound", "reached?"]
    )
    against = scores.against(OWN, RIVAL)
    lines.append(_goal(f"above `{RIVAL}`, p < {LEVEL}", against, _above(against)))
    other = scores.best("lightgbm", OWN)
    if other != RIVAL:
        against = scores.against(OWN, other)
        text = f"the same of LightGBM's best, `{other}` in hindsight (not a goal)"
        lines.append(_goal(text, against, _above(against)))
    against = scores.against(OWN, best)
    text = f"not below CatBoost's best, `{best}` in hindsight, by more than {MARGIN}"
    lines.append(_goal(text, against, against.bound > -MARGIN))
    lines.append(_goal(f"above `{best}`, p < {LEVEL}", against, _above(against)))
    return lines


def _above(measured):
    return measured.mean > 0.0 and measured.p < LEVEL


def _goal(text, measured, reached):
    cells = [
        str(measured),
        f"{measured.p:.2g}",
        f"{measured.bound:+.4f}",
        "yes" if reached else "**no**",
    ]
    return f"| {text} | " + " | ".join(cells) + " |"


def means(scores):
    """What the mean of several seeds adds, of every ranker."""
    columns = ["one seed", "three", "five", "five less one", f"five of {OWN} minus these"]
    lines = heading("Mean of the scores of several seeds, NDCG@10 over all queries", columns)
    for ranker in scores.rankers:
        single = scores.pooled(ranker)
        several = [scores.pooled(ranker, key) for key in ("mean_of_3", "mean_of_5")]
        cells = [f"{values.mean():.4f}" for values in (single, *several)]
        cells.append(str(difference(several[1], single)))
        names = scores.common(OWN, ranker)
        ours, theirs = (scores.pooled(r, "mean_of_5", names) for r in (OWN, ranker))
        cells.append(NOTHING if ranker == OWN else str(difference(ours, theirs)))
        lines.append(f"| {_named(scores, ranker)} | " + " | ".join(cells) + " |")
    return lines


def _named(scores, ranker):
    """The name of a ranker, and its sets if it does not have all."""
    names = scores.common(ranker)
    return ranker if names == scores.sets else f"{ranker} ({', '.join(names)} only)"


def settings(results, scores):
    """The spaces, and what was chosen on validation queries."""
    lines = ["", "### Settings", ""]
    lines.append("All: rate 0.05 to 0.3 and l2 0.3 to 30, both on a log scale. Beside these:")
    lines += ["", *(f"- **{get_method(n).NAME}**: {get_method(n).NOTE}." for n in METHODS)]
    lines += heading("Trees and rate chosen on validation queries, NDCG@10 there", scores.sets)
    at_limit = 0
    for ranker in scores.rankers:
        cells = []
        for name in scores.sets:
            chosen = frozen(results, name, ranker)
            if chosen is None:
                cells.append(NOTHING)
                continue
            at_limit += chosen["trees"] == MAX_TREES
            rate = chosen["settings"]["learning_rate"]
            cells.append(f"{chosen['trees']} × {rate:.2g}, {chosen['ndcg']:.4f}")
        lines.append(f"| {ranker} | " + " | ".join(cells) + " |")
    return [*lines, "", f"Choices at the limit of {MAX_TREES} trees: {at_limit}."]


def failures(results):
    """Every failure with its message."""
    measured = [(job, row["error"]) for job, row in results.done.items() if "error" in row]
    if not measured:
        return []
    return [
        "",
        "### Failures",
        "",
        *(f"- {' '.join(map(str, job))}: {why}" for job, why in measured),
    ]


def write(text):
    path = machine.REPOSITORY / "docs" / "ranking.md"
    fill(path, "Rankings", BEGIN, END, text)
