"""From the parameters of an estimator to its sampler: "auto" resolved, stable rates."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from sglb import defaults
from sglb.defaults import Size
from sglb.leaves import LeafMethod
from sglb.losses import Loss
from sglb.samplers import OPTIONAL, SAMPLERS, Move, Preset, Rates, Sampler, StorableSampler
from sglb.schedules import Schedule, read_schedule
from sglb.transition import determinant_of_two, spectral_radius


def make_sampler(
    parameters: Mapping[str, Any],
    loss: Loss,
    leaf_method: LeafMethod,
    size: Size,
    *,
    watched: bool = True,
) -> Sampler:
    """Return the sampler object that `sampler` and its parameters describe.

    `watched` says that the chain ends where it is best.
    """
    spec = parameters["sampler"]
    preset: Preset | Sampler = SAMPLERS[spec] if isinstance(spec, str) else spec
    if getattr(preset, "exchanges", False):
        _check_exchange(spec, loss, int(parameters["n_chains"]))
    if not isinstance(preset, Preset):
        _reject_idle(parameters, ("learning_rate", *OPTIONAL), f"sampler={spec!r} has its own")
        return _with_length(preset, parameters) if isinstance(preset, StorableSampler) else preset
    for name in OPTIONAL:
        if name not in preset.uses:
            user = next(other for other, its in SAMPLERS.items() if name in its.uses)
            reason = f"sampler={spec!r} does not use it, sampler={user!r} does"
            _reject_idle(parameters, (name,), reason)
    auto = parameters["temperature"] == "auto"
    if preset.for_barriers is not None and auto and defaults.is_multimodal(size, loss):
        preset = SAMPLERS[preset.for_barriers]
    named = preset(_rates(parameters, preset, loss, leaf_method, size, watched=watched))
    return _with_length(named, parameters)


def _check_exchange(spec: Any, loss: Loss, n_chains: int) -> None:
    """Reject a loss whose steps do not follow it, and several chains of a sampler that has them."""
    if not _has_energy(loss):
        raise ValueError(
            "sampler='tempering' exchanges temperatures by the sum of the loss, and steps of"
            f" loss={loss.name!r} follow another function; use sampler='langevin' or 'annealed'"
        )
    if n_chains > 1:
        raise ValueError(
            f"n_chains={n_chains} is not allowed with sampler={spec!r}, which runs several chains"
            " and predicts by the coldest; use n_chains=1"
        )


def _has_energy(loss: Loss) -> bool:
    """Whether steps follow the gradient of the loss that is reported."""
    return loss.stationary and not loss.estimated


def _with_length(sampler: StorableSampler, parameters: Mapping[str, Any]) -> StorableSampler:
    """Return a sampler whose schedules have a length, that of the chain if none is stated."""
    reject_unknown_end(sampler.schedules, parameters["early_stopping_rounds"])
    return sampler.for_length(int(parameters["n_estimators"]))


def reject_unknown_end(schedules: Mapping[str, Schedule], rounds: int | None) -> None:
    """Reject early stopping where nobody has said when a schedule ends."""
    for name, schedule in schedules.items():
        if rounds is not None and schedule.n_steps is None:
            raise ValueError(
                f"early_stopping_rounds={rounds} counts from the end of a schedule, and that of"
                f" {name}={str(schedule)!r} is not stated; add the number of its steps:"
                f" {name}={str(schedule.for_length(300))!r}"
            )


def _rates(
    parameters: Mapping[str, Any],
    preset: Preset,
    loss: Loss,
    leaf_method: LeafMethod,
    size: Size,
    *,
    watched: bool,
) -> Rates:
    """Return the numbers a sampler is made of; those it does not use are what they are."""

    def stated(name: str, auto: Callable[[], float]) -> float | Schedule:
        value = parameters[name]
        is_auto = isinstance(value, str) and value == "auto"
        return auto() if is_auto else read_schedule(value, name)

    n_steps = int(parameters["n_estimators"])
    friction = defaults.FRICTION if "friction" in preset.uses else 1.0
    if parameters["friction"] != "auto":
        friction = float(parameters["friction"])

    def auto_learning_rate() -> float:
        rate = defaults.auto_learning_rate(size, n_steps, loss, leaf_method, watched=watched)
        return rate * friction  # a velocity adds up the trees of 1 / friction steps

    unit = defaults.structure_noise_unit(size, loss, leaf_method)
    unit = unit if preset.scales_structures else 1.0
    hot: float | Schedule = 0.0
    temperature: float | Schedule = 0.0
    if preset.is_noisy:
        hot = stated("temperature", lambda: defaults.auto_hot_temperature(size, loss))
        temperature = stated("temperature", lambda: defaults.auto_temperature(size, loss))
    return Rates(
        learning_rate=stated("learning_rate", auto_learning_rate),
        temperature=temperature,
        hot_temperature=hot,
        shrink_rate=stated(
            "shrink_rate", lambda: defaults.auto_shrink_rate(size, loss, leaf_method)
        ),
        hot_shrink_rate=stated(
            "shrink_rate", lambda: defaults.auto_hot_shrink_rate(size, loss, leaf_method)
        ),
        friction=friction,
        subsample=float(parameters["subsample"]),
        structure_noise=float(parameters["structure_noise"]) * unit,
        n_steps=n_steps,
    )


def _reject_idle(parameters: Mapping[str, Any], names: Iterable[str], reason: str) -> None:
    """Reject parameters that would have no effect."""
    for name in names:
        value, idle = parameters[name], 1.0 if name in ("subsample", "structure_noise") else "auto"
        if value != idle:
            raise ValueError(f"{name}={value!r} has no effect: {reason}; leave it at {idle!r}")


def check_stability(move: Move, loss: Loss, leaf_method: str) -> None:
    """Reject a move that makes the chain diverge.

    The state of a leaf follows S <- (C - eps c b e') S + ..., e the first unit vector, with
    curvature c of the loss in raw (1 for a Newton step), which is stable if and only if all
    eigenvalues are below 1: without momentum eps (c + gamma) < 2, with friction a 2 (2 - a). A loss
    with bounded gradient cannot run away; there the shrink factor alone must stay positive.
    """
    rate, shrink_rate = move.learning_rate, (1.0 - move.shrink) / move.learning_rate
    if move.shrink <= 0.0:
        raise ValueError(
            f"learning_rate={rate:g} times shrink_rate={shrink_rate:g} is {1.0 - move.shrink:g}; "
            "the product must be below 1: use a smaller shrink_rate or learning_rate"
        )
    curvature = 1.0 if leaf_method == "newton" else loss.smoothness
    bounded = leaf_method == "gradient" and loss.lipschitz is not None
    if curvature is None or bounded:
        return
    C, b = move.transition.C, move.transition.b
    pull = np.zeros_like(C)
    pull[:, 0] = rate * curvature * b
    if curvature > 0.0 and spectral_radius(C - pull) >= 1.0:
        bound = 2.0  # of a state of more parts that with two, of which more could be said
        if move.transition.size == 2:  # the determinant of C is what friction leaves: 1 - a
            bound = 2.0 * (1.0 + float(determinant_of_two(C)))
        raise ValueError(
            f"learning_rate={rate:g} makes the chain diverge: learning_rate * (curvature + "
            f"shrink_rate) = {rate * (curvature + shrink_rate):g} must be below {bound:g} "
            f"(curvature {curvature:g} for loss {loss.name!r}, leaf_method {leaf_method!r}); use a "
            "smaller learning_rate"
        )
