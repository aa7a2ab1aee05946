from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

PROBLEMS = {
    "rows_10m": Problem(
        "fit",
        "28 features",
        interactions(28),
        n_rows=10_000_000,
        n_test=200_000,
        fastest_of="rows_1m",
        timeout=1800.0,
    )
}
