"""SGLB that cools down: a name for `Langevin` with a temperature that falls geometrically.

At a fixed temperature the chain converges to a law, the flatter the higher the temperature; the
lower it is, the longer a barrier keeps the chain. So the way to the global optimum is a temperature
that starts high and falls slowly. The shrink rate may fall with it: it keeps scores small, where
the smoothed 0-1 loss has few optima, but only large scores reach its infimum.
"""

from dataclasses import replace

from sglb.samplers.base import Rates
from sglb.samplers.langevin import Langevin
from sglb.samplers.preset import Preset
from sglb.schedules import Schedule, Shape

# A chain ends at this share of the temperature that it starts with, after this share of its steps;
# the others are spent at the end of the way.
COOLING, COOLING_SHARE = 1e-4, 0.8


def annealed(rates: Rates) -> Langevin:
    """Cool down from the hot temperature, or along a schedule that is stated for it."""
    hot = rates.hot_temperature
    if isinstance(hot, Schedule) or hot == 0.0:
        return Langevin.of(replace(rates, temperature=hot))
    n_steps = max(1, round(COOLING_SHARE * rates.n_steps))
    cooling = Shape("geometric", hot, COOLING * hot, n_steps)
    return Langevin.of(replace(rates, temperature=cooling))


PRESET = Preset(annealed, is_planned=True, scales_structures=False)
