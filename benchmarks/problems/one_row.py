from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

PROBLEMS = {
    "one_row": Problem(
        "one_row", "28 features", interactions(28), n_rows=20_000, n_test=2_000, threads=1
    )
}
