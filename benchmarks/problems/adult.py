from benchmarks.problems.base import Problem
from benchmarks.problems.tables import numeric

PROBLEMS = {
    "adult": Problem(
        "fit", "adult, its 6 numeric columns", numeric("adult"), n_rows=39_074, n_test=9_768
    )
}
