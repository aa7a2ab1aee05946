from functools import partial

from benchmarks.peers import sglb_langevin

NAME = "sglb two steps"
PACKAGE = sglb_langevin.PACKAGE
IMPORT = sglb_langevin.IMPORT
NOTE = "as sglb, with two Newton steps in the leaves of a tree (leaf_steps=2; CatBoost takes ten)"

fit = partial(sglb_langevin.fit, leaf_steps=2)
predict = sglb_langevin.predict


def enters(problem):
    return problem.measure == "fit" and problem.task == "binary"
