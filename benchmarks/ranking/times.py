"""Seconds of the processor for fits with the same number of trees, in turn in one process."""

import time

from benchmarks.ranking import sets
from benchmarks.ranking.methods import get_method, library_of

TREES, REPEATS = 100, 3
SET = "yandex_relevance"
# Trees as alike as they can be: depth 6, or the 31 leaves that are LightGBM's default.
SETTINGS = {
    "sglb": {"learning_rate": 0.1, "max_depth": 6},
    "lightgbm": {"learning_rate": 0.1, "num_leaves": 31},
    "xgboost": {"learning_rate": 0.1, "max_depth": 6},
    "catboost": {"learning_rate": 0.1, "depth": 6},
}


def measure(variant, parts, seed, n_trees=TREES):
    rows, library = sets.both(*parts[:2]), library_of(variant)
    method = get_method(library)
    method.fit(variant, rows, SETTINGS[library], 1, seed)  # imports the library
    start = time.process_time()
    method.fit(variant, rows, SETTINGS[library], n_trees, seed)
    return {"seconds": time.process_time() - start, "trees": n_trees}
