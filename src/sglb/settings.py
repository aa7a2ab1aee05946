"""Constructor arguments + number of rows + loss -> the numbers a chain runs with.

`RULES` says what each parameter may be; what "auto" stands for is in `defaults`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sglb import _core, defaults
from sglb.defaults import Size
from sglb.leaves import LeafMethod, LeafRule
from sglb.losses import Loss
from sglb.rates import check_stability, make_sampler, reject_unknown_end
from sglb.samplers import SAMPLERS, Move, Sampler, StorableSampler
from sglb.schedules import Schedule, is_schedule, last_of, parse_schedule, read_schedule


@dataclass(frozen=True)
class Rule:
    """What a parameter may be, in words and as a test."""

    allowed: str
    holds: Callable[[Any], bool]

    def __or__(self, other: "Rule") -> "Rule":
        return Rule(
            f"{self.allowed} or {other.allowed}",
            lambda value: self.holds(value) or other.holds(value),
        )


def whole(low: int, high: float = math.inf) -> Rule:
    """Allow whole numbers from low to high."""
    words = f"a whole number >= {low}" if high == math.inf else f"a whole number {low} to {high}"
    return Rule(
        words,
        lambda v: isinstance(v, Integral) and not isinstance(v, bool) and low <= int(v) <= high,
    )


def real(words: str, holds: Callable[[float], bool]) -> Rule:
    """Allow finite numbers for which a condition holds."""

    def test(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        return math.isfinite(number) and holds(number)

    return Rule(words, test)


def one_of(*choices: Any) -> Rule:
    """Allow the listed values only."""
    words = " or ".join(repr(choice) for choice in choices)
    return Rule(words, lambda v: any(type(v) is type(c) and v == c for c in choices))


def _names_columns(value: Any) -> bool:
    """Whether a value is a list of names, of places or of booleans."""
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    kinds = {type(item.item() if isinstance(item, np.generic) else item) for item in value}
    return not kinds or kinds in ({str}, {int}, {bool})


AUTO = one_of("auto")


POSITIVE = real("a number > 0", lambda v: v > 0)


NOT_NEGATIVE = real("a number >= 0", lambda v: v >= 0)


FRACTION = real("a number in (0, 1]", lambda v: 0 < v <= 1)


SHARE = Rule(
    "a float in (0, 1] (1.0 is all rows)",
    lambda v: not isinstance(v, Integral) and FRACTION.holds(v),
)


LEVEL = real("a number between 0 and 1", lambda v: 0 < v < 1)


def _are_levels(value: Any) -> bool:
    """Whether a value is a list of levels."""
    if not isinstance(value, list | tuple | np.ndarray) or np.ndim(value) != 1 or len(value) < 2:
        return False
    return all(LEVEL.holds(level) for level in value) and bool(np.all(np.diff(value) > 0))


def _is_schedule(value: Any) -> bool:
    """Whether a value is a schedule, or a string that describes one."""
    try:
        return is_schedule(value) and isinstance(read_schedule(value, ""), Schedule)
    except ValueError:
        return False


# Whether its values are allowed, is for the sampler to say.
SCHEDULE = Rule("a schedule such as 'cosine(0.1, 0.01)' (sglb.schedules)", _is_schedule)


RULES: Mapping[str, Rule] = {
    "loss": Rule(
        "the name of a loss or an object with methods loss(y, raw) and gradient(y, raw)",
        lambda v: v is not None,
    ),
    "quantile": one_of(None)
    | LEVEL
    | Rule("a list of two or more such numbers in increasing order", _are_levels),
    "tweedie_power": one_of(None) | real("a number between 1 and 2", lambda v: 1 < v < 2),
    "n_estimators": AUTO | whole(1),
    "learning_rate": AUTO | POSITIVE | SCHEDULE,
    "max_depth": AUTO | whole(1, 16),
    "max_bins": AUTO | whole(2, 255),
    "sampler": one_of(*SAMPLERS)
    | Rule("a Sampler object", lambda v: hasattr(v, "move") and not isinstance(v, type)),
    "temperature": AUTO | NOT_NEGATIVE | SCHEDULE,
    "shrink_rate": AUTO | NOT_NEGATIVE | SCHEDULE,
    "friction": AUTO | FRACTION,
    "structure_noise": NOT_NEGATIVE,
    "subsample": FRACTION,
    "structure_sample": AUTO | SHARE | whole(2),
    "random_strength": AUTO | NOT_NEGATIVE,
    "leaf_method": one_of("auto", "gradient", "newton"),
    "leaf_steps": AUTO | whole(1, 100),
    "l2_regularization": AUTO | NOT_NEGATIVE,
    "init": one_of("mean", "zero"),
    "categorical_features": one_of("from_dtype", None)
    | Rule("a list of column names or positions, or a boolean mask", _names_columns),
    "class_weight": one_of(None, "balanced")
    | Rule("a dict from label to weight", lambda v: isinstance(v, Mapping)),
    "n_chains": whole(1),
    "uncertainty": one_of(False, True),
    "early_stopping_rounds": one_of(None) | whole(1),
    "warm_start": one_of(False, True),
    "n_jobs": one_of(None, -1) | whole(1, 1024),
    "verbose": one_of(False, True) | whole(0),
    "n_states": whole(2),
    "n_draws": Rule("an even integer >= 2", lambda v: whole(2).holds(v) and v % 2 == 0),
    "kind": one_of("laplace", "full", "paper"),
    "n_steps": AUTO | whole(0),
    "prior_variance": AUTO | POSITIVE,
    "posterior_temperature": AUTO | POSITIVE,
}


# What may be an object of the user's own, which a model file does not hold: it is None there.
NOT_IN_FILES = ("loss", "sampler", "random_state", *defaults.SCHEDULED)


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Reject the first parameter whose value is not allowed."""
    for name, rule in RULES.items():
        if name not in parameters or rule.holds(parameters[name]):
            continue
        value, advice = parameters[name], ""
        if value is None and name in NOT_IN_FILES:
            advice = (
                f". If this model was read from a file: files do not store a user-defined {name};"
                f" call set_params({name}=...) before fit"
            )
        elif name in defaults.SCHEDULED:
            advice = _wrong_schedule(value)
        stated = name.removeprefix("posterior_")  # a posterior's temperature has a rule of its own
        raise ValueError(f"{stated}={value!r} is not allowed; use {rule.allowed}{advice}")


