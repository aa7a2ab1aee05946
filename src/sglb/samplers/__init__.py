"""The ways a chain may move: one file a sampler, and a line here for its name."""

from collections.abc import Callable

from sglb.samplers.annealed import annealed
from sglb.samplers.base import Move, Named, Rates, Sampler
from sglb.samplers.cyclical import cyclical
from sglb.samplers.hamiltonian import Hamiltonian
from sglb.samplers.langevin import Langevin
from sglb.samplers.plain import Plain
from sglb.samplers.stochastic import Stochastic
from sglb.samplers.tempering import Tempering

SAMPLERS: dict[str, Callable[[Rates], Named]] = {
    "langevin": Langevin.of,
    "annealed": annealed,
    "hamiltonian": Hamiltonian.of,
    "cyclical": cyclical,
    "tempering": Tempering.of,
    "stochastic": Stochastic.of,
    "plain": Plain.of,
}
# The classes behind them, by the names that model files have for them.
CLASSES: dict[str, type[Named]] = {
    "langevin": Langevin,
    "hamiltonian": Hamiltonian,
    "tempering": Tempering,
    "stochastic": Stochastic,
    "plain": Plain,
}
# The samplers that add noise to gradients, at a temperature, and those whose moves depend on how
# many steps there will be.
NOISY = ("langevin", "annealed", "hamiltonian", "cyclical", "tempering")
PLANNED = frozenset({"annealed", "cyclical", "tempering"})
# Parameters of estimators that some samplers have no use for, and the names of those that use them.
IDLE = {
    "temperature": NOISY,
    "shrink_rate": NOISY,
    "structure_noise": NOISY,
    "friction": ("hamiltonian",),
    "subsample": (*NOISY, "stochastic"),
}

__all__ = [
    "CLASSES",
    "IDLE",
    "NOISY",
    "PLANNED",
    "SAMPLERS",
    "Hamiltonian",
    "Langevin",
    "Move",
    "Named",
    "Plain",
    "Rates",
    "Sampler",
    "Stochastic",
    "Tempering",
]
