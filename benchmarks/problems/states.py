from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

PROBLEMS = {
    "states": Problem("states", "28 features", interactions(28), n_rows=20_000, n_test=200_000)
}