def _wrong_schedule(value: Any) -> str:
    """Return what is wrong with a schedule, nothing if a value does not look like one."""
    if callable(value):
        return "; a function needs a length: sglb.schedules.StepFunction(f, n_steps)"
    try:
        if isinstance(value, str) and "(" in value:
            parse_schedule(value)
    except ValueError as error:
        return f"; {error}"
    return ""


@dataclass(frozen=True)
class Settings:
    """The numbers a chain runs with; the sampler holds rates and noise."""

    sampler: Sampler
    learning_rate: float
    temperature: float
    shrink_rate: float
    leaves: LeafRule
    max_depth: int
    max_bins: int
    structure_rows: int
    structure_outputs: int
    random_strength: float
    seed: int
    n_steps: int
    # Whether fewer steps may be better, and cross-validation is to tell.
    search_length: bool = False

    def resolved(self, parameters: Mapping[str, Any], loss: Loss) -> dict[str, Any]:
        """Return the parameters with the numbers and names that "auto" stands for."""
        sampler = type(self.sampler).__name__.lower()
        # Of numbers that change from step to step, how they do.
        moving = self.sampler.schedules if isinstance(self.sampler, StorableSampler) else {}
        schedules = {name: str(schedule) for name, schedule in moving.items()}
        return dict(parameters) | {
            "loss": loss.name,
            "n_estimators": self.n_steps,
            "sampler": sampler,
            "learning_rate": self.learning_rate,
            "temperature": self.temperature,
            "shrink_rate": self.shrink_rate,
            "max_depth": self.max_depth,
            "max_bins": self.max_bins,
            "structure_sample": self.structure_rows,
            "random_strength": self.random_strength,
            "leaf_method": self.leaves.method,
            "leaf_steps": self.leaves.steps,
            "l2_regularization": self.leaves.l2,
            **schedules,
        }


