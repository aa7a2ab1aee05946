"""Draws from a posterior: states of chains, or short chains on the frozen trees of a model."""

from sglb.posterior.drawing import AUTO_STEPS, DrawPlan, PosteriorDriver
from sglb.posterior.energies import LossEnergy, QuadraticEnergy
from sglb.posterior.frozen import BATCH, FrozenChain
from sglb.posterior.leaf_draws import LeafDraws
from sglb.posterior.long_chains import AnyPosterior, LongChains, run_long_chains, with_sampler
from sglb.posterior.of_model import (
    ChainPosterior,
    PosteriorKind,
    PosteriorPlan,
    centre_of,
    check_kind,
    draw_for_chains,
    draw_for_trees,
    noise_temperature,
)
from sglb.posterior.partitions import Partitions, StoredPartitions, TreePartitions
from sglb.posterior.prior import LeafPrior
from sglb.posterior.states import (
    chains_of_draws,
    drawn_states,
    reason_against_draws,
    virtual_states,
    warn_if_not_draws,
)

__all__ = [
    "AUTO_STEPS",
    "BATCH",
    "AnyPosterior",
    "ChainPosterior",
    "DrawPlan",
    "FrozenChain",
    "LeafDraws",
    "LeafPrior",
    "LongChains",
    "LossEnergy",
    "Partitions",
    "PosteriorDriver",
    "PosteriorKind",
    "PosteriorPlan",
    "QuadraticEnergy",
    "StoredPartitions",
    "TreePartitions",
    "centre_of",
    "chains_of_draws",
    "check_kind",
    "draw_for_chains",
    "draw_for_trees",
    "drawn_states",
    "noise_temperature",
    "reason_against_draws",
    "run_long_chains",
    "virtual_states",
    "warn_if_not_draws",
    "with_sampler",
]
