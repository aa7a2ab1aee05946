"""The evidence behind "auto": test loss when one setting at a time is moved.

    python -m benchmarks.defaults [--quick]

Each table is split 65/15/20 at random; the chain stops early on the 15 % and is scored on the 20 %.
Printed is the test loss relative to the automatic setting, in percent (below 0 is better than
auto), the mean over tables of one task. Categorical columns are left out. Needs SGLB_DATA.
"""

import argparse

import numpy as np

from sglb import SGLBClassifier, SGLBRegressor
from sglb.datasets import load_table

TABLES = {
    "binary": ["credit_default", "electricity", "higgs_26k", "adult"],
    "multiclass": ["poker_100k", "kdd09_all3_20k230f"],
    "regression": ["california_housing", "uci_kin8nm", "uci_power", "diamonds", "uci_protein"],
}
MOST_ROWS = 20_000
SPLITS = 1

MOVES = {
    "auto": {},
    "learning_rate / 2": {"learning_rate": lambda auto: auto.learning_rate_ / 2},
    "learning_rate * 2": {"learning_rate": lambda auto: min(auto.learning_rate_ * 2, 1.0)},
    "gradient leaves": {"leaf_method": "gradient"},
    "temperature 0": {"temperature": 0.0},
    "temperature * 10": {"temperature": lambda auto: auto.temperature_ * 10},
    "temperature * 100": {"temperature": lambda auto: auto.temperature_ * 100},
    "shrink_rate 0": {"shrink_rate": 0.0},
    "shrink_rate 1e-3": {"shrink_rate": 1e-3},
    "shrink_rate 1e-2": {"shrink_rate": 1e-2},
    "l2 0": {"l2_regularization": 0.0},
    "l2 1": {"l2_regularization": 1.0},
    "l2 10": {"l2_regularization": 10.0},
    "random_strength 0.5": {"random_strength": 0.5},
    "init zero": {"init": "zero"},
    "depth - 2": {"max_depth": lambda auto: auto.ensemble_.max_depth - 2},
    "depth + 1": {"max_depth": lambda auto: auto.ensemble_.max_depth + 1},
    "64 bins": {"max_bins": 64},
    "254 bins": {"max_bins": 254},
    "half of the rows for the structure": {"structure_sample": 0.5},
}


def numeric_rows(name, split):
    table = load_table(name)
    X = table.X.to_pandas().select_dtypes("number").to_numpy(dtype=np.float32)
    order = np.random.default_rng(split).permutation(len(X))[:MOST_ROWS]
    y = np.asarray(table.y)[order]
    ends = np.cumsum([int(0.65 * len(order)), int(0.15 * len(order))])
    return list(zip(np.split(X[order], ends), np.split(y, ends), strict=True))


def test_loss(model, X, y):
    target = y if hasattr(model, "predict_proba") is False else np.searchsorted(model.classes_, y)
    return float(model.loss_.loss(target.astype(float), model.predict_raw(X)).mean())


def fit(task, settings, parts):
    kind = SGLBRegressor if task == "regression" else SGLBClassifier
    model = kind(n_estimators=1000, early_stopping_rounds=50, random_state=0, **settings)
    (X, y), valid, test = parts
    if task == "regression":  # squared loss in units of the target's spread
        y, valid, test = ((part - y.mean()) / y.std() for part in (y, valid[1], test[1]))
        valid, test = (parts[1][0], valid), (parts[2][0], test)
    model.fit(X, y, eval_set=[valid])
    return model, test_loss(model, *test)


def moved(settings, auto):
    """The settings of a move; some are relative to what "auto" chose."""
    return {key: value(auto) if callable(value) else value for key, value in settings.items()}


def changes(task, parts):
    """Test loss of each move relative to auto, in percent."""
    auto, base = fit(task, {}, parts)
    losses = {
        move: fit(task, moved(settings, auto), parts)[1]
        for move, settings in MOVES.items()
        if settings
    }
    return {"auto": 0.0} | {move: 100.0 * (loss / base - 1.0) for move, loss in losses.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one table a task")
    quick = parser.parse_args().quick
    found = {}
    for task, names in TABLES.items():
        runs = [
            changes(task, numeric_rows(name, split))
            for name in (names[:1] if quick else names)
            for split in range(SPLITS)
        ]
        found[task] = {move: np.mean([run[move] for run in runs]) for move in MOVES}
    print("| moved | " + " | ".join(TABLES) + " |\n|---|" + "---|" * len(TABLES))
    for move in MOVES:
        print(f"| {move} | " + " | ".join(f"{found[task][move]:+.2f}" for task in TABLES) + " |")


if __name__ == "__main__":
    main()
