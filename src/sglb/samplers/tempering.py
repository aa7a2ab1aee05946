"""Replica exchange: the ladder of temperatures that chains exchange (`sglb.tempering`).

    T_r = T (T_hot / T)^(r / (R - 1)),     gamma_r = gamma T_r / T

A shrink rate proportional to the temperature gives all chains the same prior, N(0, T Pbar / gamma),
so that exchanges need no more than the losses.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from sglb.caching import cached_property
from sglb.elementary import power
from sglb.samplers.base import Move, Rates, StorableSampler, demand
from sglb.samplers.langevin import Langevin
from sglb.samplers.preset import Preset
from sglb.schedules import Schedule, Scheduled, extremes_of, last_of

# By name the hottest chain has at least this many times the temperature of the coldest.
SPREAD = 100.0
# Each is a chain on all rows. Ladders of the literature have up to some dozens of rungs.
MOST_REPLICAS = 1000


@dataclass(frozen=True)
class Tempering(StorableSampler):
    """Langevin boosting at `temperature`, with `n_replicas` chains up to `hot_temperature` in all.

    Neighbours try to exchange their temperatures every `swap_every` steps. The learning rate may be
    a schedule; temperatures are those of the ladder.
    """

    exchanges = True
    scheduled = ("learning_rate",)
    learning_rate: Scheduled
    temperature: float
    shrink_rate: float
    hot_temperature: float
    n_replicas: int = 4
    swap_every: int = 10
    subsample: float = 1.0
    structure_noise: float = 1.0

    def __post_init__(self) -> None:
        """Validate the ladder; `Langevin` validates the rates."""
        super().__post_init__()
        for name in ("temperature", "shrink_rate", "hot_temperature"):
            if isinstance(value := getattr(self, name), str | Schedule):
                raise ValueError(
                    f"{name}={str(value)!r} is not allowed with sampler='tempering', whose chains"
                    " exchange temperatures that are fixed; use a number"
                )
        demand("temperature", self.temperature, self.temperature > 0.0, "above 0")
        is_hotter = self.hot_temperature > self.temperature
        demand("hot_temperature", self.hot_temperature, is_hotter, "above the temperature")
        rate = extremes_of(self.learning_rate)[1]
        demand("learning_rate", rate, rate > 0.0, "above 0")
        most = self.temperature / (self.hot_temperature * rate)
        wanted = (
            f"below {most:.3g}, because the hottest chain shrinks hot_temperature / temperature"
            " times as fast as the coldest"
        )
        demand("shrink_rate", self.shrink_rate, self.shrink_rate < most, wanted)
        for name in ("n_replicas", "swap_every"):
            value = getattr(self, name)
            is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            demand(name, value, is_whole, "a whole number")
        demand("n_replicas", self.n_replicas, self.n_replicas >= 2, "at least 2")
        few = self.n_replicas <= MOST_REPLICAS
        demand("n_replicas", self.n_replicas, few, f"at most {MOST_REPLICAS:,}")
        demand("swap_every", self.swap_every, self.swap_every >= 1, "at least 1")

    @classmethod
    def of(cls, rates: Rates) -> Self:
        """Return a ladder up to a temperature that carries a row over the barriers of the loss."""
        temperature, hot = rates.temperature, rates.hot_temperature
        if not isinstance(temperature, Schedule):  # of which __post_init__ says what is wrong
            hot = max(last_of(hot), SPREAD * temperature)
        return cls(
            rates.learning_rate,
            temperature,  # type: ignore[arg-type]  # schedules are rejected
            rates.shrink_rate,  # type: ignore[arg-type]
            hot,  # type: ignore[arg-type]
            subsample=rates.subsample,
            structure_noise=rates.structure_noise,
        )

    def ladder(self) -> list[Langevin]:
        """Return the sampler of each rung, the coldest first."""
        return [self._sampler(rung) for rung in range(self.n_replicas)]

    def _sampler(self, rung: int) -> Langevin:
        ratio = self.hot_temperature / self.temperature
        factor = power(ratio, rung / (self.n_replicas - 1))
        return Langevin(
            self.learning_rate,
            self.temperature * factor,
            self.shrink_rate * factor,
            self.subsample,
            self.structure_noise,
        )

    @cached_property
    def _move(self) -> Move:
        """Move as the chain on the coldest rung does."""
        return self._sampler(0).move(0)


PRESET = Preset(Tempering.of, stored=Tempering, is_planned=True)
