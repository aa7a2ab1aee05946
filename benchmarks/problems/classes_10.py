from benchmarks.problems.base import Problem
from benchmarks.problems.normal import classes

PROBLEMS = {
    "classes_10": Problem(
        "fit",
        "100 features, 10 classes",
        classes(100, 10),
        n_rows=100_000,
        n_test=50_000,
        task="multiclass",
        n_classes=10,
    ),
    "classes_10_loss": Problem(
        "fit",
        "100 features, 10 classes, longer",
        classes(100, 10),
        n_rows=100_000,
        n_test=50_000,
        task="multiclass",
        n_classes=10,
        n_trees=250,
        rounds_by_class=100,
    ),
}
