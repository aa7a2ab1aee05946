"""Draws from a chain: the choice of states, and whether they are draws from a posterior.

A stored chain contains all its states (`Trace.at`), so that several states of a chain serve as
a trace of models at the cost of one traversal: a virtual ensemble.
"""

import warnings

import numpy as np
from numpy.typing import NDArray

from sglb.model import Model
from sglb.samplers import NOISY
from sglb.trace import Trace

# Relaxation times, 1 / (eps gamma) steps, that a chain must last before its states may be draws:
# directions that the data do not determine need one relaxation time to become independent.
MIN_RELAXATIONS = 5.0


def drawn_states(trace: Trace, temperature: float, n_states: int) -> NDArray[np.int64]:
    """Return at most `n_states` step numbers, evenly spaced in the second half of the chain.

    Of a chain that changes its temperature, states after steps at the stated one.
    """
    numbers = np.arange(len(trace) // 2 + 1, len(trace) + 1)
    at_temperature = np.isclose(trace.temperatures[numbers - 1], temperature, rtol=1e-9, atol=0.0)
    if at_temperature.all() or not at_temperature.any():
        return virtual_states(len(trace), n_states)
    drawn = numbers[at_temperature]
    return np.unique(drawn[np.linspace(len(drawn) - 1, 0, n_states).round().astype(np.intp)])


def virtual_states(n_steps: int, n_states: int) -> NDArray[np.int64]:
    """Return at most `n_states` step numbers, evenly spaced in the second half of the chain.

    The first half is burn-in; the final state is always among them.
    """
    first = n_steps // 2 + 1 if n_steps > 1 else n_steps
    return np.unique(np.linspace(n_steps, first, n_states).round().astype(np.int64))


def reason_against_draws(model: Model) -> str | None:
    """Return why the states of a chain cannot be draws from its posterior, None if they can."""
    recipe, settings = model.recipe, model.recipe.settings
    if settings.temperature == 0.0:
        return "the chain has no noise"
    if recipe.parameters.get("sampler") == "annealed":
        return "it cools down"
    if recipe.parameters.get("temperature") == "auto" and recipe.parameters.get("sampler") in NOISY:
        return "its temperature was chosen for accuracy, not for sampling"
    if settings.leaves.method == "newton":
        return "a chain with Newton leaves has no known law"
    rate = settings.learning_rate * settings.shrink_rate
    n_steps = min(len(trace) for trace in model.traces)
    if n_steps * rate < MIN_RELAXATIONS:
        return (
            f"its {n_steps:,} steps are {n_steps * rate:.2g} relaxation times (learning_rate *"
            f" shrink_rate is {rate:.2g} per step), so that it still depends on its start"
        )
    return None


def warn_if_not_draws(model: Model, stacklevel: int) -> None:
    """Warn if the disagreement of states does not measure the uncertainty of a posterior."""
    reason = reason_against_draws(model)
    advice = ". Fit with uncertainty=True"
    if model.recipe.kind == "classifier":
        advice += ", or rank rows by 'total' instead"
    if reason is not None:
        warnings.warn(
            "the states of this chain are not draws from its posterior, and their disagreement"
            f" ('knowledge') means little: {reason}{advice}",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
