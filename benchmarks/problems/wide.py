from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

PROBLEMS = {
    "wide": Problem("fit", "1,000 features", interactions(1_000), n_rows=50_000, n_test=20_000)
}
