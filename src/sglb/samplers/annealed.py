"""SGLB that cools down: a name for `Langevin` whose temperature and shrink rate fall geometrically.

At a fixed temperature the chain converges to a law, the flatter the higher the temperature; the
lower it is, the longer a barrier keeps the chain. So the way to the global optimum is a temperature
that starts high and falls slowly. The shrink rate falls with it, so that at all temperatures the
prior is the same, N(0, T Pbar / gamma): at the start it keeps scores small, where there are few
valleys, and at the end it holds back nothing.
"""

from dataclasses import replace

from sglb.samplers.base import Rate, Rates
from sglb.samplers.langevin import Langevin
from sglb.samplers.preset import Preset
from sglb.schedules import Schedule, Shape

# A chain ends at this share of the rates that it starts with, after this share of its steps; the
# others are spent at the end of the way.
COOLING, COOLING_SHARE = 1e-4, 0.8


def annealed(rates: Rates, ratio: float = COOLING) -> Langevin:
    """Cool down from the hot temperature and shrink rate; a schedule for either is as stated."""
    n_steps = max(1, round(COOLING_SHARE * rates.n_steps))

    def falling(hot: Rate) -> Rate:
        if isinstance(hot, Schedule) or hot <= 0.0:
            return hot
        return Shape("geometric", hot, ratio * hot, n_steps)

    return Langevin.of(
        replace(
            rates,
            temperature=falling(rates.hot_temperature),
            shrink_rate=falling(rates.hot_shrink_rate),
        )
    )


PRESET = Preset(annealed, is_planned=True, scales_structures=False)
