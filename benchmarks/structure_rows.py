"""How many rows a structure needs: fit time and test loss of several structure samples.

    python -m benchmarks.structure_rows [--problems rows_100k,higgs] [--trees N] [--write]

Every line is the mean over seeds of one process that fits sglb with so many structure rows, or a
peer, on the same rows and trees. --write puts the tables into docs/benchmarks.md.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks import page
from benchmarks.measures import test_loss
from benchmarks.peers import get_peer, version
from benchmarks.problems import get_problem
from sglb.defaults import structure_outputs, structure_rows

PROBLEMS = ("rows_100k", "rows_1m", "higgs", "bio", "covertype")
PEERS = ("hessboost_plain", "lightgbm_quantised")
# Fractions of the rows, numbers of rows, and what "auto" takes.
SAMPLES = (1.0, 0.5, 0.25, 100_000, 50_000, 25_000, 10_000, "auto")
MARKS = "<!-- structure rows -->", "<!-- structure rows end -->"


def samples_of(problem, n_rows):
    """((rows, outputs), sample) from most to fewest; what is there already is left out."""
    result = {}
    n_outputs = problem.n_classes if problem.n_classes > 2 else 1
    for sample in SAMPLES:
        rows = structure_rows(n_rows, sample, n_steps=problem.n_trees, several=n_outputs > 1)
        size = rows, structure_outputs(n_outputs, sample)
        if rows >= min(n_rows, 5_000) and (size not in result or sample == "auto"):
            result[size] = sample
    return sorted(result.items(), reverse=True)


def fit_time_and_loss(problem, peer, data, seeds, **extra):
    """Means over the seeds."""
    result = []
    for seed in range(seeds):
        settings = problem.settings(2, seed)
        start = time.perf_counter()
        model = peer.fit(data.X, data.y, settings, **extra)
        seconds = time.perf_counter() - start
        loss = test_loss(problem.task, data.y_test, peer.predict(model, data.X_test))
        result.append((seconds, loss))
    return np.mean(result, axis=0)


def table(name, rows=None, trees=None, seeds=2):
    """A Markdown table of one problem."""
    problem = get_problem(name).smaller(rows, trees)
    data = problem.make()
    lines = [
        f"{len(data.X):,} rows: {problem.description};"
        f" {problem.n_trees} trees of depth {problem.depth}",
        "",
        "| structure rows | fit, s | test loss |",
        "|--:|--:|--:|",
    ]
    library = get_peer("sglb_langevin")
    for (n, outputs), sample in samples_of(problem, len(data.X)):
        seconds, loss = fit_time_and_loss(problem, library, data, seeds, structure_sample=sample)
        shown = f"**{n:,}** (auto)" if sample == "auto" else f"{n:,}"
        if outputs < problem.n_classes and outputs > 1:
            shown += f", {outputs} outputs"
        lines.append(f"| {shown} | {seconds:.3g} | {loss:.5f} |")
    for library in PEERS:
        if version(library) is not None:
            peer = get_peer(library)
            seconds, loss = fit_time_and_loss(problem, peer, data, 1)
            lines.append(f"| {peer.NAME} | {seconds:.3g} | {loss:.5f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--rows", type=int, help="no more rows than this")
    parser.add_argument("--trees", type=int, help="no more trees than this")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    tables = []
    for name in options.problems.split(","):
        tables.append(table(name, options.rows, options.trees, options.seeds))
        print(tables[-1], flush=True)
        print()
    if options.write:
        path = Path(__file__).parent.parent / "docs" / "benchmarks.md"
        page.fill(path, "Benchmarks", *MARKS, "\n\n".join(tables))


if __name__ == "__main__":
    main()
