"""The tables there are, how much work each is, and a bar that knows the time left."""

from sglb.datasets import RANKING, available_tables, data_folder

# Starting a process and reading a table costs as much as so many values of it.
START = 300_000


def all_tables():
    """Stored tables for classification and regression, the small ones first."""
    folder = data_folder()
    stored = [] if folder is None else [path.stem for path in folder.glob("*.parquet")]
    return sorted(set(stored) - set(RANKING), key=lambda name: (work(name), name))


def known_tables():
    return [name for name in available_tables() if name not in RANKING]


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
