"""Decisions under cost and capacity: what is better than the logistic loss and the best threshold?

    python -m benchmarks.decisions [--splits 20] [--problems ...] [--results FILE] [--write]

On each of 20 random splits every method trains on 16,000 rows, stops early by its own loss on 4,000
more, and decides about 10,000 new rows. Costs are in `PROBLEMS`. Decisions:

    threshold    logistic loss, the threshold of least cost on the 4,000 rows (the baseline)
    decide       logistic loss, the cheapest decision by probabilities
    calibrated   the same with probabilities calibrated on the 4,000 rows
    cost         loss="cost"

Capacity: 5 % of the rows can be acted upon; logistic loss (the baseline) against
StochasticRank("precision") and query_squared over the table as one query, and loss="cost". P-values
are of the corrected resampled t-test (Nadeau and Bengio).
"""

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.page import fill
from benchmarks.quality.significance import LEVEL, paired
from sglb import SGLBClassifier, SGLBRanker
from sglb.costs import action_costs
from sglb.datasets import load_table
from sglb.losses import StochasticRank
from sglb.metrics import expected_cost, precision_at_k, profit_at_k

PAGE = Path(__file__).parent.parent / "docs" / "decisions.md"
BEGIN, END = "<!-- decisions -->", "<!-- end of decisions -->"

N_TRAIN, N_VALIDATION, N_TEST = 16_000, 4_000, 10_000
# Nadeau and Bengio's n_test / n_train.
OVERLAP = N_TEST / (N_TRAIN + N_VALIDATION)
CAPACITY = 0.05
PATIENCE = 50


def column(X, name):
    """A column of amounts; where one is missing, the median."""
    values = X[name].to_numpy().astype(np.float64)
    return np.where(np.isfinite(values), values, np.nanmedian(values))


def offer(benefit, X):
    """An offer or a test costs 1 and brings `benefit` if it meets the right row."""
    return action_costs(1.0, benefit)


def five_to_one(X):
    """A missed default costs five times what a refused good customer does (Statlog)."""
    return np.array([[0.0, 1.0], [5.0, 0.0]])


def exposure(X):
    """A default loses 75 % of the limit; a refusal loses 10 % of it, and 5,000 for the customer."""
    limit = column(X, "LIMIT_BAL")
    return errors(0.1 * limit + 5000.0, 0.75 * limit)


def lemon(X):
    """A bad car loses half of its price, a good one that is not bought a margin of 600."""
    price = column(X, "VehBCost")
    return errors(np.full(len(price), 600.0), 0.5 * price)


def errors(false_positive, false_negative):
    costs = np.zeros((len(false_positive), 2, 2))
    costs[:, 0, 1], costs[:, 1, 0] = false_positive, false_negative
    return costs


# Name -> table, costs.
PROBLEMS = {
    "kdd09_appetency": ("kdd09_appetency_50k45f", partial(offer, 20.0)),
    "kdd09_churn": ("kdd09_churn_50k45f", partial(offer, 8.0)),
    "kdd09_upselling": ("kdd09_upselling_50k45f", partial(offer, 8.0)),
    "bio_kdd04": ("bio_kdd04", partial(offer, 20.0)),
    "credit_default": ("credit_default", five_to_one),
    "credit_default, by limit": ("credit_default", exposure),
    "kick": ("kick", five_to_one),
    "kick, by price": ("kick", lemon),
}


class Rows:
    """Rows of a split with their costs."""

    def __init__(self, X, y, costs, rows):
        self.X, self.y = X.take(rows), y[rows]
        self.costs = costs if costs.ndim == 2 else costs[rows]

    @property
    def savings(self):
        """What acting on each row saves."""
        costs = np.broadcast_to(self.costs, (len(self.y), 2, 2))[np.arange(len(self.y)), self.y]
        return costs[:, 0] - costs[:, 1]

    @property
    def single_query(self):
        return np.zeros(len(self.y))


def classifier(loss, fit, validation):
    model = SGLBClassifier(
        loss=loss, n_estimators=1000, early_stopping_rounds=PATIENCE, random_state=0, n_jobs=1
    )
    return model.fit(
        fit.X,
        fit.y,
        costs=fit.costs,
        eval_set=[(validation.X, validation.y)],
        eval_costs=[validation.costs],
    )


def ranker(loss, fit, validation, metric):
    model = SGLBRanker(
        loss=loss, n_estimators=1000, early_stopping_rounds=PATIENCE, random_state=0, n_jobs=1
    )
    return model.fit(
        fit.X,
        fit.y,
        group=fit.single_query,
        eval_set=[(validation.X, validation.y)],
        eval_group=[validation.single_query],
        eval_metric=metric,
    )


