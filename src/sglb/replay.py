"""Steps that a chain has taken before, repeated instead of computed.

A step is a function of the trees so far, the data, the recipe, the seed and its number. So a chain
that repeats the steps of an earlier run is in the state that this run was in, bit for bit, and all
who watch it see what they saw then.
"""

import numpy as np

from sglb.errors import ChangedChain
from sglb.structure import Structure
from sglb.trace import Floats, Trace
from sglb.transition import Transition


class Replay:
    """The trace of an earlier run; `n_inherited` of its steps are those of a model, on any rows.

    The last step that is not inherited is computed once more, and must come out the same.
    """

    def __init__(self, trace: Trace | None = None, n_inherited: int = 0) -> None:
        self.trace = trace
        self.n_inherited = n_inherited
        self.n_steps = 0 if trace is None else len(trace)
        self.n_repeated = max(n_inherited, self.n_steps - 1)

    def step(self, step: int, transition: Transition) -> tuple[Structure, Floats]:
        """Return the tree of a step, which moved the state by a transition."""
        trace = self.trace
        assert trace is not None  # there are steps to repeat
        same = np.array_equal(trace.C[step], transition.C)
        if not (same and np.array_equal(trace.b[step], transition.b)):
            raise ChangedChain(step + 1)
        structure = trace.structure(step)
        values: Floats = trace.values[step, : structure.n_leaves]
        return structure, values

    def check(self, trace: Trace) -> None:
        """Reject a chain whose newest step is not the one that the earlier run took there."""
        assert self.trace is not None  # it has this step
        step = len(trace) - 1
        now, before = trace.arrays(), self.trace.arrays()
        if not all(np.array_equal(array[step], before[name][step]) for name, array in now.items()):
            raise ChangedChain(step + 1)
