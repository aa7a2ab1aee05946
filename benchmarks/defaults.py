"""The evidence behind "auto": test loss when a setting is moved.

    python -m benchmarks.defaults
    python -m benchmarks.defaults --tables electricity,amazon --splits 6 max_depth=7 max_depth=8
    python -m benchmarks.defaults --tables uci_energy temperature=*.1,l2_regularization=1

The protocol is that of `benchmarks.quality`, on other splits of the same tables: its splits are 0,
1, ..., these 1000, 1001, ...: what is chosen here can be checked there. A move is settings with
commas between; *2 is twice what "auto" chose. Printed is the test loss relative to that of "auto",
in percent (below 0 is better), the mean over the splits, and the time relative to that of "auto".
Needs SGLB_DATA.
"""

import argparse
import ast
import os
import sys

import numpy as np

from benchmarks.process import timed
from benchmarks.quality.libraries import sglb
from benchmarks.quality.protocol import MAX_ROUNDS, Protocol
from benchmarks.quality.scores import scores
from benchmarks.quality.worker import parts_of, warm_up
from sglb.datasets import load_table

FIRST_SPLIT = 1000
TABLES = (
    "credit_default,electricity,higgs_26k,adult,amazon,kdd09_upselling_50k45f,"
    "kdd09_all3_20k230f,california_housing,uci_kin8nm,uci_power,diamonds,uci_energy,uci_concrete"
)
MOVES = (
    "learning_rate=*.5",
    "learning_rate=*2",
    "leaf_method='gradient'",
    "temperature=0",
    "temperature=*.1",
    "temperature=*10",
    "temperature=*100",
    "shrink_rate=0",
    "shrink_rate=1e-3",
    "l2_regularization=1",
    "l2_regularization=10",
    "random_strength=.5",
    "init='zero'",
    "max_depth=5",
    "max_depth=6",
    "max_depth=7",
    "max_depth=8",
    "max_depth=9",
    "max_bins=64",
    "max_bins=254",
    "structure_sample=.5",
)


def parse_move(text):
    """Settings of a move, name -> value or, where it is relative to auto, a function of that."""
    settings = {}
    for single in text.split(","):
        name, _, value = single.partition("=")
        if value.startswith("*"):
            factor = float(value[1:])
            settings[name] = lambda auto, factor=factor: factor * auto
        else:
            settings[name] = ast.literal_eval(value)
    return settings


def fit(protocol, parts, settings):
    """The model, its test loss and the seconds of its fit."""
    train, valid, test = parts
    model, cost = timed(lambda: sglb.fit(train, valid, protocol, **settings))
    result = scores(protocol.task, test.y, sglb.predict(model, test.X), test.weight)
    return model, result["loss"], cost.seconds


def compare(table, seed, max_rows, max_rounds, moves):
    """Change of the loss in percent and time relative to auto, a pair for each move."""
    parts = parts_of(table, seed, max_rows)
    protocol = Protocol(table.task, seed, len(os.sched_getaffinity(0)), max_rounds)
    auto, loss, seconds = fit(protocol, parts, {})
    result = []
    for move in moves:
        settings = {
            name: value(getattr(auto, f"{name}_")) if callable(value) else value
            for name, value in move.items()
        }
        _, moved, time = fit(protocol, parts, settings)
        result.append((100.0 * (moved / loss - 1.0), time / seconds))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("moves", nargs="*", metavar="MOVE", help="settings=values; without it, a list of moves")
    add("--tables", default=TABLES, help="with commas between")
    add("--splits", type=int, default=2, help="of each table (2)")
    add("--max-rows", type=int, default=20_000, help="cut tables to so many rows (20,000)")
    add("--max-rounds", type=int, default=MAX_ROUNDS, help=f"({MAX_ROUNDS:,})")
    options = parser.parse_args()
    names, texts = options.tables.split(","), options.moves or list(MOVES)
    try:
        moves = [parse_move(text) for text in texts]
    except (ValueError, SyntaxError) as error:
        parser.error(f"a move is name=value, a value a number, 'text' or *number: {error}")
    warm_up(sglb, len(os.sched_getaffinity(0)))
    result = np.empty((len(moves), len(names), 2))
    for position, name in enumerate(names):
        print(f"{name} ({position + 1} of {len(names)})", file=sys.stderr)
        table = load_table(name)
        seeds = range(FIRST_SPLIT, FIRST_SPLIT + options.splits)
        runs = [compare(table, seed, options.max_rows, options.max_rounds, moves) for seed in seeds]
        result[:, position] = np.mean(runs, axis=0)
    print("| moved | " + " | ".join([*names, "mean", "time"]) + " |")
    print("|---|" + "--:|" * (len(names) + 2))
    for text, (changes, times) in zip(texts, result.transpose(0, 2, 1), strict=True):
        cells = [f"{change:+.2f}" for change in (*changes, changes.mean())]
        print(f"| {text} | " + " | ".join([*cells, f"{times.mean():.2f}"]) + " |")


if __name__ == "__main__":
    main()
