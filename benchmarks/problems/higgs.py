from benchmarks.problems.base import Problem
from benchmarks.problems.tables import numeric

PROBLEMS = {
    "higgs": Problem(
        "fit", "higgs_26k, 28 features", numeric("higgs_26k"), n_rows=20_776, n_test=5_194
    )
}