def cost_scores(logistic, by_cost, validation, test):
    """Mean cost of the decisions of each method, the lower the better."""
    tuned = logistic.tune_threshold(validation.X, validation.y, "cost", costs=validation.costs)
    calibrated = logistic.calibrate(validation.X, validation.y)
    decisions = {
        "threshold": tuned.predict(test.X),
        "decide": logistic.decide(test.X, test.costs),
        "calibrated": calibrated.decide(test.X, test.costs),
        "cost": by_cost.predict(test.X),
        "most likely": logistic.predict(test.X),
    }
    return {name: expected_cost(test.y, made, test.costs) for name, made in decisions.items()}


def capacity_scores(logistic, by_cost, fit, validation, test):
    """Precision and profit of the best 5 % by each method, the higher the better."""
    k = round(CAPACITY * len(fit.y))
    share = f"precision@{100 * CAPACITY:g}%"
    rank = ranker(StochasticRank("precision", k), fit, validation, share)
    squared = ranker("query_squared", fit, validation, "loss")
    probability = logistic.predict_proba(test.X)
    acting = np.broadcast_to(test.costs, (len(test.y), 2, 2))
    scores = {
        "logistic": probability[:, 1],
        "expected savings": np.einsum("ny,ny->n", probability, acting[:, :, 0] - acting[:, :, 1]),
        "stochastic_rank": rank.predict(test.X),
        "query_squared": squared.predict(test.X),
        "cost": by_cost.decision_function(test.X),
    }
    precision = {name: precision_at_k(test.y, z, CAPACITY) for name, z in scores.items()}
    # Savings are a benefit that every row brings, of either sign.
    everywhere, saved = np.ones(len(test.y)), test.savings
    profit = {
        name: profit_at_k(everywhere, z, CAPACITY, benefit=saved) / len(test.y)
        for name, z in scores.items()
    }
    return precision, profit


def n_scored(results):
    """Splits that results have scores of."""
    return len(results["cost"]["decide"]) if results else 0


def run(problem, n_splits, results):
    """Add scores of further splits to measure -> method -> one value a split; yield after each."""
    table, make_costs = PROBLEMS[problem]
    data = load_table(table)
    X, y = data.X, np.asarray(data.y).astype(np.intp)
    costs = make_costs(X)
    for split in range(n_scored(results), n_splits):
        order = np.random.default_rng(split).permutation(len(y))
        fit, validation, test = (
            Rows(X, y, costs, np.sort(part))
            for part in np.split(
                order[: N_TRAIN + N_VALIDATION + N_TEST], [N_TRAIN, N_TRAIN + N_VALIDATION]
            )
        )
        logistic, by_cost = (classifier(loss, fit, validation) for loss in ("logistic", "cost"))
        precision, profit = capacity_scores(logistic, by_cost, fit, validation, test)
        measured = {
            "cost": cost_scores(logistic, by_cost, validation, test),
            "precision": precision,
            "profit": profit,
        }
        for measure, scores in measured.items():
            for method, value in scores.items():
                results.setdefault(measure, {}).setdefault(method, []).append(value)
        yield


BASELINES = {"cost": "threshold", "precision": "logistic", "profit": "logistic"}
TITLES = {
    "cost": "Mean cost of a row's decision, against the best threshold",
    "precision": "Precision of the best 5 % of the rows, against the logistic loss",
    "profit": "Savings of the best 5 %, per row of the table, against the logistic loss",
}


def cell(measure, values, baseline):
    """Change against the baseline in percent of it, with an arrow if it is significant."""
    change = 100.0 * (np.mean(values) - np.mean(baseline)) / abs(np.mean(baseline))
    test = paired(values, baseline, OVERLAP)
    is_better = (change < 0.0) == (measure == "cost")
    mark = (" ▲" if is_better else " ▼") if test and test.p < LEVEL else ""
    return f"{change:+.1f} %{mark}"


def report(results):
    """Markdown tables of all measures."""
    lines = []
    for measure, baseline in BASELINES.items():
        methods = list(next(iter(results.values()))[measure])
        others = [method for method in methods if method != baseline]
        lines += ["", f"**{TITLES[measure]}**", ""]
        lines += [
            f"| | splits | {baseline} | " + " | ".join(others) + " |",
            "|---" * (len(others) + 3) + "|",
        ]
        for problem, measured in results.items():
            base = measured[measure][baseline]
            cells = [cell(measure, measured[measure][method], base) for method in others]
            mean = f"{np.mean(base):.4g}"
            lines.append(f"| {problem} | {len(base)} | {mean} | " + " | ".join(cells) + " |")
    return "\n".join(lines[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--results", type=Path, help="keep scores in this JSON file, and go on")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {PAGE.name}")
    options = parser.parse_args()
    kept = options.results and options.results.exists()
    results = json.loads(options.results.read_text()) if kept else {}
    for problem in options.problems:
        for _ in run(problem, options.splits, results.setdefault(problem, {})):
            if options.results:
                options.results.write_text(json.dumps(results))
    text = report({problem: results[problem] for problem in options.problems})
    print(text)
    if options.write:
        fill(PAGE, "Decisions", BEGIN, END, text)


if __name__ == "__main__":
    main()
