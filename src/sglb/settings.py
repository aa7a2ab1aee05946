"""Constructor arguments + number of rows + loss -> the numbers a chain runs with.

Two tables: what each parameter may be (`RULES`), and what "auto" stands for (the functions below,
each with its evidence). Weights are multiplicities, so the N of every rule is the sum of weights.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sglb import _core
from sglb.leaves import PART_ROWS, LeafMethod, LeafRule
from sglb.losses import Loss
from sglb.samplers import SAMPLERS, Annealed, Move, Sampler


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
    kinds = {type(one.item() if isinstance(one, np.generic) else one) for one in value}
    return not kinds or kinds in ({str}, {int}, {bool})


# Between the .1 of the squared and the 1 of the absolute loss; huber, cauchy and welsch have less
# than .3 with their default widths.
FLAT = 0.7

AUTO = one_of("auto")
POSITIVE = real("a number > 0", lambda v: v > 0)
NOT_NEGATIVE = real("a number >= 0", lambda v: v >= 0)
FRACTION = real("a number in (0, 1]", lambda v: 0 < v <= 1)
SHARE = Rule("a float in (0, 1]", lambda v: not isinstance(v, Integral) and FRACTION.holds(v))

RULES: Mapping[str, Rule] = {
    "loss": Rule(
        "the name of a loss or an object with methods loss(y, raw) and gradient(y, raw)",
        lambda v: v is not None,
    ),
    "quantile": one_of(None) | real("a number between 0 and 1", lambda v: 0 < v < 1),
    "n_estimators": AUTO | whole(1),
    "learning_rate": AUTO | POSITIVE,
    "max_depth": AUTO | whole(1, 16),
    "max_bins": AUTO | whole(2, 255),
    "sampler": one_of(*SAMPLERS)
    | Rule("a Sampler object", lambda v: hasattr(v, "move") and not isinstance(v, type)),
    "temperature": AUTO | NOT_NEGATIVE,
    "shrink_rate": AUTO | NOT_NEGATIVE,
    "subsample": FRACTION,
    "structure_sample": AUTO | SHARE | whole(1),
    "random_strength": NOT_NEGATIVE,
    "leaf_method": one_of("auto", "gradient", "newton"),
    "leaf_steps": AUTO | whole(1, 100),
    "l2_regularization": AUTO | NOT_NEGATIVE,
    "init": one_of("auto", "zero", "mean"),
    "categorical_features": one_of("from_dtype", None)
    | Rule("a list of column names or positions, or a boolean mask", _names_columns),
    "class_weight": one_of(None, "balanced")
    | Rule("a dict from label to weight", lambda v: isinstance(v, Mapping)),
    "early_stopping_rounds": one_of(None) | whole(1),
    "n_jobs": one_of(None, -1) | whole(1, 1024),
    "verbose": one_of(False, True) | whole(0),
    "n_states": whole(2),
}


# What may be an object of the user's own, which a model file does not hold: it is None there.
NOT_IN_FILES = ("loss", "sampler")


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Reject the first parameter whose value is not allowed."""
    for name, rule in RULES.items():
        if name not in parameters or rule.holds(parameters[name]):
            continue
        value, advice = parameters[name], ""
        if value is None and name in NOT_IN_FILES:
            advice = (
                f". If this model was read from a file: a file does not hold a {name} of your own;"
                f" call set_params({name}=...) before fit"
            )
        raise ValueError(f"{name}={value!r} is not allowed; use {rule.allowed}{advice}")


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
    seed: int
    n_threads: int
    n_steps: int
    search_length: bool  # whether fewer steps may be better, and cross-validation is to tell

    def resolved(self, parameters: Mapping[str, Any], loss: Loss) -> dict[str, Any]:
        """Return the parameters with the numbers and names that "auto" stands for."""
        return dict(parameters) | {
            "loss": loss.name,
            "learning_rate": self.learning_rate,
            "temperature": self.temperature,
            "shrink_rate": self.shrink_rate,
            "max_depth": self.max_depth,
            "max_bins": self.max_bins,
            "structure_sample": self.structure_rows,
            "leaf_method": self.leaves.method,
            "leaf_steps": self.leaves.steps,
            "l2_regularization": self.leaves.l2,
        }


