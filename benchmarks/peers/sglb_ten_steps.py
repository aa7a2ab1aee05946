from functools import partial

from benchmarks.peers import sglb_langevin

NAME = "sglb ten steps"
PACKAGE = sglb_langevin.PACKAGE
IMPORT = sglb_langevin.IMPORT
NOTE = "as sglb, with ten Newton steps in the leaves of a tree, as CatBoost takes (leaf_steps=10)"

fit = partial(sglb_langevin.fit, leaf_steps=10)
predict = sglb_langevin.predict


def enters(problem):
    return problem.measure == "fit" and problem.task == "binary"
