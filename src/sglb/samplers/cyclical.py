"""Cyclical Langevin boosting: a name for `Langevin` with a rate that falls and jumps up again.

    eps_k = eps / 2 (1 + cos(pi w)),     w = (k mod C) / C,     noise where w >= 1/2

Long steps at the beginning of a cycle, without noise, lead the chain to another valley of the loss;
in the second half of the cycle, with noise, its states are draws from that valley (Zhang et al.,
ICLR 2020), near the law of the temperature as the rate is small there.
"""

from dataclasses import replace

from sglb.samplers.base import Rates
from sglb.samplers.langevin import Langevin
from sglb.samplers.preset import Preset
from sglb.schedules import Schedule, Shape, last_of

N_CYCLES = 5


def cyclical(rates: Rates) -> Langevin:
    """Return five cycles, the last of which may be a little shorter."""
    rate, temperature = rates.learning_rate, rates.temperature
    for name, value in (("learning_rate", rate), ("temperature", temperature)):
        if isinstance(value, Schedule):
            raise ValueError(
                f"{name}={str(value)!r} is not allowed with sampler='cyclical', which has a"
                " schedule of its own; use sampler='langevin', and 'cosine(0.1, 0) every 50' for"
                " cycles"
            )
    # Rounded up: steps after the fifth cycle would be long and without noise, and end the chain.
    period = max(2, -(-rates.n_steps // N_CYCLES))
    falling = Shape("cosine", last_of(rate), 0.0, every=period)
    drawn = Shape("jump", 0.0, last_of(temperature), (period + 1) // 2, every=period)
    return Langevin.of(replace(rates, learning_rate=falling, temperature=drawn))


PRESET = Preset(cyclical, is_planned=True)
