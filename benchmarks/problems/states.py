from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

PROBLEMS = {
    f"states{suffix}": Problem(
        "states",
        "28 features",
        interactions(28),
        n_rows=20_000,
        n_test=200_000,
        n_trees=n_trees,
    )
    for suffix, n_trees in (("", 100), ("_1000", 1_000))
}
