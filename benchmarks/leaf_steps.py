"""What Newton steps in the leaves do to time and test loss: how many, and how long at most.

    python -m benchmarks.leaf_steps [--rows 1000000] [--trees 100] [--seeds 3] [--share .02]
    python -m benchmarks.leaf_steps --tables adult,bio_kdd04 [--splits 2]

The first table is of the problem rows_1m. The second is of data with few positives, where a step
divides by next to nothing, with the logistic loss as it is and without its longest step. Means over
the seeds, two threads. With --tables, instead: what going without the longest step does to the test
loss of real tables, by the protocol of `benchmarks.defaults`.
"""

import argparse
import math
import time

import numpy as np

from benchmarks.defaults import FIRST_SPLIT, compare
from benchmarks.measures import test_loss
from benchmarks.problems import get_problem
from benchmarks.quality.protocol import MAX_ROUNDS
from sglb import SGLBClassifier
from sglb.datasets import load_table
from sglb.losses import Logistic

STEPS = (1, 2, 3, 10)
N_TEST = 200_000
MAX_ROWS = 60_000


class Unbounded(Logistic):
    """Without a longest step."""

    trust_radius = math.inf


def rare(n_rows, share, seed):
    """3 x0 / 2 + x1 x2 + logistic noise, positive in the highest `share` of the rows."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, 4), dtype=np.float32)
    score = 1.5 * X[:, 0] + X[:, 1] * X[:, 2] + random.logistic(size=n_rows)
    return X, (score > np.quantile(score, 1.0 - share)).astype(np.int64)


def line(name, train, test, seeds, **settings):
    """A line of a table: mean time, mean and largest loss, largest leaf value."""
    seconds, losses, highest = [], [], 0.0
    for seed in range(seeds):
        model = SGLBClassifier(max_bins=64, n_jobs=2, random_state=seed, **settings)
        start = time.perf_counter()
        model.fit(*train)
        seconds.append(time.perf_counter() - start)
        losses.append(test_loss("binary", test[1], model.predict_proba(test[0])[:, 1]))
        highest = max(highest, np.abs(model.trace_.values).max())
    return (
        f"| {name} | {np.mean(seconds):.3g} | {np.mean(losses):.4f} | {np.max(losses):.4f} |"
        f" {highest:.3g} |"
    )


def tables(rows=1_000_000, trees=100, seeds=3, share=0.02):
    """The lines of both tables."""
    data = get_problem("rows_1m").smaller(rows, trees).make()
    train, test = (data.X, data.y), (data.X_test, data.y_test)
    head = "fit, s | test loss | of the worst seed | largest leaf value |\n|---|--:|--:|--:|--:|"
    yield f"| steps, {len(data.X):,} rows | {head}"
    for steps in STEPS:
        settings = {"n_estimators": trees, "learning_rate": 0.1, "max_depth": 6}
        yield line(steps, train, test, seeds, leaf_steps=steps, **settings)
    yield f"\n| {100 * share:g} % positives, {rows:,} rows | {head}"
    train, test = rare(rows, share, 0), rare(N_TEST, share, 1)
    for steps in (1, 3):
        for loss in (Logistic(), Unbounded()):
            name = f"{steps} steps, longest {loss.trust_radius:g}"
            yield line(name, train, test, seeds, n_estimators=trees, leaf_steps=steps, loss=loss)


def real_tables(names, splits):
    """A line of changes in percent, split by split, for each table of two classes."""
    yield "| without a longest step | change of the test loss by split, % |\n|---|--:|"
    for name in names:
        table, moves = load_table(name), [{"loss": Unbounded()}]
        seeds = range(FIRST_SPLIT, FIRST_SPLIT + splits)
        changes = [compare(table, seed, MAX_ROWS, MAX_ROUNDS, moves)[0][0] for seed in seeds]
        yield f"| {name} | {', '.join(f'{change:+.2f}' for change in changes)} |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.02, help="of positives")
    parser.add_argument("--tables", help="real ones of two classes, with commas between")
    parser.add_argument("--splits", type=int, default=2, help="of each table")
    options = parser.parse_args()
    if options.tables is None:
        lines = tables(options.rows, options.trees, options.seeds, options.share)
    else:
        lines = real_tables(options.tables.split(","), options.splits)
    for text in lines:
        print(text, flush=True)


if __name__ == "__main__":
    main()
