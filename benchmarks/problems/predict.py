from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

# What the trees were trained on does not change the work of a prediction; 20,000 rows fill them.
PROBLEMS = {
    f"predict_{n_trees}_{threads}": Problem(
        "predict",
        "28 features",
        interactions(28),
        n_rows=20_000,
        n_test=200_000,
        n_trees=n_trees,
        threads=threads,
    )
    for n_trees in (100, 1_000)
    for threads in (1, 2)
}
