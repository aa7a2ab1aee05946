"""Draws from a chain: the choice of states, and whether they are draws from a posterior.

A stored chain contains all its states (`Trace.at`), so that several states of a chain serve as
a trace of models at the cost of one traversal: a virtual ensemble.
"""

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.errors import warn
from sglb.model import Model
from sglb.trace import Trace
from sglb.transition import spectral_radius

# Relaxation times, 1 / (eps gamma) steps, that a chain must last before its states may be draws:
# directions that the data do not determine need one relaxation time to become independent.
MIN_RELAXATIONS = 5.0


def drawn_states(model: Model, n_states: int) -> list[NDArray[np.int64]]:
    """Return at most `n_states` step numbers of each chain, evenly spaced in its second half.

    Of a chain that changes its temperature, states after steps at the stated one. Of chains that
    exchange temperatures, those of all (`chains_of_draws`) together, each while it was the coldest.
    """
    temperature, chains = model.recipe.settings.temperature, chains_of_draws(model)
    if model.exchange is None:
        return [_states_at(trace, temperature, n_states) for trace in chains]
    numbers = virtual_states(model.n_steps, n_states)
    return [numbers[_is_at(trace, temperature)[numbers - 1]] for trace in chains]


def chains_of_draws(model: Model) -> tuple[Trace, ...]:
    """Return the chains whose states may be draws."""
    return model.traces + (() if model.exchange is None else model.exchange.others)


def _is_at(trace: Trace, temperature: float) -> NDArray[np.bool_]:
    """Whether each step was at a temperature."""
    return np.isclose(trace.temperatures, temperature, rtol=1e-9, atol=0.0)


def _numbers_at(trace: Trace, temperature: float) -> NDArray[np.int64]:
    """Return the numbers of the states of the second half that follow a step at a temperature."""
    numbers = np.arange(len(trace) // 2 + 1, len(trace) + 1)
    return numbers[_is_at(trace, temperature)[numbers - 1]]


def _states_at(trace: Trace, temperature: float, n_states: int) -> NDArray[np.int64]:
    drawn = _numbers_at(trace, temperature)
    if len(drawn) in (0, len(trace) - len(trace) // 2):
        return virtual_states(len(trace), n_states)
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
    temperature = settings.temperature
    if temperature == 0.0:
        return "the chain has no noise"
    if not all(_numbers_at(trace, temperature).size for trace in model.traces):
        return (
            "no state in the second half of the chain has its last temperature,"
            f" {settings.temperature:.3g}"
        )
    by_name = isinstance(recipe.parameters.get("sampler"), str)
    if by_name and recipe.parameters.get("temperature") == "auto":
        return "its temperature was chosen for accuracy, not for sampling"
    if recipe.loss is not None and not recipe.loss.stationary:
        return f"a chain of loss {recipe.loss.name!r} has no known law"
    if settings.leaves.method == "newton":
        return "a chain with Newton leaves has no known law"
    n_steps, times = min(_relaxations(trace, model) for trace in model.traces)
    if times < MIN_RELAXATIONS:
        return (
            f"its {n_steps:,} steps are {times:.2g} relaxation times (learning_rate * shrink_rate"
            f" is {times / n_steps:.2g} per step), so that it still depends on its start"
        )
    return None


def _relaxations(trace: Trace, model: Model) -> tuple[int, float]:
    """Return a number of steps and the relaxation times that they last.

    Of a chain whose temperature changes by a schedule, those at the last one: what it does before
    is another law. Chains that exchange temperatures forget their start at all of them.
    """
    at_it = _is_at(trace, model.recipe.settings.temperature) | (model.exchange is not None)
    radius = spectral_radius(trace.C[at_it])
    return int(np.count_nonzero(at_it)), sums.total(1.0 - radius)


def warn_if_not_draws(model: Model) -> None:
    """Warn if the disagreement of states does not measure the uncertainty of a posterior."""
    reason = reason_against_draws(model)
    advice = ". Fit with uncertainty=True"
    if model.recipe.kind == "classifier":
        advice += ", or rank rows by 'total' instead"
    if reason is not None:
        warn(
            "the states of this chain are not draws from its posterior, and their disagreement"
            f" ('knowledge') means little: {reason}{advice}",
        )
