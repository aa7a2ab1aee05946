"""How losses with many valleys are to be cooled: schedules by the units of the data, compared.

    python -m benchmarks.dynamics.cooling --part problems --seeds 300:304     # to choose by
    python -m benchmarks.dynamics.cooling --part problems --seeds 200:220     # to test the choice
    python -m benchmarks.dynamics.cooling --part tables --seeds 300:303
    python -m benchmarks.dynamics.cooling --part tables --seeds 200:210

A schedule begins at the temperature t d or, with n the rows of a leaf, t d n, and at the shrink
rate g c; d is the depth of the valleys and c the curvature, both as `sglb.defaults` has them.
Problems are those of `benchmarks.dynamics`, with as many steps. Tables are fitted by the
estimators: classes with the smoothed 0-1 loss, numbers with losses that give up on far rows. A
fifth of the training numbers are moved by 3 to 10 standard deviations, those of test rows are not.
Results are kept in build/cooling.jsonl, and what is there is not computed again. Prints Markdown.
Needs SGLB_DATA. One thread.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.dynamics import descent
from benchmarks.dynamics.problems import PROBLEMS
from benchmarks.dynamics.valleys import table
from benchmarks.uncertainty.results import Job, Results
from sglb import SGLBClassifier, SGLBRegressor, losses
from sglb.datasets import load_table
from sglb.defaults import typical_curvature
from sglb.losses import UserLoss
from sglb.prepare.rows import size_of
from sglb.samplers import Langevin
from sglb.samplers.annealed import COOLING_SHARE
from sglb.schedules import Shape
from sglb.target import Target


@dataclass(frozen=True)
class Cooling:
    """Temperature t d (or t d n) and shrink rate g c at the start; both or one of them fall."""

    t: float
    g: float
    by_rows: bool = False  # t d n
    temperature_falls: bool = True
    shrink_falls: bool = True

    def rates(self, n_steps, d, n, c):
        """Temperature and shrink rate, schedules where they fall."""
        hot, strong = self.t * d * (n if self.by_rows else 1.0), self.g * c
        n_cooling = max(1, round(COOLING_SHARE * n_steps))
        return (
            Shape("geometric", hot, 1e-4 * hot, n_cooling) if self.temperature_falls else hot,
            Shape("geometric", strong, 1e-4 * strong, n_cooling) if self.shrink_falls else strong,
        )


WAYS = {
    "annealed, shrink stays": Cooling(1.0, 1e-3, shrink_falls=False),
    "constant": Cooling(2e-3, 1e-3, temperature_falls=False, shrink_falls=False),
    "d, 0.001": Cooling(1.0, 1e-3),
    "d, 0.01": Cooling(1.0, 0.01),
    "d, 0.1": Cooling(1.0, 0.1),
    "d, 0.3": Cooling(1.0, 0.3),
    "d, 1": Cooling(1.0, 1.0),
    "0.1 d, 0.1": Cooling(0.1, 0.1),
    "0.1 d, 0.3": Cooling(0.1, 0.3),
    "0.01 d, 0.3": Cooling(0.01, 0.3),
    "3 d, 0.3": Cooling(3.0, 0.3),
    "0.03 d n, 0.1": Cooling(0.03, 0.1, by_rows=True),
    "0.03 d n, 0.3": Cooling(0.03, 0.3, by_rows=True),
    "0.003 d n, 0.3": Cooling(0.003, 0.3, by_rows=True),
}
N_STEPS, MOST_ROWS = 1000, 5000
CLASSES = ("adult", "credit_default", "electricity", "higgs_26k", "internet", "kick")
NUMBERS = ("california_housing", "uci_kin8nm", "uci_power", "uci_protein", "uci_parkinsons")
SHARE_MOVED = 0.2
KINDS = ("sla", "welsch", "cauchy", "truncated")


class Truncated:
    """r^2 / 2 up to a length, constant beyond; starts at the median."""

    def __init__(self, length):
        self.length = length

    def loss(self, y, raw):
        return 0.5 * np.minimum(np.square(raw - y), self.length**2)

    def gradient(self, y, raw):
        return np.where(np.abs(raw - y) < self.length, raw - y, 0.0)

    def init(self, y, weight):
        return np.median(y)


def on_problem(problem, way, seed):
    def make(problem, n_steps):
        units = problem.barrier, problem.leaf_rows, problem.curvature
        return Langevin(descent.E / problem.curvature, *way.rates(n_steps, *units))

    return descent.descend(problem, make, (), seed)


@lru_cache(maxsize=2)
def rows_of(name, seed):
    """Training and test rows, y in standard deviations or classes."""
    data, rng = load_table(name), np.random.default_rng([7, seed])
    order = rng.permutation(len(data.y))[: 2 * MOST_ROWS]
    train, test = np.array_split(order, 2)
    y = np.asarray(data.y)
    if name in NUMBERS:
        y = y.astype(float)
        y = (y - y.mean()) / y.std()
    moved = y[train].copy()
    if name in NUMBERS:
        bad = rng.random(len(train)) < SHARE_MOVED
        moved[bad] += rng.uniform(3.0, 10.0, bad.sum())
    return data.X.take(train), moved, data.X.take(test), y[test]


def losses_of(name):
    """Name -> loss, as an estimator takes it."""
    if name in CLASSES:
        return {"sla": "sla"}
    return {"welsch": "welsch", "cauchy": "cauchy", "truncated": Truncated(1.0)}


def units_of(y, loss, kind, depth):
    """d, n, c as the defaults have them."""
    if kind is SGLBClassifier:
        target = Target.of((y == np.unique(y)[1]).astype(float), classes=(0, 1))
        fitted = losses.get_loss(loss).adapt(target)
    else:
        target = Target.of(y)
        made = losses.get_loss(loss) if isinstance(loss, str) else UserLoss(loss)
        fitted = made.adapt(target)
    best = fitted.init(target)
    fitted = fitted.examine(target, best)
    size = size_of(target, 1, fitted, best)
    c = typical_curvature(size, fitted)
    return size.unit * size.depth, len(y) / (1 << depth), c


def on_table(name, loss_name, way, seed):
    X, y, X_test, y_test = rows_of(name, seed)
    loss = losses_of(name)[loss_name]
    kind, depth = (SGLBClassifier, 6) if name in CLASSES else (SGLBRegressor, 4)
    temperature, shrink_rate = way.rates(N_STEPS, *units_of(y, loss, kind, depth))
    model = kind(
        loss=loss,
        n_estimators=N_STEPS,
        temperature=temperature,
        shrink_rate=shrink_rate,
        max_depth=depth,
        random_state=seed,
        n_jobs=1,
    )
    begun = time.process_time()
    model.fit(X, y)
    row = {"seconds": time.process_time() - begun}
    if kind is SGLBClassifier:
        label = (y == model.classes_[1]).astype(float)
        row["train"] = float(np.mean(model.loss_.loss(label, model.predict_raw(X))))
        row["test"] = float(np.mean(model.predict(X_test) != y_test))
    else:
        row["train"] = float(np.mean(model.loss_.loss(y, model.predict(X))))
        row["test"] = float(np.abs(model.predict(X_test) - y_test).mean())
    return row


def ways_of(options):
    names = None if options.ways is None else options.ways.split(";")
    return {name: way for name, way in WAYS.items() if names is None or name in names}


def jobs(options):
    for seed in seeds_of(options):
        if options.part == "problems":
            for problem in PROBLEMS:
                for name, way in ways_of(options).items():
                    yield Job("problems", problem, seed, name), on_problem, (problem, way, seed)
            continue
        for name in (*CLASSES, *NUMBERS):
            for loss in losses_of(name):
                for way_name, way in ways_of(options).items():
                    job = Job("tables", f"{name} {loss}", seed, way_name)
                    yield job, on_table, (name, loss, way, seed)


def seeds_of(options):
    first, end = (int(number) for number in options.seeds.split(":"))
    return range(first, end)


def complete(results, options):
    """(problem or table, seed) -> way -> row, where all ways have one."""
    names = list(ways_of(options))
    rows = {}
    for job, row in results.done.items():
        if job.part == options.part and job.split in seeds_of(options) and job.method in names:
            rows.setdefault((job.table, job.split), {})[job.method] = row
    return {case: by_way for case, by_way in rows.items() if len(by_way) == len(names)}


def shares_left(by_way):
    """Way -> share of the way from the start to the best loss of any, or a known one."""
    losses = [row["loss"] for row in by_way.values()]
    best = min(losses + [row["best"] for row in by_way.values() if row["best"] is not None])
    return {way: (row["loss"] - best) / (row["start"] - best) for way, row in by_way.items()}


def problem_table(rows, ways):
    """Mean shares in percent, a column for each problem."""
    shares = {case: shares_left(by_way) for case, by_way in rows.items()}
    lines = []
    for way in ways:
        means = [
            100.0 * np.mean([share[way] for (name, _), share in shares.items() if name == problem])
            for problem in PROBLEMS
        ]
        lines.append([way, *(f"{mean:.1f} %" for mean in means)])
    return ["", *PROBLEMS], lines


def table_table(rows, ways):
    """Change against a constant temperature in percent, by loss: mean over tables and seeds."""
    kinds = [(loss, score) for loss in KINDS for score in ("train", "test")]
    lines = []
    for way in ways:
        cells = []
        for loss, score in kinds:
            changes = {}
            for (name, _), by_way in rows.items():
                if name.split()[1] == loss:
                    base = by_way["constant"][score]
                    changes.setdefault(name, []).append(by_way[way][score] / base - 1.0)
            means = [100.0 * np.mean(values) for values in changes.values()]
            error = np.std(means, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
            cells.append(f"{np.mean(means):+.1f} ± {error:.1f}" if means else "")
        lines.append([way, *cells])
    return ["", *(f"{loss}, {score}" for loss, score in kinds)], lines


def markdown(results, options):
    rows, ways = complete(results, options), ways_of(options)
    if not rows:
        return "nothing yet"
    header, lines = (problem_table if options.part == "problems" else table_table)(rows, ways)
    n = {name: sum(case[0] == name for case in rows) for name in dict.fromkeys(p[0] for p in rows)}
    counts = ", ".join(f"{name} {count}" for name, count in n.items())
    return "\n".join([*table(header, lines), "", f"seeds: {counts}"])


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("problems", "tables"), default="problems")
    parser.add_argument("--seeds", default="300:304", help="first:end (%(default)s)")
    parser.add_argument("--ways", help="names of schedules with semicolons between, all by default")
    parser.add_argument("--only-report", action="store_true", help="run nothing")
    results = machine.REPOSITORY / "build" / "cooling.jsonl"
    parser.add_argument("--results", type=Path, default=results)
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    results = Results.resume(options.results)
    for job, work, arguments in [] if options.only_report else jobs(options):
        if job not in results.done:
            results.add(job, work(*arguments))
            print(*job, file=sys.stderr, flush=True)
    print(markdown(results, options))


if __name__ == "__main__":
    main()
