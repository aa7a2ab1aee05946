"""The driver of chains that exchange temperatures: replica exchange.

Chains at temperatures T_1 < ... < T_R move on the same rows. Every `swap_every` steps the chains of
neighbouring temperatures i, j exchange them with probability

    min(1, exp((1 / T_i - 1 / T_j) (E_i - E_j))),     E the sum of the loss over all rows

so that a chain which has crossed a barrier while it was hot goes on at the lowest temperature. The
shrink rates of the ladder are proportional to its temperatures: then the prior N(0, T Pbar / gamma)
is the same for all chains and cancels, and the exchange leaves each chain's law as it is.
Temperatures are exchanged, not models: a chain keeps its trees, and its trace holds the temperature
of each step.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.boosting import check_finite, look_on, step_info
from sglb.callbacks import Callback, StepInfo, overrides_step
from sglb.chain import Chain
from sglb.elementary import log
from sglb.noise import Role
from sglb.samplers import Sampler
from sglb.threads import side_by_side
from sglb.trace import Trace


class Replicas:
    """Chains and the rung of the ladder that each is on; `samplers[0]` is the coldest rung.

    `coldest[k - 1]` is the number of the chain that took step k on the coldest rung.
    """

    def __init__(
        self, chains: Sequence[Chain], samplers: Sequence[Sampler], seed: int, swap_every: int
    ) -> None:
        self.chains = list(chains)
        self.samplers = list(samplers)
        self.at_rung = list(range(len(chains)))  # number of the chain on each rung
        self.coldest: list[int] = []
        self.n_tried: NDArray[np.int64] = np.zeros(len(chains) - 1, dtype=np.int64)
        self.n_swapped = np.zeros_like(self.n_tried)
        self._inverse = [1.0 / sampler.move(0).temperature for sampler in samplers]
        self.swap_every = swap_every
        self._seed = seed
        for chain, sampler in zip(chains, samplers, strict=True):
            chain.sampler = sampler

    @property
    def swap_rates(self) -> NDArray[np.float64]:
        """Share of the exchanges between rungs r and r + 1 that were accepted, (n_rungs - 1,).

        NaN where none was tried.
        """
        with np.errstate(invalid="ignore"):
            return self.n_swapped / self.n_tried

    @property
    def n_replayed(self) -> int:
        """Steps that the run repeats: the longest chain that an earlier one has left behind."""
        return max(chain.replay.n_steps for chain in self.chains)

    def traces_at(self, step: int) -> list[Trace]:
        """Return the traces up to a step, first of the chain that was on the coldest rung there."""
        coldest = self.coldest[step - 1]
        order = sorted(range(len(self.chains)), key=lambda number: number != coldest)
        return [self.chains[number].trace.at(step) for number in order]

    def exchange(self, step: int) -> None:
        """Try to exchange neighbours: pairs that begin at an even and at an odd rung in turn."""
        energies = [chain.rows.energy().value() for chain in self.chains]
        words = np.empty((len(self.chains), 4), dtype=np.uint32)
        _core.words(self._seed, step, Role.SWAP, 0, 0, words)
        for rung in range(step // self.swap_every % 2, len(self.chains) - 1, 2):
            cold, hot = self.at_rung[rung : rung + 2]
            copies = self.chains[cold].rows.totals.n_copies
            gap = (self._inverse[rung] - self._inverse[rung + 1]) / copies
            uniform = (float(words[rung, 0]) + 0.5) / 2.0**32
            self.n_tried[rung] += 1
            if log(uniform) < gap * (energies[cold] - energies[hot]):
                self.n_swapped[rung] += 1
                self.at_rung[rung : rung + 2] = [hot, cold]
        for rung, number in enumerate(self.at_rung):
            self.chains[number].sampler = self.samplers[rung]


def temper(
    replicas: Replicas,
    n_steps: int,
    callbacks: Sequence[Callback] = (),
    n_threads: int = 1,
) -> StepInfo:
    """Take `n_steps` steps with each chain; callbacks look on at the one on the coldest rung.

    Return what the last of them saw. If they end the run, chains on other rungs may have gone on to
    the next exchange.
    """
    step = len(replicas.chains[0].trace)
    last = step + n_steps
    info = step_info(replicas.chains[replicas.at_rung[0]], last, None)
    info.n_replayed = replicas.n_replayed
    for callback in callbacks:
        callback.start(info)
    watching = [callback for callback in callbacks if overrides_step(callback)]
    while step < last and info.stop is None:
        since = step % replicas.swap_every
        if step > 0 and since == 0:
            replicas.exchange(step)
        n_taken = min(replicas.swap_every - since, last - step)
        cold, *others = (replicas.chains[number] for number in replicas.at_rung)
        tasks = [partial(_advance, chain, n_taken, last) for chain in others]
        first = partial(_advance, cold, n_taken, last, watching, replicas.n_replayed)
        info = side_by_side([first, *tasks], n_threads)[0]
        replicas.coldest += [replicas.at_rung[0]] * (info.step - step)
        step = info.step
    for callback in callbacks:
        callback.finish(info)
    for chain in replicas.chains:
        check_finite(chain)
    return info


def _advance(
    chain: Chain,
    n_steps: int,
    last: int,
    callbacks: Sequence[Callback] = (),
    n_replayed: int = 0,
) -> StepInfo:
    """Take steps with a chain on its rung, up to one that a callback wants to be the last."""
    for _ in range(n_steps):
        info = step_info(chain, last, chain.step())
        info.n_replayed = n_replayed
        look_on(callbacks, info)
        if info.stop is not None:
            break
    return info
