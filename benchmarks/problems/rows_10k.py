from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

PROBLEMS = {
    "rows_10k": Problem(
        "fit",
        "20 features",
        interactions(20),
        n_rows=10_000,
        n_test=100_000,
        n_trees=300,
        repeats=9,
    )
}
