from dataclasses import replace

from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

ONE_THREAD = Problem(
    "one_row", "28 features", interactions(28), n_rows=20_000, n_test=2_000, threads=1
)
# What users get who do not think of threads: some libraries ask for their number at each call.
PROBLEMS = {
    "one_row": ONE_THREAD,
    "one_row_default": replace(ONE_THREAD, threads=None, default_threads=True),
}
