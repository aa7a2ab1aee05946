"""The tables there are, how much work each is, and a bar that knows the time left."""

from benchmarks.quality import left_out
from sglb.datasets import RANKING, Dataset, available_tables, data_folder, load_table

# Starting a process and reading a table costs as much as so many values of it.
START = 300_000


def all_tables():
    """Stored tables for classification and regression, the small ones first, and those left out."""
    folder = data_folder()
    stored = [] if folder is None else [path.stem for path in folder.glob("*.parquet")]
    others = list(left_out.LEFT_OUT) if left_out.installed() else []
    return sorted(set(stored) - set(RANKING), key=lambda name: (work(name), name)) + others


def known_tables():
    return [*(name for name in available_tables() if name not in RANKING), *left_out.LEFT_OUT]


def read(name) -> Dataset:
    return left_out.load(name) if name in left_out.LEFT_OUT else load_table(name)


def work(table, max_rows=None):
    """What a fit costs, roughly: the number of values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = data_folder()
    path = None if folder is None else folder / f"{table}.parquet"
    if path is None or not path.exists():  # on OpenML: unknown before it is fetched
        return 2.0 * START
    try:
        shape = pq.read_metadata(path)
    except pa.ArrowException:  # the worker will say what is wrong with it
        return float(START)
    rows = min(shape.num_rows, max_rows or shape.num_rows)
    return float(START + rows * shape.num_columns)


def progress_bar(console):
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        speed_estimate_period=1e9,  # tables differ so much that only the whole run tells the pace
    )
