from benchmarks.problems.base import Problem

PROBLEMS = {
    "imports": Problem("imports", "in a fresh interpreter"),
    "imports_after_sklearn": Problem(
        "imports", "where `sklearn.base` is imported already", setup="import sklearn.base"
    ),
}
