"""The options that commands share, each defined once: its flag, its type and its help.

`with_options` adds a group of options to a command, which receives their values by name, None for
an option that was not typed. An option of the group MODEL has the name of the estimator's parameter
that it sets.
"""

import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

Command = TypeVar("Command", bound=Callable[..., None])
Group = Mapping[str, Any]  # name of the parameter -> annotated type


class SamplerName(StrEnum):
    """The names of the samplers."""

    langevin = "langevin"
    annealed = "annealed"
    hamiltonian = "hamiltonian"
    cyclical = "cyclical"
    tempering = "tempering"
    stochastic = "stochastic"
    plain = "plain"


class LeafMethodName(StrEnum):
    """The ways to compute leaf values."""

    auto = "auto"
    gradient = "gradient"
    newton = "newton"


class StartName(StrEnum):
    """Where the chain may start."""

    zero = "zero"
    mean = "mean"


class ClassWeightName(StrEnum):
    """The ways to weight classes."""

    balanced = "balanced"


def _number(text: str) -> float | int | str:
    """Parse "auto", a whole number or a fraction."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor auto") from None


def _whole(text: str) -> int | str:
    """Parse "auto" or a whole number."""
    value = _number(text)
    if isinstance(value, float):
        raise typer.BadParameter(f"{text!r} is neither a whole number nor auto")
    return value


def _real(text: str) -> float | str:
    """Parse "auto" or a number."""
    value = _number(text)
    return value if isinstance(value, str) else float(value)


def _rate(text: str) -> float | str:
    """Parse "auto", a number, or a schedule, which the estimators read."""
    return text if "(" in text else _real(text)


def _levels(text: str) -> float | list[float]:
    """Parse a number, or several with commas between them."""
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number, or numbers like 0.05,0.95") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _option(value_type: Any, panel: str, help_text: str, *flags: str, **more: Any) -> Any:
    """Return the annotated type of an option that may be left out."""
    metavars = {int: "INTEGER", float: "NUMBER", str: "NAME"}
    if value_type in metavars:
        more = {"metavar": metavars[value_type]} | more
    return Annotated[
        value_type | None, typer.Option(*flags, help=help_text, rich_help_panel=panel, **more)
    ]


def _auto(parser: Callable[[str], Any], help_text: str) -> Any:
    """Return an option of the model that takes a number or "auto"."""
    metavar = "INTEGER" if parser is _whole else "NUMBER"
    if parser is _rate:
        metavar = "NUMBER OR SCHEDULE"
    return Annotated[
        Any,
        typer.Option(parser=parser, metavar=metavar, help=help_text, rich_help_panel="Model"),
    ]


MODEL: Group = {
    "loss": _option(
        str,
        "Model",
        "Classes: logistic, softmax, sla (the 0-1 loss, smoothed), savage. Numbers: squared "
        "(mean), absolute (median), quantile, huber, poisson (counts), gamma (positive amounts), "
        "tweedie (amounts with zeros), cauchy, welsch. The default is logistic, softmax or "
        "squared.",
    ),
    "quantile": Annotated[
        Any,
        typer.Option(
            parser=_levels,
            metavar="NUMBERS",
            help="Level of --loss quantile, between 0 and 1, or several: 0.05,0.5,0.95; 0.5 is the "
            "median.",
            rich_help_panel="Model",
        ),
    ],
    "tweedie_power": _option(
        float,
        "Model",
        "Power of --loss tweedie, between 1 (as poisson) and 2 (as gamma); 1.5 is the default.",
    ),
    "n_estimators": _auto(
        _whole,
        "Trees to train; auto is 1000 or, with up to 10,000 rows and no early stopping, the best "
        "number in a cross-validation.",
    ),
    "learning_rate": _auto(
        _rate,
        "Size of a step; auto follows from rows, trees and loss. It may change from tree to tree: "
        "'cosine(0.1, 0.01)', or linear, geometric; 'cosine(0.1, 0.01, 300)' in 300 trees.",
    ),
    "max_depth": _auto(_whole, "Splits on the way to a leaf, 1 to 16; auto is 4, 6 or 8."),
    "max_bins": _auto(_whole, "Bins of a column of numbers, 2 to 255; auto is 64, 128 or 254."),
    "sampler": _option(
        SamplerName,
        "Model",
        "langevin adds noise to gradients, annealed ever less, hamiltonian has momentum, cyclical "
        "takes long and short steps in turn, tempering runs four chains that exchange their "
        "temperatures, stochastic draws rows, plain does nothing of that.",
    ),
    "temperature": _auto(
        _rate,
        "Langevin noise. Low temperatures, the default, are for accuracy. 0 is no noise. 1 samples "
        "a Bayesian posterior in the long run, but a single chain of the default length is far "
        "from mixed: its predictions are worse, and its uncertainty should not be trusted yet. A "
        "chain cools down by a schedule such as 'geometric(1, 1e-4)'.",
    ),
    "shrink_rate": _auto(
        _rate, "Langevin pull of the model towards its start (gamma), a number or a schedule."
    ),
    "friction": _auto(_real, "Share of its velocity that a hamiltonian step loses, up to 1."),
    "structure_noise": _option(
        float, "Model", "Factor of the noise in the search of structures; the paper's is 1."
    ),
    "subsample": _option(float, "Model", "Share of the rows behind each gradient, up to 1."),
    "structure_sample": _auto(
        _number,
        "Rows that a tree's structure is searched on: a whole number, or a share such as 0.5.",
    ),
    "random_strength": _auto(_real, "Noise on the scores of splits."),
    "leaf_method": _option(
        LeafMethodName,
        "Model",
        "gradient is the paper's; auto is newton for squared, logistic, softmax, "
        "poisson, gamma, tweedie.",
    ),
    "leaf_steps": _auto(_whole, "Newton steps in the leaves of each tree."),
    "l2_regularization": _auto(_real, "Added to the weight of each leaf."),
    "init": _option(
        StartName, "Model", "Start at the best constant (mean, the default) or at zero."
    ),
    "class_weight": _option(
        ClassWeightName, "Model", "balanced gives every class the same weight in total."
    ),
    "uncertainty": _option(
        bool,
        "Model",
        "Learn error bars too; for numbers two to five more chains for each.",
        "--uncertainty",
    ),
    "n_chains": _option(
        int,
        "Model",
        "Chains that differ in their noise; the model is their mean, and takes as many times as "
        "long.",
        min=1,
    ),
    "early_stopping_rounds": _option(
        int, "Model", "Stop after this many trees without gain on the evaluation rows.", min=1
    ),
}

INTERRUPTED = "Interrupted training"

RUN: Group = {
    "checkpoint": _option(
        Path,
        INTERRUPTED,
        "File to write the trees so far to, every 30 seconds.",
        metavar="FILE",
    ),
    "resume": _option(
        bool,
        INTERRUPTED,
        "Go on where a checkpoint was written; from the beginning, if there is none.",
        "--resume",
    ),
    "time_limit": _option(
        float, INTERRUPTED, "Seconds after which no more trees are trained.", min=0.0
    ),
    "init_model": _option(
        Path,
        INTERRUPTED,
        "Model file to continue by --n-estimators trees; its other options must be stated again.",
        metavar="FILE",
    ),
}

LARGE = "Tables larger than memory"

HELD: Group = {
    "out_of_core": _option(
        bool,
        LARGE,
        "TABLE and --valid are Parquet files or folders of them, which are never in memory as a"
        " whole; the model is the same.",
        "--out-of-core",
    ),
    "page_folder": _option(
        Path,
        LARGE,
        "Folder on a disk for the codes, a byte for each value of the table; by default that of"
        " temporary files.",
        metavar="FOLDER",
    ),
}

READING = "Reading text files (detected by default)"

TABLE: Group = {
    "separator": _option(
        str,
        READING,
        "What separates columns: ',', ';', '|', tab or any other character.",
        metavar="CHARACTER",
    ),
    "decimal": _option(
        str,
        READING,
        "Decimal sign of numbers, '.' or ','. Never detected where commas separate columns.",
        metavar="CHARACTER",
    ),
    "thousands": _option(
        str,
        READING,
        "What separates the thousands of numbers. Detected with decimal commas only.",
        metavar="CHARACTER",
    ),
    "quote": _option(
        str,
        READING,
        "What encloses text that holds separators, '\"' or \"'\"; none for nothing.",
        metavar="CHARACTER",
    ),
    "encoding": _option(str, READING, "Encoding, for example utf-8, cp1252, latin-1 or utf-16."),
    "missing": _option(
        list[str],
        READING,
        "Value that means a missing value, besides '', NA, N/A, NaN and null; repeatable.",
        metavar="VALUE",
    ),
    "date_format": _option(
        list[str],
        READING,
        "Format of dates besides 2024-12-31 and 31.12.2024, for example %m/%d/%Y; repeatable.",
        metavar="FORMAT",
    ),
}

# Parameters of the estimators whose options have other names.
RENAMED = {
    "categorical_features": "--categorical",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "verbose": "--quiet",
    "warm_start": "--init-model",
}


def with_options(*groups: Group) -> Callable[[Command], Command]:
    """Replace the `**arguments` of a command by the options of these groups."""

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command)
        positional = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        hints = {name: hint for group in groups for name, hint in group.items()}
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in hints.items()
        ]
        command.__signature__ = signature.replace(parameters=[*positional, *more])  # type: ignore[attr-defined]
        command.__annotations__ = command.__annotations__ | hints
        return command

    return decorate


def stated_options(arguments: Mapping[str, Any], group: Group) -> dict[str, Any]:
    """Return the options of a group that were typed, enumerations by their values."""
    values = {name: arguments[name] for name in group if arguments.get(name) is not None}
    return {n: v.value if isinstance(v, StrEnum) else v for n, v in values.items()}
