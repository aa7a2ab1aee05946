"""Draws from a chain: which of its states to read.

A stored chain holds every state it went through (`Ensemble.at`), so several states of one chain
serve as an ensemble of models at the price of one traversal: a virtual ensemble.
"""

import warnings

import numpy as np
from numpy.typing import NDArray

from sglb.model import Model

# Relaxation times, 1 / (eps gamma) steps, that a chain must last before its states may be draws:
# what the data do not determine takes one of them to become independent.
LEAST_RELAXATIONS = 5.0


def virtual_states(n_steps: int, n_states: int) -> NDArray[np.int64]:
    """Numbers of at most `n_states` distinct states, evenly from the second half of the chain.

    The first half is left to burn-in; the final state is always among them.
    """
    first = n_steps // 2 + 1 if n_steps > 1 else n_steps
    return np.unique(np.linspace(n_steps, first, n_states).round().astype(np.int64))


def why_not_draws(model: Model) -> str | None:
    """Return why the states of a chain cannot be draws from its posterior, None if they may be."""
    recipe, settings = model.recipe, model.recipe.settings
    if settings.temperature == 0.0:
        return "the chain has no noise"
    if recipe.parameters.get("sampler") == "annealed":
        return "it cools down"
    if recipe.parameters.get("temperature") == "auto" and recipe.parameters.get("sampler") in (
        "langevin",
        "annealed",
    ):
        return "its temperature was chosen for accuracy, not for sampling"
    if settings.leaves.method == "newton":
        return "a chain with Newton leaves has no known law"
    rate = settings.learning_rate * settings.shrink_rate
    if len(model.ensemble) * rate < LEAST_RELAXATIONS:
        return (
            f"its {len(model.ensemble):,} steps are {len(model.ensemble) * rate:.2g} relaxation"
            f" times (learning_rate * shrink_rate is {rate:.2g} a step), so that it still knows its"
            " start"
        )
    return None


def warn_if_not_draws(model: Model, stacklevel: int) -> None:
    """Warn where the disagreement of states is not what a posterior does not know."""
    reason = why_not_draws(model)
    advice = ". Rank rows by 'total' instead" if model.recipe.kind == "classifier" else ""
    if reason is not None:
        warnings.warn(
            "the states of this chain are not draws from its posterior, and their disagreement"
            f" ('knowledge') means little: {reason}{advice}",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
