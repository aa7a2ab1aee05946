from benchmarks.problems.base import Problem
from benchmarks.problems.tables import numeric

PROBLEMS = {
    "bio": Problem(
        "fit",
        "bio_kdd04, 74 features, 0.9 % positive",
        numeric("bio_kdd04"),
        n_rows=116_600,
        n_test=29_151,
    )
}
