"""The commands and their options; what they do is in `train`, `apply` and `experiments.demo`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sglb.cli import paper
from sglb.cli.one_line import OneLineErrors

app = typer.Typer(
    cls=OneLineErrors,
    help="Stochastic Gradient Langevin Boosting: train, use and understand models of tables.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(paper.app, name="paper")


class Task(StrEnum):
    """What kind of target a table has."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class SamplerName(StrEnum):
    """The ways a chain may move."""

    langevin = "langevin"
    stochastic = "stochastic"
    plain = "plain"


Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Jobs = Annotated[
    int | None, typer.Option(help="Threads to use; all available cores unless given.", min=1)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
TablePath = Annotated[
    Path, typer.Argument(metavar="TABLE", help="Table: .csv, .tsv, .csv.gz or .parquet.")
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that train wrote.")]
ModelOut = Annotated[
    Path, typer.Option("--model", "-m", metavar="FILE", help="Model file to write.")
]
Target = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", help="Column with the label.")
]
Weight = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column with the weight of each row.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column to leave out; may be given several times."),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of numbers that are names; may be given several times. Text always is.",
    ),
]
TaskOption = Annotated[
    Task,
    typer.Option(
        help="auto: text, true/false or at most 20 whole numbers are classes, all else regression."
    ),
]
Valid = Annotated[
    Path | None, typer.Option(metavar="TABLE", help="Table to evaluate on while training.")
]
ValidFraction = Annotated[
    float | None,
    typer.Option(help="Share of the rows kept for evaluation instead, say 0.2."),
]
Loss = Annotated[str | None, typer.Option(help="Loss, for example logistic, sla, huber.")]
Steps = Annotated[int | None, typer.Option("--n-estimators", min=1, help="Trees to train.")]
LearningRate = Annotated[float | None, typer.Option(help="Size of a step; chosen unless given.")]
Depth = Annotated[int | None, typer.Option(help="Splits on the way to a leaf.")]
Bins = Annotated[int | None, typer.Option(help="Bins of a feature, 2 to 255.")]
SamplerOption = Annotated[
    SamplerName | None,
    typer.Option(help="langevin (noise), stochastic (samples of rows) or plain boosting."),
]
Temperature = Annotated[
    float | None, typer.Option(help="Langevin noise: 0 none, 1 the Bayesian posterior.")
]
ShrinkRate = Annotated[float | None, typer.Option(help="Langevin pull towards zero, gamma.")]
Subsample = Annotated[float | None, typer.Option(help="Share of the rows behind each gradient.")]
Rounds = Annotated[
    int | None,
    typer.Option(
        "--early-stopping-rounds",
        min=1,
        help="Stop after so many steps without gain.",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"sglb {version('sglb')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Stochastic Gradient Langevin Boosting: train, use and understand models of tables."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def train(
    table: TablePath,
    target: Target,
    model: ModelOut,
    task: TaskOption = Task.auto,
    valid: Valid = None,
    valid_fraction: ValidFraction = None,
    weight: Weight = None,
    drop: Drop = None,
    categorical: Categorical = None,
    loss: Loss = None,
    n_estimators: Steps = None,
    learning_rate: LearningRate = None,
    max_depth: Depth = None,
    max_bins: Bins = None,
    sampler: SamplerOption = None,
    temperature: Temperature = None,
    shrink_rate: ShrinkRate = None,
    subsample: Subsample = None,
    early_stopping_rounds: Rounds = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Train a model on a table and save it."""
    from sglb.cli import train as room

    given = {
        "loss": loss,
        "n_estimators": n_estimators,
        "learning_rate": learning_rate,
        "max_depth": max_depth,
        "max_bins": max_bins,
        "sampler": None if sampler is None else sampler.value,
        "temperature": temperature,
        "shrink_rate": shrink_rate,
        "subsample": subsample,
        "early_stopping_rounds": early_stopping_rounds,
    }
    room.train(
        room.Order(
            table,
            target,
            weight,
            tuple(drop or ()),
            tuple(categorical or ()),
            task.value,
            valid,
            valid_fraction,
        ),
        {name: value for name, value in given.items() if value is not None},
        model,
        seed=seed,
        n_jobs=jobs,
        verbose=not quiet,
    )


@app.command()
def predict(
    model: ModelPath,
    table: TablePath,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Table to write: .csv, .tsv or .parquet."
        ),
    ],
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty", help="Add knowledge, data and total uncertainty.")
    ] = False,
    jobs: Jobs = None,
) -> None:
    """Predict every row of a table and write the predictions."""
    from sglb.cli import apply

    apply.predict(model, table, output, proba=proba, uncertainty=uncertainty, n_jobs=jobs)


@app.command()
def evaluate(
    model: ModelPath,
    table: TablePath,
    target: Target,
    weight: Weight = None,
    as_json: AsJson = False,
    jobs: Jobs = None,
) -> None:
    """Print how well a model predicts a table with known labels."""
    from sglb.cli import apply

    apply.evaluate(model, table, target, weight, as_json=as_json, n_jobs=jobs)


@app.command()
def info(
    model: ModelPath,
    top: Annotated[int, typer.Option(min=0, help="Features to list.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Print what a model is and what it looks at."""
    from sglb.cli import apply

    apply.info(model, top, as_json=as_json)


@app.command()
def demo(
    folds: Annotated[int, typer.Option(min=2, help="Independent repetitions.")] = 100,
    steps: Annotated[int, typer.Option(min=1, help="Boosting steps of each model.")] = 1000,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write to.")
    ] = Path("demo"),
    seed: Seed = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Folds at a time; all cores unless given.")
    ] = None,
) -> None:
    """See Langevin boosting leave a local optimum."""
    from sglb.experiments.demo import run

    run(output, n_folds=folds, n_steps=steps, seed=seed, n_jobs=jobs)
