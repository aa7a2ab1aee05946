"""Sets of queries, each in three: to learn from, to choose by, to test on."""

from typing import NamedTuple

import numpy as np

from sglb.datasets import data_folder
from sglb.ranking_metrics import by_query
from sglb.target import Target

# The official parts, as (to learn from, to choose by, to test on).
OFFICIAL = {
    "mq2008": (("S1", "S2", "S3"), ("S4",), ("S5",)),
    "ohsumed": (("S3", "S4", "S5"), ("S2",), ("S1",)),
    "mslr_web_164q": (("train",), ("vali",), ("test",)),
}
# Of these a fourth of the official training queries is there to choose by.
TWO_PARTS = ("yandex_relevance", "lightgbm_lambdarank")
# Without official parts: a tenth of the blocks to learn from, a tenth to choose by.
BLOCKS = ("bio_kdd04",)
SETS = (
    "yandex_relevance",
    "mq2008",
    "ohsumed",
    "mslr_web_164q",
    "lightgbm_lambdarank",
    "bio_kdd04",
)
LEARN, CHOOSE, TEST = range(3)


class Rows(NamedTuple):
    """Rows of queries, which lie together; `query` is 0, 1, ... in the order of the rows."""

    X: np.ndarray
    y: np.ndarray
    query: np.ndarray

    @property
    def sizes(self):
        return np.bincount(self.query)

    def take(self, queries):
        """The rows of some queries, numbered anew."""
        kept = np.isin(self.query, queries)
        return Rows(self.X[kept], self.y[kept], np.unique(self.query[kept], return_inverse=True)[1])

    def score(self, raw, metric="ndcg", cutoff=10):
        """The metric of each query with a relevant row, the only evaluator of this benchmark."""
        raw = np.asarray(raw, dtype=np.float64)
        target = Target.of(self.y.astype(np.float64), groups=self.query)
        values = by_query(metric, target, raw, cutoff)
        return values[~np.isnan(values)]


def part_of(name, ids, split):
    """LEARN, CHOOSE or TEST for each query; `split` is its official part, None without any."""
    if name in OFFICIAL:
        parts = {of: number for number, named in enumerate(OFFICIAL[name]) for of in named}
        return np.array([parts[of] for of in split])
    position = np.argsort(np.argsort(ids, kind="stable"))
    if name in BLOCKS:
        return np.minimum(position % 10, TEST)
    trained = np.asarray(split) == "train"
    position = np.cumsum(trained[np.argsort(ids, kind="stable")])[position]
    return np.where(trained, np.where(position % 4 == 0, CHOOSE, LEARN), TEST)


def load(name):
    """Rows to learn from, to choose by and to test on."""
    import pandas as pd

    table = pd.read_parquet(data_folder() / f"{name}.parquet")
    table = table.sort_values("group", kind="stable")
    ids, first, query = np.unique(
        table["group"].to_numpy().astype(str), return_index=True, return_inverse=True
    )
    order = np.argsort(query, kind="stable")
    has_split = "split" in table
    split = table["split"].to_numpy().astype(str)[first] if has_split else None
    table = table.drop(columns=["group", "split"] if has_split else ["group"])
    y = table.pop("target").to_numpy().astype(np.int64)
    rows = Rows(table.to_numpy(np.float32)[order], y[order], query[order])
    part = part_of(name, ids, split)
    return tuple(rows.take(np.flatnonzero(part == number)) for number in (LEARN, CHOOSE, TEST))


def both(first, second):
    """The rows of two parts together."""
    query = np.append(first.query, second.query + len(first.sizes))
    return Rows(np.vstack([first.X, second.X]), np.append(first.y, second.y), query)
