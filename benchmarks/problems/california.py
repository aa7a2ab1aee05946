from benchmarks.problems.base import Problem
from benchmarks.problems.tables import numeric

PROBLEMS = {
    "california": Problem(
        "fit",
        "california_housing, 8 features, squared loss",
        numeric("california_housing"),
        n_rows=16_512,
        n_test=4_128,
        n_trees=300,
        task="regression",
        n_classes=0,
    )
}
