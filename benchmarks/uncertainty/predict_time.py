"""How long draws take to predict: nanoseconds a tree and row for 100 draws, on one thread.

    python -m benchmarks.uncertainty.predict_time

The trees of a classifier (20,000 rows of ten columns, a thousand trees) are walked once for all
draws. Two parts are timed besides: the leaves of the rows, and the sum of the leaves' values of all
draws. The least of several repeats counts: other work on the machine only adds.
"""

import time

from benchmarks.uncertainty.known import simulate
from sglb import SGLBClassifier

N_ROWS, N_DRAWS, N_TREES, REPEATS = 20_000, 100, 1000, 5
GOAL = 10.0


def least_seconds(work):
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main():
    X, y, _, _ = simulate("classes", N_ROWS, 0)
    model = SGLBClassifier(n_estimators=N_TREES, random_state=0, n_jobs=1).fit(X, y)
    rows, _, _, _ = simulate("classes", N_ROWS, 1)
    print(f"{N_ROWS:,} rows, {N_TREES:,} trees, {N_DRAWS} draws, one thread")
    for kind in ("laplace", "full"):
        plan = {"kind": kind, "n_draws": N_DRAWS, "prior_variance": 0.3, "n_steps": 150}
        posterior = model.posterior(X, y, **plan)
        source, draws = posterior._source, posterior._posterior.draws
        partitions = source.rows(rows).partitions
        parts = {
            "codes, leaves, draws and probabilities": lambda p=posterior: p.mean(rows),
            "leaves and draws": lambda d=draws, q=partitions: list(d.blocks(q, 1)),
            "leaves alone": lambda q=partitions: q.leaves(0, N_ROWS),
        }
        for name, work in parts.items():
            nanoseconds = 1e9 * least_seconds(work) / (N_ROWS * N_TREES)
            verdict = f" (goal: {GOAL:g})" if name == "leaves and draws" else ""
            print(f"{kind:8} {name:40} {nanoseconds:6.2f} ns a tree and row{verdict}", flush=True)


if __name__ == "__main__":
    main()
