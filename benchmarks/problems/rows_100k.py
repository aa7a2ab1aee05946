from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

PROBLEMS = {
    "rows_100k": Problem("fit", "28 features", interactions(28), n_rows=100_000, n_test=200_000)
}
