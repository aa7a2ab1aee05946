"""The ways a chain may move: one file a sampler, and a line here for its name."""

from dataclasses import fields

from sglb.samplers.annealed import Annealed
from sglb.samplers.base import Move, Sampler
from sglb.samplers.hamiltonian import Hamiltonian
from sglb.samplers.langevin import Langevin
from sglb.samplers.plain import Plain
from sglb.samplers.stochastic import Stochastic

SAMPLERS = {
    "plain": Plain,
    "stochastic": Stochastic,
    "langevin": Langevin,
    "annealed": Annealed,
    "hamiltonian": Hamiltonian,
}
# The names of those that add noise to gradients, at a temperature.
NOISY = frozenset(
    name
    for name, sampler in SAMPLERS.items()
    if "structure_noise" in {field.name for field in fields(sampler)}
)

__all__ = [
    "NOISY",
    "SAMPLERS",
    "Annealed",
    "Hamiltonian",
    "Langevin",
    "Move",
    "Plain",
    "Sampler",
    "Stochastic",
]
