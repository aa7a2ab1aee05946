"""What becomes of damaged model files: sglb, LightGBM, XGBoost and CatBoost side by side.

    python -m benchmarks.model_files             # 250 mutations of a model of each library
    python -m benchmarks.model_files --mutations 50 --only sglb xgboost

Every library trains a classifier with numbers, missing values and categories on the same rows, and
saves it in each of its formats. A mutation changes one to four bytes, cuts the file or repeats a
piece of it. A process of its own loads the file and predicts; it has ten seconds and 4 GB.

    rejected    the library raises an exception, at loading or at predicting
    the same    it predicts what the undamaged model predicts
    silent      it predicts something else, without a word
    crash       the process dies by a signal
    hang        it is still running after ten seconds

A changed byte that is not read, in a name or a comment say, is rightly harmless to a library
without a checksum.
"""

import argparse
import importlib
import os
import resource
import signal
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROWS, COLUMNS, STEPS, SECONDS, MEMORY = 400, 5, 20, 10, 4 << 30
VERDICTS = ("rejected", "the same", "silent", "crash", "hang")


def rows():
    """Five columns, one of them of small whole numbers, with missing values, and two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    X[:, 1] = rng.integers(0, 6, ROWS)
    y = (X[:, 0] + np.sin(X[:, 1]) + rng.normal(size=ROWS) > 0).astype(int)
    X[::7, 2] = np.nan
    return X, y


class Sglb:
    suffixes = (".sglb",)

    def save(self, X, y, path):
        from sglb import SGLBClassifier

        SGLBClassifier(n_estimators=STEPS, random_state=0, categorical_features=[1]).fit(X, y).save(
            path
        )

    def predict(self, X, path):
        from sglb import load

        return load(path).predict_proba(X)[:, 1]


class LightGBM:
    suffixes = (".txt",)

    def save(self, X, y, path):
        import lightgbm

        data = lightgbm.Dataset(X, y, categorical_feature=[1])
        settings = {"objective": "binary", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
        lightgbm.train(settings, data, STEPS).save_model(path)

    def predict(self, X, path):
        import lightgbm

        return lightgbm.Booster(model_file=path).predict(X)


class XGBoost:
    suffixes = (".ubj", ".json")

    def _data(self, X, y=None):
        import xgboost

        kinds = ["q", "c", "q", "q", "q"]
        return xgboost.DMatrix(X, y, feature_types=kinds, enable_categorical=True)

    def save(self, X, y, path):
        import xgboost

        settings = {"objective": "binary:logistic", "max_depth": 6, "nthread": 1}
        xgboost.train(settings, self._data(X, y), STEPS).save_model(path)

    def predict(self, X, path):
        import xgboost

        return xgboost.Booster(model_file=path).predict(self._data(X))


class CatBoost:
    suffixes = (".cbm", ".json")

    def _table(self, X):
        return [[*row[:1], int(row[1]), *row[2:]] for row in X.tolist()]

    def save(self, X, y, path):
        from catboost import CatBoostClassifier

        settings = {"iterations": STEPS, "verbose": False, "thread_count": 1, "random_seed": 0}
        model = CatBoostClassifier(cat_features=[1], allow_writing_files=False, **settings)
        model.fit(self._table(X), y).save_model(path, format=Path(path).suffix[1:])

    def predict(self, X, path):
        from catboost import CatBoostClassifier

        model = CatBoostClassifier()
        model.load_model(path, format=Path(path).suffix[1:])
        return model.predict_proba(self._table(X))[:, 1]


LIBRARIES = {"sglb": Sglb(), "lightgbm": LightGBM(), "xgboost": XGBoost(), "catboost": CatBoost()}


def mutated(data, rng):
    """The file with one to four bytes changed, cut, or with a piece repeated."""
    match rng.integers(4):
        case 0 | 1:
            changed = bytearray(data)
            for position in rng.integers(0, len(data), rng.integers(1, 5)):
                changed[position] ^= rng.integers(1, 256)
            return bytes(changed)
        case 2:
            return data[: rng.integers(len(data))]
        case _:
            begin, length = rng.integers(len(data)), rng.integers(1, 200)
            return data[: begin + length] + data[begin:]


def in_child(call):
    """The exit status of a call in a child of this process: a number, minus that of a signal."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = VERDICTS.index("rejected")
    try:
        status = call()
    except BaseException:  # the status tells
        pass
    finally:
        os._exit(status)


def judge(library, suffix, n_mutations, folder):
    """Verdicts of the mutations of one format, and the size of its file.

    The library is imported here and used in children only: its threads would not survive a fork.
    """
    model, (X, y) = LIBRARIES[library], rows()
    original, mutation = f"{folder}/original{suffix}", f"{folder}/mutation{suffix}"
    expected = f"{folder}/expected.npy"

    def train():
        model.save(X, y, original)
        return 0

    def record():
        np.save(expected, model.predict(X, original))
        return 0

    def use():
        signal.alarm(SECONDS)  # ends this process
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        same = np.array_equal(model.predict(X, mutation), np.load(expected), equal_nan=True)
        return VERDICTS.index("the same" if same else "silent")

    if in_child(train) or in_child(record):
        raise RuntimeError(f"{library} cannot load its own model")
    data = Path(original).read_bytes()
    rng, counts = np.random.default_rng(1), Counter()
    for _ in range(n_mutations):
        Path(mutation).write_bytes(mutated(data, rng))
        status = in_child(use)
        if status < 0:
            counts["hang" if -status == signal.SIGALRM else "crash"] += 1
        else:
            counts[VERDICTS[status]] += 1
    return counts, len(data)


def silence():
    """Send what libraries print, and their last words, nowhere; return where rows are printed."""
    printed = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return printed


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="benchmarks.model_files")
    parser.add_argument("--mutations", type=int, default=250)
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    options = parser.parse_args(arguments)
    # What children would import each for itself.
    for module in (*options.only, "sglb.estimators", "pandas", "pyarrow", "scipy.sparse"):
        importlib.import_module(module)
    table = silence()
    print("| library | format | bytes |", " | ".join(VERDICTS), "|", file=table)
    print("|---|---|--:|" + "--:|" * len(VERDICTS), file=table, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for library in options.only:
            for suffix in LIBRARIES[library].suffixes:
                counts, size = judge(library, suffix, options.mutations, folder)
                cells = " | ".join(str(counts[name]) for name in VERDICTS)
                name = f"{library} {version(library)}"
                print(f"| {name} | {suffix[1:]} | {size:,} | {cells} |", file=table, flush=True)


if __name__ == "__main__":
    main()
