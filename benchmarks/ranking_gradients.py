"""Time of a gradient of each ranking loss: `python -m benchmarks.ranking_gradients`.

One thread, processor time, the training queries of yandex_relevance (12,465 rows in 666 queries),
or with `--rows 20000` one query of so many synthetic documents. Losses take turns, so that a busy
machine slows all of them down; the fastest of the repeats is least disturbed.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sglb import _core
from sglb.losses import LambdaRank, Loss, RankingLoss, StochasticRank, Yeti, get_loss
from sglb.losses.ranking import QuerySlopes
from sglb.target import Target

# What the gradient of StochasticRank's NDCG@10 may take on these rows, in milliseconds.
GOAL = 2.5

LOSSES: dict[str, Loss] = {
    "query_squared": get_loss("query_squared"),
    "xendcg": get_loss("xendcg"),
    "pairwise_logistic": get_loss("pairwise_logistic"),
    "lambdarank": LambdaRank(),
    "yeti": Yeti(),
    "stochastic_rank ndcg@10": StochasticRank("ndcg", 10),
    "stochastic_rank ndcg": StochasticRank("ndcg", None),
    "stochastic_rank err@10": StochasticRank("err", 10),
}


def yandex_relevance() -> Target:
    """Return the training rows of yandex_relevance, from the folder SGLB_DATA."""
    import pyarrow.parquet as pq

    folder = os.environ.get("SGLB_DATA")
    if folder is None:
        raise SystemExit("set SGLB_DATA to the folder with yandex_relevance.parquet")
    table = pq.read_table(
        Path(folder) / "yandex_relevance.parquet", columns=["target", "group", "split"]
    )
    train = np.asarray(table["split"]) == "train"
    return Target.of(np.asarray(table["target"])[train], groups=np.asarray(table["group"])[train])


def single_query(n_rows: int) -> Target:
    """Return a single query of so many documents with grades 0 to 4."""
    grades = np.random.default_rng(0).integers(0, 5, n_rows)
    return Target.of(grades, groups=np.zeros(n_rows, dtype=np.int64))


def gradient_of(loss: Loss, target: Target) -> Callable[[int], None]:
    """Return a function that computes the gradient of a step, curvature included."""
    assert isinstance(loss, RankingLoss)
    fill = loss.adapt(target).slopes_on(target)
    raw = np.random.default_rng(1).normal(size=len(target))
    gradient, hessian = np.empty(len(target)), np.empty(len(target))

    def compute(step: int) -> None:
        fill(QuerySlopes(raw, gradient, hessian, _core.Draws(1, step)))

    return compute


def milliseconds(target: Target, repeats: int) -> dict[str, list[float]]:
    """Return the times of each loss, taken in turns."""
    computes = {name: gradient_of(loss, target) for name, loss in LOSSES.items()}
    times: dict[str, list[float]] = {name: [] for name in computes}
    for step in range(repeats + 1):
        for name, compute in computes.items():
            start = time.process_time()
            compute(step)
            if step:  # the first turn fills caches
                times[name].append(1e3 * (time.process_time() - start))
    return times


def main(arguments: list[str] | None = None) -> None:
    """Print a table of the losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="documents of a single query")
    parser.add_argument("--repeats", type=int, default=50)
    options = parser.parse_args(arguments)
    target = yandex_relevance() if options.rows is None else single_query(options.rows)
    print(f"{len(target):,} rows, {target.queries.n_queries:,} queries; milliseconds, one thread\n")
    print("| loss | fastest | median |\n|---|--:|--:|")
    for name, times in milliseconds(target, options.repeats).items():
        print(f"| {name} | {min(times):.3f} | {np.median(times):.3f} |")
    if options.rows is None:
        print(f"\nGoal for stochastic_rank ndcg@10: at most {GOAL} ms.")


if __name__ == "__main__":
    main()