@dataclass(frozen=True)
class Size:
    """What the rules know of the data.

    `unit` is the weight of one ordinary row (`training_set.weight_unit`): 1 for multiplicities, the
    mean of weights that were normalised to a smaller sum. `square` and
    `curvature` are the mean squared gradient and the mean absolute second derivative at the best
    constant: for the squared loss the variance of y and 1. In regression `spread` is that of y, and
    `flatness` how much of the root mean square gradient is left when all residuals are a tenth: .1
    for the squared loss, 1 for the absolute one. `depth` is how far below the mean loss at the
    start the rows' own optima lie, for losses that are not convex; 0 where it is not known.
    """

    n_rows: int
    total_weight: float
    unit: float = 1.0
    square: float = 1.0
    curvature: float = 1.0
    n_columns: int = 1
    spread: float = 1.0
    flatness: float = 0.0
    depth: float = 0.0

    @property
    def is_flat(self) -> bool:
        """Whether gradients stay what they are as residuals shrink."""
        return self.flatness > FLAT

    @property
    def count(self) -> float:
        """Rows, counted by their weights."""
        return self.total_weight / self.unit


def resolve(parameters: Mapping[str, Any], loss: Loss, size: Size) -> Settings:
    """Turn checked parameters into settings; reject contradictions and a chain that diverges."""
    free_length = parameters["n_estimators"] == "auto"
    if free_length:
        parameters = {**parameters, "n_estimators": MOST_STEPS}
    leaf_method = parameters["leaf_method"]
    if leaf_method == "auto":
        leaf_method = auto_leaf_method(loss)
    elif leaf_method == "newton" and not loss.has_hessian:
        raise ValueError(
            f"leaf_method='newton' needs a loss with a Hessian that is never negative; loss "
            f"{loss.name!r} does not have one; use leaf_method='gradient'"
        )
    sampler = make_sampler(parameters, loss, leaf_method, size)
    move = sampler.move(0)
    l2 = parameters["l2_regularization"]
    # Whether a sampler of the user's draws rows at some later step, nobody knows.
    whole_steps = isinstance(parameters["sampler"], str) and move.subsample == 1.0
    leaves = LeafRule(
        leaf_method,
        auto_l2(size, loss, leaf_method) if l2 == "auto" else float(l2),
        _given(
            parameters["leaf_steps"],
            auto_leaf_steps(size, loss, leaf_method) if whole_steps else 1,
        ),
    )
    leaves.check(loss, move.subsample)
    check_stability(move, loss, leaf_method)
    return Settings(
        sampler=sampler,
        learning_rate=float(move.learning_rate),
        # What a sampler does not state follows from its first move: sigma^2 = 2 T / eps.
        temperature=float(
            getattr(sampler, "temperature", 0.5 * move.noise**2 * move.learning_rate)
        ),
        shrink_rate=float(
            getattr(sampler, "shrink_rate", (1.0 - move.shrink) / move.learning_rate)
        ),
        leaves=leaves,
        max_depth=_given(parameters["max_depth"], auto_max_depth(size, loss)),
        max_bins=_given(parameters["max_bins"], auto_max_bins(size, loss)),
        structure_rows=structure_rows(
            size.n_rows,
            parameters["structure_sample"],
            n_steps=parameters["n_estimators"],
            several=loss.n_outputs > 1,
        ),
        structure_outputs=structure_outputs(loss.n_outputs, parameters["structure_sample"]),
        seed=draw_seed(parameters["random_state"]),
        n_threads=n_threads(parameters["n_jobs"]),
        n_steps=int(parameters["n_estimators"]),
        search_length=free_length and searches_length(parameters, loss, size, sampler),
    )


# Steps of a chain whose length is free.
MOST_STEPS = 1000
# Up to this many rows 1,000 steps may be too many, and trying it out takes a few seconds.
FEW_ROWS = 10_000
# Of fewer rows a fold is no test.
FEW_TO_FOLD = 50


def searches_length(
    parameters: Mapping[str, Any], loss: Loss, size: Size, sampler: Sampler
) -> bool:
    """Whether the length of a chain is to be found by cross-validation.

    Not where an evaluation set tells it, where rows cannot be left out, where there are so many
    that 1,000 steps do not overfit, and for chains that are run for their law or on a schedule.
    """
    told = parameters["early_stopping_rounds"] is not None
    own_law = not isinstance(parameters["sampler"], str) or parameters["temperature"] != "auto"
    possible = loss.independent and FEW_TO_FOLD <= size.n_rows <= FEW_ROWS
    return possible and not told and not own_law and not isinstance(sampler, Annealed)


