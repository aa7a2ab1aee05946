"""What a tree should take on a cluster of any size, from fits on this machine.

    slopes   a + b * rows of a worker / its threads          each question has its latency
    leaves   a + b * rows of a worker / its threads
    sample   a + b * rows drawn by a worker + bytes of all rows drawn / bandwidth of the client
    search   b * rows drawn / threads of the client

a and b are those of two fits with as many workers of one thread. What is not in it: workers that
wait for the slowest, and a network that is shared.
"""

from dataclasses import dataclass
from itertools import combinations

DRAWN = 80.0  # times the root of the rows: structure_sample="auto"
BYTES_A_ROW = 28 + 8
SLOPES, SAMPLE, LEAVES, SEARCH = "refresh", "draw", "leaf_sums", "search"


@dataclass
class Cluster:
    n_rows: float
    n_workers: int
    threads: int = 1  # of a worker, and of the client
    gigabits: float = float("inf")  # a second, into the client

    @property
    def drawn(self):
        return min(self.n_rows, DRAWN * self.n_rows**0.5)

    def amounts(self):
        """What the time of each part of a tree grows with."""
        rows = self.n_rows / self.n_workers / self.threads
        drawn = self.drawn / self.n_workers / self.threads
        search = self.drawn / self.threads
        return {SLOPES: rows, SAMPLE: drawn, LEAVES: rows, SEARCH: search}

    @property
    def transfer(self):
        """Milliseconds in which the sample arrives."""
        return 8e-6 * BYTES_A_ROW * self.drawn / self.gigabits


def predict(cluster, small, large):
    """Milliseconds of each part, from two results by the library on fewer and more rows."""
    parts = {"transfer": cluster.transfer}
    low, high = (Cluster(r.n_rows, r.n_workers).amounts() for r in (small, large))
    for name, amount in cluster.amounts().items():
        slope = (large.parts[name] - small.parts[name]) / (high[name] - low[name])
        parts[name] = max(0.0, small.parts[name] + slope * (amount - low[name]))
    return parts


def lines(results):
    """The predictions for the other runs here, beside what they took, and for large clusters."""
    fits = sorted((r for r in results if r.library == "sglb"), key=lambda r: r.n_rows)
    pairs = [(a, b) for a, b in combinations(fits, 2) if a.n_workers == b.n_workers == 2]
    if not pairs:
        return ["no model: it takes fits of sglb on two workers, of two numbers of rows"]
    small, large = pairs[0][0], pairs[-1][1]
    known = [(Cluster(r.n_rows, r.n_workers), sum(r.parts.values())) for r in fits]
    unknown = [Cluster(1e9, n, 16, 10.0) for n in (8, 32, 128)]
    rows = []
    for cluster, measured in [*known, *((each, None) for each in unknown)]:
        parts = predict(cluster, small, large)
        shown = " | ".join(f"{parts[name]:.1f}" for name in (SLOPES, SAMPLE, LEAVES, SEARCH))
        taken = "" if measured is None else f"{measured:.1f}"
        rows.append(
            f"| {cluster.n_rows:,.0f} | {cluster.n_workers} x {cluster.threads} | {shown}"
            f" | {parts['transfer']:.1f} | {sum(parts.values()):.1f} | {taken} |"
        )
    return [
        "",
        "| rows | workers x threads | slopes | sample | leaves | search | transfer | sum, ms a tree"
        " | measured |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
    ]
