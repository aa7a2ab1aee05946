"""`sglb paper`: the experiments of the paper as commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sglb.experiments.real_data import MethodName

app = typer.Typer(
    help="Run the paper's experiments and print their tables beside the published ones.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for figures and results.")
]
Write = Annotated[
    bool, typer.Option("--write", help="Write the tables into the page between their marks.")
]
Page = Annotated[Path, typer.Option(metavar="FILE", help="Page that --write writes to.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes to use; by default one per core.")]
Trials = Annotated[int, typer.Option(min=1, help="Trials of random search for each method.")]
DataSets = Annotated[
    str | None,
    typer.Option("--datasets", metavar="NAMES", help="Names separated by commas; by default all."),
]
MaxTrees = Annotated[int, typer.Option(min=1, help="Trees of each model at most.")]
Splits = Annotated[
    int,
    typer.Option(
        min=0, help="Other splits, two or more, to test the chosen models on; 0 for none."
    ),
]
Structures = Annotated[
    bool,
    typer.Option("--structures", help="Let SGB draw rows for structures alone, as CatBoost does."),
]
CatBoost = Annotated[
    bool,
    typer.Option("--catboost", help="Tune CatBoost, the paper's implementation, instead of sglb."),
]
OnlyReport = Annotated[
    bool, typer.Option("--only-report", help="Run no trial, report the finished ones.")
]

FOLDER, PAGE = Path("paper"), Path("docs/paper.md")


@app.command()
def synthetic(
    folds: Annotated[int, typer.Option(min=2, help="Folds of the main table.")] = 100,
    steps: Annotated[int, typer.Option(min=1, help="Boosting steps of each model.")] = 1000,
    sweep_folds: Annotated[
        int, typer.Option(min=0, help="Folds for each temperature, 0 for no sweep.")
    ] = 20,
    catboost_folds: Annotated[
        int, typer.Option(min=0, help="Folds to run CatBoost on too, 0 for none.")
    ] = 5,
    study_folds: Annotated[
        int, typer.Option(min=0, help="Folds for each way to sample rows, 0 for none.")
    ] = 0,
    long_folds: Annotated[int, typer.Option(min=0, help="Folds of long chains, 0 for none.")] = 0,
    long_steps: Annotated[
        int, typer.Option(min=100, help="Boosting steps of a long chain.")
    ] = 100_000,
    out: Out = FOLDER,
    write: Write = False,
    page: Page = PAGE,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Table 1: boosted stumps, the 0-1 loss and its local optima."""
    from sglb.experiments import table_1

    options = table_1.SyntheticOptions(
        n_folds=folds,
        n_steps=steps,
        sweep_folds=min(sweep_folds, folds),
        catboost_folds=catboost_folds,
        study_folds=study_folds,
        long_folds=long_folds,
        long_steps=long_steps,
        seed=seed,
        n_jobs=jobs,
    )
    table_1.run(out, options, page if write else None)


@app.command("zero-one")
def zero_one(
    trials: Trials = 200,
    datasets: DataSets = None,
    max_trees: MaxTrees = 1000,
    splits: Splits = 0,
    structures: Structures = False,
    catboost: CatBoost = False,
    only_report: OnlyReport = False,
    out: Out = FOLDER,
    write: Write = False,
    page: Page = PAGE,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Table 2: tuned SGB against tuned SGLB by the 0-1 loss on real data. Can be resumed."""
    from sglb.experiments.tables_2_3 import TuningOptions, run

    rival, names = _rival(structures=structures, catboost=catboost), _names(datasets)
    options = TuningOptions("zero-one", out, trials, names, max_trees, seed, jobs, splits, rival)
    run(options, page if write else None, only_report=only_report)


@app.command()
def logloss(
    trials: Trials = 200,
    datasets: DataSets = None,
    max_trees: MaxTrees = 1000,
    splits: Splits = 0,
    structures: Structures = False,
    only_report: OnlyReport = False,
    out: Out = FOLDER,
    write: Write = False,
    page: Page = PAGE,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Table 3: tuned SGB against tuned SGLB by the log loss on real data. Can be resumed."""
    from sglb.experiments.tables_2_3 import TuningOptions, run

    rival, names = _rival(structures=structures), _names(datasets)
    options = TuningOptions("logloss", out, trials, names, max_trees, seed, jobs, splits, rival)
    run(options, page if write else None, only_report=only_report)


def _rival(*, structures: bool, catboost: bool = False) -> "MethodName":
    if structures and catboost:
        raise ValueError("CatBoost always draws rows for structures: --catboost or --structures")
    if catboost:
        return "CatBoost-SGB"
    return "SGB-structures" if structures else "SGB"


def _names(datasets: str | None) -> list[str] | None:
    return None if datasets is None else [name.strip() for name in datasets.split(",")]


@app.command()
def theory(
    quick: Annotated[
        bool, typer.Option("--quick", help="Chains of a tenth of the length.")
    ] = False,
    out: Out = FOLDER,
    write: Write = False,
    page: Page = PAGE,
    seed: Seed = 0,
) -> None:
    """The theorems as measurements on problems small enough to compute."""
    from sglb.experiments.theory import page as theory_page

    theory_page.run(out, quick=quick, seed=seed, write=page if write else None)