def resolve(
    parameters: Mapping[str, Any], loss: Loss, size: Size, *, alone: bool = True
) -> Settings:
    """Turn checked parameters into settings; reject contradictions and a chain that diverges.

    `alone` means that there is neither an evaluation set nor a callback of the user.
    """
    reject_unknown_end(loss.schedules, parameters["early_stopping_rounds"])
    if not math.isfinite(size.square):
        raise ValueError(
            f"the mean squared gradient of loss {loss.name!r} at its start is {size.square}: the"
            " loss returns NaN or infinity, or y is too large; rescale y"
        )
    free_length = parameters["n_estimators"] == "auto"
    leaf_method = _leaf_method(parameters["leaf_method"], loss)
    search_length = free_length and alone and defaults.searches_length(parameters, loss, size)
    if free_length:
        stops = search_length or parameters["early_stopping_rounds"] is not None
        n_steps = defaults.MOST_STEPS if stops else defaults.auto_length(loss)
        parameters = {**parameters, "n_estimators": n_steps}
    watched = search_length or parameters["early_stopping_rounds"] is not None
    sampler = make_sampler(parameters, loss, leaf_method, size, watched=watched)
    move = sampler.move(0)
    leaves = _leaf_rule(parameters, loss, leaf_method, size, move)
    leaves.check(loss, move.subsample)
    n_steps = int(parameters["n_estimators"])
    boldest = sampler.boldest_move(n_steps) if isinstance(sampler, StorableSampler) else move
    check_stability(boldest, loss, leaf_method)
    return Settings(
        sampler=sampler,
        learning_rate=float(move.learning_rate),
        # What a sampler does not state follows from its first move: sigma^2 = 2 T / eps.
        temperature=last_of(getattr(sampler, "temperature", move.temperature)),
        shrink_rate=last_of(
            getattr(sampler, "shrink_rate", (1.0 - move.shrink) / move.learning_rate)
        ),
        leaves=leaves,
        max_depth=_stated(parameters["max_depth"], defaults.auto_max_depth(size, loss)),
        max_bins=_stated(parameters["max_bins"], defaults.auto_max_bins(loss)),
        structure_rows=defaults.structure_rows(
            size.n_rows,
            parameters["structure_sample"],
            n_steps=parameters["n_estimators"],
            several=loss.n_outputs > 1,
            ranking=defaults.is_ranking(loss) and _is_noisy(parameters),
        ),
        structure_outputs=defaults.structure_outputs(
            loss.n_outputs, parameters["structure_sample"]
        ),
        random_strength=_random_strength(parameters, loss, search_length=search_length),
        seed=draw_seed(parameters["random_state"]),
        n_steps=n_steps,
        search_length=search_length,
    )


def _leaf_method(stated: str, loss: Loss) -> LeafMethod:
    if stated == "auto":
        return defaults.auto_leaf_method(loss)
    if stated == "newton" and not loss.has_hessian:
        raise ValueError(
            f"leaf_method='newton' needs a loss with a Hessian that is never negative; loss "
            f"{loss.name!r} does not have one; use leaf_method='gradient'"
        )
    return "newton" if stated == "newton" else "gradient"


def _leaf_rule(
    parameters: Mapping[str, Any], loss: Loss, leaf_method: LeafMethod, size: Size, move: Move
) -> LeafRule:
    l2 = parameters["l2_regularization"]
    # Whether a sampler of the user's draws rows at some later step, nobody knows.
    all_rows = isinstance(parameters["sampler"], str) and move.subsample == 1.0
    auto_steps = defaults.auto_leaf_steps(size, loss, leaf_method) if all_rows else 1
    return LeafRule(
        leaf_method,
        defaults.auto_l2(size, loss, leaf_method) if l2 == "auto" else float(l2),
        _stated(parameters["leaf_steps"], auto_steps),
    )


def _stated(value: Any, auto: int) -> int:
    return auto if value == "auto" else int(value)


def _random_strength(parameters: Mapping[str, Any], loss: Loss, *, search_length: bool) -> float:
    stated = parameters["random_strength"]
    if stated != "auto":
        return float(stated)
    if not _is_noisy(parameters):
        return 0.0
    return defaults.auto_random_strength(loss, search_length=search_length)


def _is_noisy(parameters: Mapping[str, Any]) -> bool:
    """Whether chance may enter: without noise a weight is to do what repeating its row does."""
    sampler = parameters["sampler"]
    takes_chance = isinstance(sampler, str) and SAMPLERS[sampler].takes_chance
    return takes_chance and parameters["temperature"] == "auto"


def n_threads(n_jobs: int | None) -> int:
    """Threads that `n_jobs` means: all available cores for None and -1."""
    return _core.available_threads() if n_jobs is None or n_jobs == -1 else int(n_jobs)


def draw_seed(random_state: Any) -> int:
    """Return a 64-bit seed drawn from an int, a RandomState or, with None, from chance."""
    words = check_random_state(random_state).randint(0, 2**32, size=2, dtype=np.uint64)
    return int(words[0]) << 32 | int(words[1])
