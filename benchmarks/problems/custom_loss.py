from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

PROBLEMS = {
    "custom_loss": Problem(
        "custom",
        "28 features, the logistic loss written in NumPy",
        interactions(28),
        n_rows=1_000_000,
        n_test=200_000,
        timeout=1800.0,
    )
}
