"""The ways a chain may move: one file a sampler."""

from sglb.samplers.annealed import Annealed
from sglb.samplers.base import Move, Sampler
from sglb.samplers.hamiltonian import Hamiltonian
from sglb.samplers.langevin import Langevin
from sglb.samplers.plain import Plain
from sglb.samplers.stochastic import Stochastic

SAMPLERS = {"plain": Plain, "stochastic": Stochastic, "langevin": Langevin, "annealed": Annealed}

__all__ = [
    "SAMPLERS",
    "Annealed",
    "Hamiltonian",
    "Langevin",
    "Move",
    "Plain",
    "Sampler",
    "Stochastic",
]
