"""The ways a chain may move: one file a sampler, and a line here for its name."""

from dataclasses import fields

from sglb.samplers.annealed import Annealed
from sglb.samplers.base import Move, Named, Rates, Sampler
from sglb.samplers.cyclical import Cyclical
from sglb.samplers.hamiltonian import Hamiltonian
from sglb.samplers.langevin import Langevin
from sglb.samplers.plain import Plain
from sglb.samplers.stochastic import Stochastic
from sglb.samplers.tempering import Tempering

SAMPLERS: dict[str, type[Named]] = {
    "langevin": Langevin,
    "annealed": Annealed,
    "hamiltonian": Hamiltonian,
    "cyclical": Cyclical,
    "tempering": Tempering,
    "stochastic": Stochastic,
    "plain": Plain,
}


def _users(field: str) -> tuple[str, ...]:
    return tuple(
        name
        for name, sampler in SAMPLERS.items()
        if field in {each.name for each in fields(sampler)}  # type: ignore[arg-type]
    )


# The names of the samplers that add noise to gradients, at a temperature.
NOISY = frozenset(_users("structure_noise"))
# Parameters of estimators that some samplers have no use for, and the names of those that use them.
IDLE = {
    "temperature": _users("structure_noise"),
    "shrink_rate": _users("structure_noise"),
    "structure_noise": _users("structure_noise"),
    "friction": _users("friction"),
    "subsample": _users("subsample"),
}

__all__ = [
    "IDLE",
    "NOISY",
    "SAMPLERS",
    "Annealed",
    "Cyclical",
    "Hamiltonian",
    "Langevin",
    "Move",
    "Plain",
    "Rates",
    "Sampler",
    "Stochastic",
    "Tempering",
]
