from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

# At a rate of .1 the training loss is near zero long before the end, and libraries that ask for a
# least Hessian in a leaf stop splitting (XGBoost's last trees have 4 leaves) while others go on.
PROBLEMS = {
    "deep_1k": Problem(
        "fit",
        "20 features",
        interactions(20),
        n_rows=1_000,
        n_test=100_000,
        n_trees=1_000,
        learning_rate=0.02,
        repeats=9,
    )
}
