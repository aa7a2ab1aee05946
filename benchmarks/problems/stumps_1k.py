from benchmarks.problems.base import Problem
from benchmarks.problems.normal import additive

PROBLEMS = {
    "stumps_1k": Problem(
        "fit",
        "3 features",
        additive,
        n_rows=1_000,
        n_test=100_000,
        n_trees=1_000,
        depth=1,
        repeats=9,
    )
}
