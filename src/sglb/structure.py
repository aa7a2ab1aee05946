"""The structure of the next tree: s ~ p(s | gradient + sigma * zeta').

A structure is a list of splits. A split keeps the codes low..high of a feature left (bit 0) and
sends the others right (bit 1); bit d of a leaf's number belongs to split d. Two forms occur on
numbers: codes 0..b (a missing value goes left) and 1..b (a missing value goes right).
"""

from typing import Any, Protocol

from sglb import _core
from sglb.elementary import exp

Structure = _core.Structure
Sample = _core.Sample
SamplePlan = _core.SamplePlan

NO_SAMPLE = SamplePlan(0, 1, False)


class StructureRule(Protocol):
    """Any p(s | g). The theory wants every structure possible and p(s | c g) = p(s | g), c > 0."""

    def plan(self, n_rows: int, n_outputs: int) -> SamplePlan:
        """Return how large a sample of this many rows and outputs is wanted, or NO_SAMPLE."""
        ...

    def search(self, sample: Sample) -> Structure:
        """Choose a structure for the noisy gradients of a sample."""
        ...


class GreedySearch:
    """Level by level the split with the largest sum over leaves of G^2 / (W + l2).

    With `newton` the sum of weights W is that of weighted second derivatives instead. Runs on about
    `structure_rows` rows and on `structure_outputs` outputs, drawn anew at each step; the leaves
    still use all rows and have all outputs.
    """

    def __init__(
        self,
        max_depth: int = 6,
        *,
        l2: float = 0.0,
        newton: bool = False,
        structure_rows: int | None = None,
        structure_outputs: int | None = None,
        random_strength: float = 0.0,
        n_threads: int = 1,
    ) -> None:
        self.newton = newton
        self.structure_rows = structure_rows
        self.structure_outputs = structure_outputs
        self.random_strength = random_strength
        self._search = _core.GreedySearch(max_depth, l2, n_threads)

    def plan(self, n_rows: int, n_outputs: int) -> SamplePlan:
        """Return the size of the sample: all rows and outputs, or as many as stated."""
        rows, outputs = self.structure_rows, self.structure_outputs
        return SamplePlan(
            n_rows if rows is None else rows,
            n_outputs if outputs is None else outputs,
            self.newton,
        )

    def search(self, sample: Sample) -> Structure:
        """Search the structure on noisy gradients of a sample of the rows."""
        strength = self._strength(sample) if self.random_strength else 0.0
        structure = self._search.run(sample, strength)
        bundles: Any = sample.bundles
        return structure if bundles is None else Structure(*bundles.split(*structure))

    def _strength(self, sample: Sample) -> float:
        """Score noise fades as the chain's time goes on: times q / (1 + q), q = N exp(-time)."""
        fading = exp(min(sample.time, 700.0)) / max(sample.n_table_rows, 1)
        return self.random_strength / (1.0 + fading)
