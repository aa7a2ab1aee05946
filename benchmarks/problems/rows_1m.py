from dataclasses import replace

from benchmarks.peers import OWN
from benchmarks.problems.base import Problem
from benchmarks.problems.normal import interactions

TWO = Problem("fit", "28 features", interactions(28), n_rows=1_000_000, n_test=200_000)

PROBLEMS = {
    "rows_1m": TWO,
    "rows_1m_one_thread": replace(TWO, threads=1, libraries=OWN),
    "rows_1m_longer": replace(
        TWO, description=f"{TWO.description}, longer", n_trees=125, libraries=OWN
    ),
}
