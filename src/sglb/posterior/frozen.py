"""A chain on frozen partitions: Langevin boosting whose structures know nothing of the state.

    k       partition drawn from the list, each with the same probability
    G_j     sum over the rows of leaf j of the weighted gradient of the energy at the current f
    theta   -eps (G_j / W_j + sigma xi_j / sqrt(W_j)),    sigma^2 = 2 T / eps,    xi ~ N(0, 1)
    f       (1 - gamma eps) f + theta[leaf of the row]

As eps -> 0 its law is exp(-energy / T) times the prior N(0, T Pbar / gamma) (`prior.py`), where the
chain starts: directions that only the prior determines, which relax at the slow rate eps gamma, are
in their law at once.

All draws of a batch take their step on the same partition, which is found once for all of them;
given the partitions they are independent. What is drawn depends on the seed and the number of a
draw, never on how many draws there are.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.errors import ChainDiverged
from sglb.noise import Role
from sglb.posterior.energies import Energy
from sglb.posterior.leaf_draws import BLOCK_BYTES
from sglb.posterior.prior import LeafPrior
from sglb.samplers import Langevin
from sglb.schedules import last_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

# Draws that share their partitions. Kernels hold sixteen doubles in a few registers and read a
# row's leaf once for all of them; the state of 20,000 rows, 2.5 MB, stays in a cache. More draws
# would be no faster, and would have fewer sequences of partitions among them.
BATCH = 16


@dataclass(frozen=True)
class PriorDraws:
    """Draws first_draw, ... from the prior at T / (gamma K) = 1, as every batch begins.

    Another prior variance multiplies them. `values` (n_all_leaves, n_outputs, M) of the leaves,
    `state` (n_outputs, n_rows, M) at the training rows, `largest` (M,) the largest |state|.
    """

    first_draw: int
    seed: int
    values: Floats
    state: Floats
    largest: Floats

    @classmethod
    def make(
        cls,
        prior: LeafPrior,
        n_outputs: int,
        first_draw: int,
        n_draws: int,
        *,
        seed: int = 0,
        n_threads: int = 1,
    ) -> "PriorDraws":
        """Draw from the prior: the sum of a row's leaves over all partitions, block by block."""
        if first_draw % BATCH + n_draws > BATCH:
            raise ValueError(
                f"draws {first_draw}..{first_draw + n_draws - 1} are not of one batch of {BATCH}"
            )
        values = np.empty((prior.n_all_leaves, n_outputs, n_draws))
        state = np.zeros((n_outputs, prior.partitions.n_rows, n_draws))
        prior.draw(1.0, first_draw, values, seed)
        size, n_rows = max(BLOCK_BYTES // (4 * prior.n_partitions), 64), prior.partitions.n_rows
        for first in range(0, n_rows, size):
            leaves = prior.partitions.leaves(first, min(first + size, n_rows))
            _core.add_partitions(leaves, prior.first, values, first, state, n_threads)
        largest = np.maximum(state.max(axis=(0, 1)), -state.min(axis=(0, 1)))
        return cls(first_draw, seed, values, state, largest)

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.largest)


class FrozenChain:
    """Draws first_draw, first_draw + 1, ... of one batch, side by side.

    `state` (n_outputs, n_rows, M) is what they are at the training rows, `leaf_values()` what every
    leaf adds to them. `start` are their prior draws, if these are known already.
    """

    def __init__(
        self,
        energy: Energy,
        prior: LeafPrior,
        sampler: Langevin,
        first_draw: int = 0,
        n_draws: int = BATCH,
        *,
        seed: int = 0,
        n_threads: int = 1,
        start: PriorDraws | None = None,
    ) -> None:
        if energy.n_rows != prior.partitions.n_rows:
            raise ValueError(
                f"the energy has {energy.n_rows} rows and the partitions {prior.partitions.n_rows}"
            )
        if start is None:
            start = PriorDraws.make(
                prior, energy.n_outputs, first_draw, n_draws, seed=seed, n_threads=n_threads
            )
        self.energy, self.prior, self.sampler = energy, prior, sampler
        self.first_draw, self.seed, self.n_threads = start.first_draw, start.seed, n_threads
        self.n_steps = 0
        # Without data, as in a leaf without rows, the chain keeps the variance v of a leaf value if
        #
        #     v = (1 - gamma eps)^2 v + 2 eps T / (K W_j)
        #
        # that is, at v = T / (gamma K W_j) / (1 - gamma eps / 2): the prior's but for the bias of a
        # step. An empty leaf starts and stays there like any other, with G_j = 0.
        temperature, shrink_rate = last_of(sampler.temperature), last_of(sampler.shrink_rate)
        variance = temperature / (shrink_rate * prior.n_partitions)
        deviation = math.sqrt(variance)
        self.state: Floats = deviation * start.state
        self.largest: Floats = deviation * start.largest
        # Every step shrinks all leaves. Values are kept as multiples of a factor that shrinks
        # instead, so that a step touches the leaves of its partition only.
        self._values: Floats = deviation * start.values
        self._factor = 1.0

    def step(self) -> int:
        """Take one step with all draws, and return the number of its partition."""
        move, prior, step = self.sampler.move(self.n_steps), self.prior, self.n_steps
        k = self._choose(step)
        leaf, leaves = prior.partitions.leaf(k), prior.of(k)
        cover = prior.cover[leaves, None, None]
        gradient = self._leaf_gradients(leaf, len(cover))
        xi = np.empty_like(gradient)
        _core.draw_normals(_core.Draws(self.seed, step), int(Role.DRAW), self.first_draw, xi)
        values = -move.learning_rate * (gradient / cover + move.noise / np.sqrt(cover) * xi)
        self._advance(leaf, values, move.shrink)
        self._keep(leaves, values, move.shrink)
        self.n_steps = step + 1
        return k

    def leaf_values(self) -> Floats:
        """Return what each leaf adds to the draws, (n_leaves, n_outputs, M).

        All that the prior and the steps added to the leaf, shrunk by the steps since: the state of
        any row is the sum of the values of its leaves.
        """
        return self._factor * self._values

    def _choose(self, step: int) -> int:
        words = np.empty((1, 4), dtype=np.uint32)
        _core.words(self.seed, step, int(Role.PARTITION), 0, self.first_draw // BATCH, words)
        return int(words[0, 0]) * self.prior.n_partitions >> 32

    def _leaf_gradients(self, leaf: Ints, n_leaves: int) -> Floats:
        try:
            return self.energy.leaf_gradients(
                self.state, self.largest, leaf, n_leaves, self.n_threads
            )
        except OverflowError as error:
            raise ChainDiverged(self.n_steps) from error

    def _advance(self, leaf: Ints, values: Floats, shrink: float) -> None:
        _core.advance_draws(leaf, values, shrink, self.state, self.largest, self.n_threads)

    def _keep(self, leaves: slice, values: Floats, shrink: float) -> None:
        self._factor *= shrink
        if self._factor < 2.0**-20:  # long before the quotients overflow
            self._values *= self._factor
            self._factor = 1.0
        self._values[leaves] += values / self._factor