def _given(value: Any, auto: int) -> int:
    return auto if value == "auto" else int(value)


def make_sampler(
    parameters: Mapping[str, Any], loss: Loss, leaf_method: LeafMethod, size: Size
) -> Sampler:
    """Return the sampler object that `sampler` and its parameters describe."""
    spec = parameters["sampler"]
    own = {name: parameters[name] for name in ("learning_rate", "temperature", "shrink_rate")}
    if not isinstance(spec, str):
        _reject_idle(own | {"subsample": parameters["subsample"]}, f"sampler={spec!r} has its own")
        given: Sampler = spec
        return given
    learning_rate = own.pop("learning_rate")
    n_steps = parameters["n_estimators"]
    if learning_rate == "auto":
        learning_rate = auto_learning_rate(size, n_steps, loss, leaf_method)
    arguments = {"learning_rate": float(learning_rate)}
    if spec in ("langevin", "annealed"):
        shrink_rate = own["shrink_rate"]
        if shrink_rate == "auto":
            shrink_rate = auto_shrink_rate(size, loss, leaf_method)
        anneal = spec == "annealed" or (own["temperature"] == "auto" and is_multimodal(size, loss))
        if own["temperature"] != "auto":
            temperature = float(own["temperature"])
        elif anneal:
            temperature = auto_hot_temperature(size, loss)
        else:
            temperature = auto_temperature(size, loss)
        if anneal:
            return Annealed(
                float(learning_rate),
                (temperature, COOLING * temperature),
                (float(shrink_rate), float(shrink_rate)),
                max(1, round(COOLING_SHARE * n_steps)),
                float(parameters["subsample"]),
            )
        arguments |= {"temperature": temperature, "shrink_rate": float(shrink_rate)}
    else:
        _reject_idle(own, f"sampler={spec!r} does not use it, sampler='langevin' does")
    if spec == "plain":
        _reject_idle({"subsample": parameters["subsample"]}, "sampler='plain' uses every row")
    else:
        arguments["subsample"] = float(parameters["subsample"])
    sampler: Sampler = SAMPLERS[spec](**arguments)
    return sampler


def _reject_idle(given: Mapping[str, Any], reason: str) -> None:
    """Reject parameters that would have no effect."""
    for name, value in given.items():
        idle = 1.0 if name == "subsample" else "auto"
        if value != idle:
            raise ValueError(f"{name}={value!r} has no effect: {reason}; leave it at {idle!r}")


