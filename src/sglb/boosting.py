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

from sglb.callbacks import Callback, Stop
from sglb.chain import Chain
from sglb.ensemble import Ensemble
from sglb.errors import ChainDiverged
from sglb.leaves import LeafRule
from sglb.losses import Loss
from sglb.samplers import Sampler
from sglb.structure import StructureRule
from sglb.training_set import TrainingSet

# Steps between two looks whether the chain runs away: next to nothing, and soon enough.
WATCHED = 8


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
    first = len(ensemble)
    moment = chain.moment(first, None, None, 1.0)
    for callback in callbacks:
        callback.start(moment)
    for step in range(first, first + n_steps):
        move = sampler.move(step)
        largest = chain.estimate_gradient(move, step)
        structure = rule.grow(training_set, chain.slopes, largest, move, seed, step)
        values, gains = chain.fit_leaves(structure, largest, move, step)
        ensemble.append(structure, values, gains, move.shrink)
        if step % WATCHED == 0:
            chain.check_growth(values, step + 1)
        if callbacks:
            moment = chain.moment(step + 1, structure, values, move.shrink)
            # Every callback sees the step, even when one of them wants to stop.
            answers = [callback.step(moment) for callback in callbacks]
            if any(isinstance(answer, Stop) for answer in answers):
                break
    for callback in callbacks:
        callback.finish(moment)
    if not np.isfinite(ensemble.values).all() or not np.isfinite(chain.raw).all():
        raise ChainDiverged(len(ensemble))
    return ensemble
