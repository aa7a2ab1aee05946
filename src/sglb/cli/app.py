"""The commands and their arguments; `train`, `apply` and `experiments` do the work."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sglb.cli import paper
from sglb.cli.help import GroupedCommand
from sglb.cli.one_line import OneLineErrors
from sglb.cli.options import HELD, MODEL, RUN, TABLE, stated_options, with_options

if TYPE_CHECKING:
    from sglb.tables import Dialect

app = typer.Typer(
    cls=OneLineErrors,
    help="Stochastic Gradient Langevin Boosting: train, use and understand models of tables.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(paper.app, name="paper", short_help="Run the paper's experiments.")


class TaskName(StrEnum):
    """What kind of target a table has."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


Seed = Annotated[
    int,
    typer.Option(
        "--seed", "--random-state", metavar="INTEGER", min=0, help="Seed of everything random."
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "--n-jobs",
        metavar="INTEGER",
        min=1,
        help="Threads to use; by default all available.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[
    bool,
    typer.Option("--quiet/--verbose", "-q/-v", help="Show neither progress nor list of columns."),
]
TablePath = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="Table: .csv, .tsv, .csv.gz, .tsv.gz or .parquet; - is standard input.",
    ),
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
    list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out; repeatable.")
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of numbers to treat as categories; repeatable. Columns of text always are.",
    ),
]
Dates = Annotated[
    bool,
    typer.Option(
        "--dates",
        help="Turn dates into numbers: year, month, day, weekday, hour ..., those that vary. "
        "predict and evaluate do the same with such a model.",
    ),
]
TaskOption = Annotated[
    TaskName,
    typer.Option(
        help="auto: the task of --loss; else text, true/false or at most 20 whole numbers are "
        "classes, anything else is regression."
    ),
]
Valid = Annotated[
    Path | None, typer.Option(metavar="TABLE", help="Table to evaluate on while training.")
]
ValidFraction = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="Share of the rows kept for evaluation, say 0.2."),
]
EvalMetric = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Metric on the evaluation rows, for example logloss, auc, error, rmse, mae; "
        "repeatable, the first decides when to stop. By default the loss.",
    ),
]


def _version(requested: bool) -> None:
    if requested:
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


@app.command(cls=GroupedCommand)
@with_options(MODEL, RUN, HELD, TABLE)
def train(
    table: TablePath,
    target: Target,
    model: ModelOut,
    task: TaskOption = TaskName.auto,
    valid: Valid = None,
    valid_fraction: ValidFraction = None,
    eval_metric: EvalMetric = None,
    weight: Weight = None,
    drop: Drop = None,
    categorical: Categorical = None,
    dates: Dates = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
    **arguments: Any,
) -> None:
    """Train a model on a table and save it.

    Rows are counted from 0 in all messages, without the row of names.
    """
    from sglb.cli.rows import TrainOptions
    from sglb.cli.train import RunOptions
    from sglb.cli.train import train as train_model

    options = TrainOptions(
        table,
        target,
        weight,
        tuple(drop or ()),
        tuple(categorical or ()),
        task.value,
        valid,
        valid_fraction,
        tuple(eval_metric or ()),
        dates or bool(arguments["date_format"]),
        _dialect(arguments),
        **stated_options(arguments, HELD),
    )
    parameters = stated_options(arguments, MODEL)
    parameters |= {"random_state": seed, "n_jobs": jobs, "verbose": int(not quiet)}
    run = RunOptions(**stated_options(arguments, RUN))
    train_model(options, parameters, model, run, verbose=not quiet)


@app.command(cls=GroupedCommand)
@with_options(TABLE)
def predict(
    model: ModelPath,
    table: TablePath,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Table to write: .csv, .tsv or .parquet; - is CSV on standard output.",
        ),
    ] = Path("-"),
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the table to copy before the predictions; repeatable.",
        ),
    ] = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Write every column of the table.")
    ] = False,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty", help="Add knowledge, data and total uncertainty.")
    ] = False,
    jobs: Jobs = None,
    **arguments: Any,
) -> None:
    """Predict every row of a table and write the predictions."""
    from sglb.cli import apply

    apply.predict(
        model,
        table,
        output,
        _dialect(arguments),
        keep=None if keep_all else (keep or []),
        proba=proba,
        uncertainty=uncertainty,
        n_jobs=jobs,
    )


@app.command(cls=GroupedCommand)
@with_options(TABLE)
def evaluate(
    model: ModelPath,
    table: TablePath,
    target: Target,
    weight: Weight = None,
    as_json: AsJson = False,
    jobs: Jobs = None,
    **arguments: Any,
) -> None:
    """Print how well a model predicts a table with known labels."""
    from sglb.cli import apply

    dialect = _dialect(arguments)
    apply.evaluate(model, table, target, weight, dialect, as_json=as_json, n_jobs=jobs)


def _dialect(arguments: dict[str, Any]) -> "Dialect":
    """Return the format of text tables that the options state."""
    from sglb.tables import Dialect

    stated = stated_options(arguments, TABLE)
    missing, formats = stated.pop("missing", ()), stated.pop("date_format", ())
    return Dialect(**stated, missing=tuple(missing), date_formats=tuple(formats))


@app.command()
def info(
    model: ModelPath,
    top: Annotated[int, typer.Option(min=0, help="Features to list.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Describe a model and list its most important features."""
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
        int | None, typer.Option(min=1, help="Folds at a time; by default one per core.")
    ] = None,
) -> None:
    """See Langevin boosting leave a local optimum, and what error bars are worth."""
    from sglb.experiments.demo import run

    run(output, n_folds=folds, n_steps=steps, seed=seed, n_jobs=jobs)
