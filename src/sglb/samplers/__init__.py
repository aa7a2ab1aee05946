"""The ways a chain may move: one file a sampler, and a line here for its name."""

from sglb.samplers import annealed, cyclical, hamiltonian, langevin, plain, stochastic, tempering
from sglb.samplers.base import Move, Rates, Sampler, StorableSampler
from sglb.samplers.hamiltonian import Hamiltonian
from sglb.samplers.langevin import Langevin
from sglb.samplers.plain import Plain
from sglb.samplers.preset import OPTIONAL, Preset
from sglb.samplers.stochastic import Stochastic
from sglb.samplers.tempering import Tempering

SAMPLERS: dict[str, Preset] = {
    "langevin": langevin.PRESET,
    "annealed": annealed.PRESET,
    "hamiltonian": hamiltonian.PRESET,
    "cyclical": cyclical.PRESET,
    "tempering": tempering.PRESET,
    "stochastic": stochastic.PRESET,
    "plain": plain.PRESET,
}
# Their classes, by the names that model files have for them.
CLASSES = {name: preset.stored for name, preset in SAMPLERS.items() if preset.stored is not None}

__all__ = [
    "CLASSES",
    "OPTIONAL",
    "SAMPLERS",
    "Hamiltonian",
    "Langevin",
    "Move",
    "Plain",
    "Preset",
    "Rates",
    "Sampler",
    "Stochastic",
    "StorableSampler",
    "Tempering",
]
