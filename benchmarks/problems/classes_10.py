from dataclasses import replace

from benchmarks.problems.base import Problem
from benchmarks.problems.normal import classes

TEN = Problem(
    "fit",
    "100 features, 10 classes",
    classes(100, 10),
    n_rows=100_000,
    n_test=50_000,
    task="multiclass",
    n_classes=10,
)
PROBLEMS = {
    "classes_10": TEN,
    "classes_10_loss": replace(
        TEN, description=f"{TEN.description}, longer", n_trees=250, rounds_by_class=100
    ),
}
