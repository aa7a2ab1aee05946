from benchmarks.problems.base import Problem
from benchmarks.problems.tables import numeric

PROBLEMS = {
    "covertype": Problem(
        "fit",
        "covertype, 54 features, 7 classes",
        numeric("covertype"),
        n_rows=464_810,
        n_test=116_202,
        task="multiclass",
        n_classes=7,
    )
}