def check_stability(move: Move, loss: Loss, leaf_method: str) -> None:
    """Reject a move that makes the chain diverge.

    A leaf follows theta <- (1 - eps (c + gamma)) theta + ..., with curvature c of the loss in raw
    (1 for a Newton step), which is stable if and only if eps (c + gamma) < 2. A loss with bounded
    gradient cannot run away; there the shrink factor alone must stay positive.
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
    if rate * (curvature + shrink_rate) >= 2.0:
        raise ValueError(
            f"learning_rate={rate:g} makes the chain diverge: learning_rate * (curvature + "
            f"shrink_rate) = {rate * (curvature + shrink_rate):g} must be below 2 "
            f"(curvature {curvature:g} for loss {loss.name!r}, leaf_method {leaf_method!r}); use a "
            "smaller learning_rate"
        )


def auto_leaf_method(loss: Loss) -> LeafMethod:
    """Newton where the curvature is never negative and there is one optimum, else the paper's.

    Robust regression losses are linear far from their optimum: their curvature vanishes there, and
    a Newton step would overshoot.
    """
    flat = loss.task == "regression" and loss.lipschitz is not None
    return "newton" if loss.has_hessian and loss.convex and not flat else "gradient"


def is_binary(loss: Loss) -> bool:
    """Whether one raw score stands for the odds of two classes."""
    return loss.task != "regression" and loss.n_outputs <= 2


def is_multimodal(size: Size, loss: Loss) -> bool:
    """Whether a loss of numbers has valleys that a chain must find its way between."""
    return loss.task == "regression" and not loss.convex and size.depth > 0.0


def is_small_regression(size: Size, loss: Loss) -> bool:
    """Whether there are fewer than a thousand numbers to learn from."""
    return loss.task == "regression" and size.count < 1000.0


def auto_max_depth(size: Size, loss: Loss) -> int:
    """6 for two classes and for fewer than a thousand numbers, else 8; but 8 for two classes of up
    to 10 columns and from 10,000 rows on, and 6 for several classes of more than 60 columns.

    A tree tells a number, or many classes, more than it tells the odds of two. Depth 8 against 6
    lowered the test error of 10 regressions by 1 to 29 % and of 2 of 3 problems of several classes
    by 5 to 8 %; that of the third, a wide one, it raised by .4 %. Two classes: where few columns
    must be split again and again it lowered it by 0 to 2 %, elsewhere it changed it by -.6 to +3 %.
    Of four regressions of 200 to 670 rows 6 lowered it by 2 to 17 % (docs/defaults.md).
    """
    if is_multimodal(size, loss):
        return 4
    if size.is_flat:
        return 6
    if is_binary(loss):
        return 8 if loss.convex and size.n_columns <= 10 and size.count >= 10_000.0 else 6
    wide = loss.n_outputs > 1 and size.n_columns > 60
    return 6 if wide or is_small_regression(size, loss) else 8


def auto_max_bins(size: Size, loss: Loss) -> int:
    """254 for numbers, where 64 cost up to 5 % (coordinates, temperatures), and for two classes of
    up to 60 columns, where 64 cost up to .4 %; else 64, as wide tables gained nothing and took
    twice the time (docs/defaults.md).
    """
    narrow = is_binary(loss) and size.n_columns <= 60
    return 254 if loss.task == "regression" or narrow else 64


def auto_l2(size: Size, loss: Loss, leaf_method: str) -> float:
    """0 as in the paper; 3 for Newton leaves, whose Hessian sum may be close to zero.

    On 13 binary tables 1 and 10 changed the test log loss by -.1 % and +.16 %. A leaf of a small
    regression holds few rows, and 1 is enough (docs/defaults.md).
    """
    if leaf_method == "gradient":
        return 0.0
    return size.unit * (1.0 if is_small_regression(size, loss) else 3.0)


def auto_leaf_steps(size: Size, loss: Loss, leaf_method: str) -> int:
    """3 for two classes and Newton leaves of so many rows that steps before the last look at a part
    of them, else 1.

    On a million rows they lowered the test log loss of 100 trees by 1.3 % in 1.3 times the time, as
    much as ten steps. Of fewer rows each step takes as long as the first (docs/defaults.md).
    """
    parts = leaf_method == "newton" and math.isfinite(loss.reach) and loss.n_outputs == 1
    return 3 if parts and size.n_rows >= 2 * PART_ROWS else 1


# Spreads of y that the steps of a flat loss may go together at its typical gradient.
FLAT_TRAVEL = 7.0


def auto_learning_rate(size: Size, n_steps: int, loss: Loss, leaf_method: str) -> float:
    """exp(.246 ln N - 5.127) (n_steps / 1000)^-.451, between .005 and .5, for Newton leaves.

    Found for the logistic loss on 13 tables of 6,000 to 50,000 rows, where half and twice the rate
    changed the test log loss by -.08 % and +.35 %. Numbers and more than two classes take twice
    that, with which they come to their optimum within the steps (docs/defaults.md). To go as far, a
    gradient step is divided by the curvature of the loss at the start, but not by less than a tenth
    of its largest curvature. Gradients of flat losses (absolute, quantile) do not shrink with the
    residuals, so that their steps are given a total length. The smoothed 0-1 loss takes the
    paper's .1.
    """
    if loss.name == "sla":
        return 0.1
    if size.is_flat and leaf_method == "gradient":
        return FLAT_TRAVEL / (n_steps * typical_curvature(size, loss))
    rate = math.exp(0.246 * math.log(size.count) - 5.127) * math.pow(n_steps / 1000.0, -0.451)
    rate = min(max(rate if is_binary(loss) else 2.0 * rate, 0.005), 0.5)
    return rate / typical_curvature(size, loss) if leaf_method == "gradient" else rate


def typical_curvature(size: Size, loss: Loss) -> float:
    """Curvature at the start, at least a tenth of the largest there is; of a flat loss, whose
    curvature is all in its kink, typical gradient / spread of y.
    """
    if size.is_flat:
        return math.sqrt(size.square) / size.spread
    return max(size.curvature, 0.1 * (loss.smoothness or 0.0)) or 1.0


# An annealed chain ends at this share of the temperature that it starts with, after this share of
# its steps; the others are spent at the end of the way.
COOLING = 1e-4
COOLING_SHARE = 0.8


def auto_hot_temperature(size: Size, loss: Loss) -> float:
    """The depth of the loss's valleys below the start: what holds a row in the wrong one.

    On six problems of 1,000 to 2,000 rows with 35 to 40 % outliers, a tenth of it left the chain
    in worse valleys on all six and three times as much on two (docs/defaults.md).
    """
    return size.unit * size.depth if size.depth > 0.0 else auto_temperature(size, loss)


def auto_temperature(size: Size, loss: Loss) -> float:
    """1e-3 where noise must carry the chain over barriers, else 1e-5, and 1e-6 for numbers.

    1e-3 is the paper's beta = 1000 N for the smoothed 0-1 loss, whose valleys are .5 deep; it is
    multiplied by depth / .5 for others. For the logistic loss noise only costs: 1e-5 .06 % of the
    test log loss, 1e-4 .4 %, 1e-3 2.5 %. A temperature has the unit of the loss, so in regression
    it is multiplied by squared gradient / curvature: y in metres and in millimetres give the same
    model. What trees leave unexplained of y may be a thousandth of that, and the noise is to be
    small beside it (docs/defaults.md).
    """
    if loss.task != "regression":
        return size.unit * (1e-5 if loss.convex else 2e-3 * (size.depth or 0.5))
    scale = size.square / typical_curvature(size, loss)
    if not math.isfinite(scale):
        raise ValueError(
            f"temperature='auto' cannot be chosen: the mean squared gradient of loss {loss.name!r}"
            f" at its start is {size.square}; the loss returns NaN or infinity, or y is too large"
        )
    return size.unit * scale * (1e-6 if loss.convex else 1e-3)


def auto_shrink_rate(size: Size, loss: Loss, leaf_method: str) -> float:
    """The paper's 1e-3 for non-convex losses; 1e-5 is enough to keep a convex chain stationary.

    Where gradient steps are divided by the curvature of a loss of numbers, the rate is multiplied
    with it: how far a step shrinks the model must not depend on the unit of y.
    """
    unit = 1.0
    if loss.task == "regression" and leaf_method == "gradient":
        unit = typical_curvature(size, loss)
    return unit * (1e-5 if loss.convex else 1e-3)


def structure_rows(
    n_rows: int, sample: str | float = "auto", *, n_steps: int = 100, several: bool = False
) -> int:
    """Rows that a structure is searched on: a number, a fraction, or by the size of the data.

    Auto takes every row up to 50,000, where drawing costs nearly what it saves; then 80 sqrt(N),
    but at least 25,000 and no more than 50,000 or a fiftieth. It is a third more for a thousand
    steps than for a hundred, as the trees of a long chain have less and less to go by, and twice
    that for `several` outputs, each of which has few rows that tell about it; in a thousand steps
    these use every row up to 100,000. Rows are drawn by importance, and other ones for each tree;
    docs/benchmarks.md shows what fewer or more cost.
    """
    if sample == "auto":
        times = 2 if several else 1
        if n_rows <= 50_000 * min(times, max(1.0, n_steps / 500.0)):
            return n_rows
        some = max(25_000.0, min(80.0 * math.sqrt(n_rows), max(50_000.0, n_rows / 50.0)))
        return min(n_rows, round(times * some * math.pow(max(1.0, n_steps / 100.0), 0.125)))
    if isinstance(sample, Integral):
        return min(n_rows, int(sample))
    return max(1, round(float(sample) * n_rows))


def structure_outputs(n_outputs: int, sample: str | float = "auto") -> int:
    """Outputs that a structure is searched on: the root of their number, at least 3; all of them
    where the rows are stated.

    3 of 7 classes (covertype) gave a test loss .7 % lower than all 7 in half the time, 4 of 10
    (poker_100k) 24 % lower (docs/defaults.md); of 10 classes that are all alike, 3 cost .3 %.
    """
    if sample != "auto":
        return n_outputs
    return min(n_outputs, max(3, math.ceil(math.sqrt(n_outputs))))


def n_threads(n_jobs: int | None) -> int:
    """Threads that `n_jobs` means: all available cores for None and -1."""
    return _core.available_threads() if n_jobs is None or n_jobs == -1 else int(n_jobs)


def draw_seed(random_state: Any) -> int:
    """Return a 64-bit seed drawn from an int, a RandomState or, with None, from chance."""
    words = check_random_state(random_state).randint(0, 2**32, size=2, dtype=np.uint64)
    return int(words[0]) << 32 | int(words[1])
