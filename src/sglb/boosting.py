"""The loop: stochastic gradient Langevin boosting (Ustimenko & Prokhorenkova, 2021, Algorithm 2).

    repeat
        g       gradient of the loss at the current f, estimated from a sample of rows if wanted
        s       structure drawn from p(s | g + sigma zeta')                  zeta' ~ N(0, I)
        theta   -eps * mean over each leaf of s of (g + sigma zeta)          zeta  ~ N(0, I)
        f       (1 - gamma eps) f + tree(s, theta)

The gradient is taken at the unshrunk f; shrink and step happen together. A sampler says what eps,
sigma, gamma and the sample are at each step, a structure rule is p, callbacks look on.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sglb.callbacks import Callback, check_answer, watches_steps
from sglb.chain import Chain
from sglb.ensemble import Ensemble
from sglb.errors import ChainDiverged
from sglb.leaves import LeafRule
from sglb.losses import Loss
from sglb.samplers import Sampler
from sglb.structure import Structure, StructureRule
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]

# Steps between two looks whether the chain runs away: next to nothing, and soon enough.
WATCHED = 8


def take_step(
    chain: Chain, sampler: Sampler, rule: StructureRule, step: int
) -> tuple[Structure, Floats, float]:
    """Move a chain on by one tree; return its structure, its values and the shrink factor."""
    move = sampler.move(step)
    largest = chain.estimate_gradient(move, step)
    structure = rule.grow(chain.training_set, chain.slopes, largest, move, chain.seed, step)
    values, gains = chain.fit_leaves(structure, largest, move, step)
    chain.ensemble.append(structure, values, gains, move.shrink)
    if step % WATCHED == 0:
        chain.check_growth(values, move, step + 1)
    return structure, values, move.shrink


def boost(
    training_set: TrainingSet,
    loss: Loss,
    sampler: Sampler,
    rule: StructureRule,
    leaves: LeafRule,
    ensemble: Ensemble,
    *,
    n_steps: int,
    seed: int,
    n_threads: int = 1,
    callbacks: Sequence[Callback] = (),
) -> Ensemble:
    """Take `n_steps` steps from the state that `ensemble` is in, and append them to it.

    Step numbers count from the chain's beginning, so a chain that is continued draws the noise
    it would have drawn without the break.
    """
    chain = Chain(training_set, loss, leaves, ensemble, seed=seed, n_threads=n_threads)
    first, last = len(ensemble), len(ensemble) + n_steps
    info = chain.step_info(first, last, None, None, 1.0)
    for callback in callbacks:
        callback.start(info)
    watching = [callback for callback in callbacks if watches_steps(callback)]
    for step in range(first, last):
        structure, values, shrink = take_step(chain, sampler, rule, step)
        if watching:
            info = chain.step_info(step + 1, last, structure, values, shrink)
            # Every callback sees the step, even when one of them wants to stop.
            for callback in watching:
                answer = callback.step(info)
                if answer is not None:
                    info.stop = info.stop or check_answer(callback, answer)
            if info.stop is not None:
                break
    if callbacks and not watching and n_steps:
        info = chain.step_info(last, last, structure, values, shrink)
    for callback in callbacks:
        callback.finish(info)
    if not np.isfinite(ensemble.values).all() or not np.isfinite(chain.raw).all():
        raise ChainDiverged(len(ensemble))
    return ensemble
