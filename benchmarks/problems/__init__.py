"""The problems by name, in the order they are run. A module holds one, or variants of one."""

from importlib import import_module

MODULES = (
    "stumps_1k",
    "deep_1k",
    "rows_10k",
    "rows_100k",
    "rows_1m",
    "rows_10m",
    "wide",
    "classes_10",
    "adult",
    "higgs",
    "covertype",
    "bio",
    "california",
    "custom_loss",
    "predict",
    "one_row",
    "states",
    "imports",
)

PROBLEMS = {
    name: problem
    for module in MODULES
    for name, problem in import_module(f"benchmarks.problems.{module}").PROBLEMS.items()
}


def get_problem(name):
    if name not in PROBLEMS:
        raise ValueError(f"no problem {name!r}; there are {', '.join(PROBLEMS)}")
    return PROBLEMS[name]
