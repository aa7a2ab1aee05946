"""A sampler that users choose by its name: how it is made, and what it uses."""

from collections.abc import Callable
from dataclasses import dataclass

from sglb.samplers.base import Rates, StorableSampler

# Parameters of estimators for which some samplers have no use; all of them have a learning rate.
OPTIONAL = ("temperature", "shrink_rate", "structure_noise", "friction", "subsample")
# Those of a sampler that adds noise to gradients, at a temperature.
OF_NOISE = frozenset({"temperature", "shrink_rate", "structure_noise", "subsample"})


@dataclass(frozen=True)
class Preset:
    """What the library knows of a sampler by name.

    `make` makes it of rates, and `uses` are the parameters among OPTIONAL that change it. `stored`
    is its class if model files know it by the same name. The moves of an `is_planned` one depend on
    how many steps there will be. `for_barriers` names the sampler that replaces it where a loss has
    valleys and the temperature is "auto". With `takes_chance` "auto" may add noise to the scores
    of splits. `scales_structures` says whether the noise of structures grows with the curvature of
    the loss at the start.
    """

    make: Callable[[Rates], StorableSampler]
    uses: frozenset[str] = OF_NOISE
    stored: type[StorableSampler] | None = None
    is_planned: bool = False
    for_barriers: str | None = None
    takes_chance: bool = False
    scales_structures: bool = True

    def __call__(self, rates: Rates) -> StorableSampler:
        """Return the sampler of rates."""
        return self.make(rates)

    @property
    def is_noisy(self) -> bool:
        """Whether it adds noise to gradients, at a temperature."""
        return "temperature" in self.uses

    @property
    def exchanges(self) -> bool:
        """Whether it is a ladder of temperatures that several chains exchange."""
        return self.stored is not None and self.stored.exchanges
