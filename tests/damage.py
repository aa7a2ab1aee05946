"""Damaged and forged model files, and the question asked of each: rejected, or a model like any?

    python tests/damage.py               # every flip, with the old digest and with one that fits,
    python tests/damage.py numbers_2     # and every cut of all kept models or of one; forgeries
    python tests/damage.py --every 16    # flips with a digest that fits at every 16th byte only

`verdict` raises whatever must not happen: another exception than `ModelFormatError`, predictions
that are not finite, a model that is saved as other bytes than it was read from.
"""

import argparse
import hashlib
import json
import resource
import signal
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np

import golden
from sglb import ModelFormatError, archive
from sglb.archive import container
from sglb.checkpoints.snapshot import Snapshot
from sglb.estimators import estimator_of

DIGEST = 32
# What a byte is changed by: its lowest bit, its highest, two in the middle, all.
MASKS = (0x01, 0x80, 0x14, 0xFF)
# What a file of some kilobytes may not need beside the interpreter.
MOST_MEMORY = 64 << 20


def signed(data):
    """The file with a digest that fits its content."""
    return data[:-DIGEST] + hashlib.sha256(data[:-DIGEST]).digest()


def flips(data, positions=None):
    """The file with a byte changed, at every position or at some, in four ways each."""
    for position in range(len(data)) if positions is None else positions:
        for mask in MASKS:
            changed = bytearray(data)
            changed[position] ^= mask
            yield bytes(changed)


def signed_flips(data, positions=None):
    """The same with a digest that fits; the digest itself is not changed."""
    yield from map(
        signed, flips(data, range(len(data) - DIGEST) if positions is None else positions)
    )


def cuts(data, lengths=None):
    """The first bytes of the file."""
    for length in range(len(data)) if lengths is None else lengths:
        yield data[:length]


DAMAGES = {"flips": flips, "signed flips": signed_flips, "cuts": cuts}


@cache
def rows_for(mask):
    """Rows of labels and numbers for columns that are categorical or not."""
    rows = np.empty((8, len(mask)), dtype=object if any(mask) else float)
    for column, is_categorical in enumerate(mask):
        labels, numbers = golden.table()[:8, 2 + column % 2], golden.numbers()[:8, column % 2]
        rows[:, column] = labels if is_categorical else numbers
    return rows


def judge_model(data):
    """Load a model or a posterior and use it."""
    model, draws = archive.loads_with_draws(data)
    loaded = estimator_of(model, draws)
    estimator = loaded if draws is None else loaded.model
    rows = rows_for(tuple(estimator.is_categorical_.tolist()))
    parts = [estimator.predict_raw(rows), estimator.feature_importances_]
    parts += [] if draws is None else [loaded.predict_raw(rows)]
    parts += [] if estimator.loss_ is None else [loaded.predict(rows)]
    for part in parts:
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            raise AssertionError("a prediction is not finite")
    # A sampler of the user's own comes back as None, which is written otherwise.
    if archive.dumps(estimator._model, draws) != data and b'{\\"lost\\":' not in data:
        raise AssertionError("saved again it is another file")


def judge_checkpoint(data):
    """Load a checkpoint and repeat its steps."""
    snapshot = Snapshot.from_bytes(data)
    for trace in snapshot.traces.values():
        codes = np.zeros((trace.n_features, 3), dtype=np.uint8)
        if not np.isfinite(trace.replay(codes)).all():
            raise AssertionError("a state is not finite")
    if snapshot.to_bytes() != data and b'{\\"lost\\":' not in data:
        raise AssertionError("saved again it is another file")


# What reads a kept file of this suffix and uses what it has read: another kind of file is one line.
JUDGES = {".sglb": judge_model, ".checkpoint": judge_checkpoint}


def verdict(data, kind=".sglb"):
    """Tell whether a file is "rejected" or "accepted"; raise if something else happens."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            JUDGES[kind](data)
        except ModelFormatError as error:
            return "rejected" if error.field and error.reason else "unexplained"
    return "accepted"


class Dice:
    """Choices made by bytes, so that a fuzzer can learn them; 0 once there are no more."""

    def __init__(self, data):
        self.data, self.position = data, 0

    def number(self, end):
        """A number from 0 to end - 1."""
        n_bytes = max(1, ((end - 1).bit_length() + 7) // 8)
        piece = self.data[self.position : self.position + n_bytes]
        self.position += n_bytes
        return int.from_bytes(piece, "little") % end

    def pick(self, choices):
        """An element of a sequence."""
        return choices[self.number(len(choices))]


LADDER = {
    "learning_rate": 0.1, "temperature": 1.0, "shrink_rate": 0.01, "hot_temperature": 9.0,
    "n_replicas": 4, "swap_every": 10, "subsample": 1.0, "structure_noise": 1.0,
}  # fmt: skip
ODD_VALUES = [
    None, True, False, 0, 1, -1, 2, 3.5, 1e308, -1e308, 5e-324, 1 << 31, 1 << 62, (1 << 64) - 1,
    10**400, float("nan"), float("inf"), "", "x", "auto", "langevin", "plain", "full",
    "laplace", "paper", "student", "gamma", "squared", "logistic", "softmax", "quantile", "ranker",
    [], [[]], ["a"], [0, 1], [True], {}, {"a": 1}, {"number": "nan"}, {"number": "1.5"},
    {"lost": "x"}, {"list": [1, {"lost": "x"}]}, {"pairs": [[1]]}, {"pairs": [[1, 2], [True, 3]]},
    {"sampler": "plain", "arguments": {"learning_rate": 0.1}},
    {"sampler": "plain", "arguments": {"learning_rate": "a"}},
    {"sampler": "langevin", "arguments": {}},
    {"loss": {"name": "huber", "parameters": {"delta": -1}}},
    {"name": "huber", "parameters": {"delta": 1e308}},
    {"name": "quantile", "parameters": {"level": 0.5}},
    {"name": "softmax", "parameters": {"n_classes": 1 << 40}},
    {"dtype": "str", "labels": ["a", "b"]}, {"dtype": "bool", "labels": [False, True]},
    {"dtype": "float64", "labels": [0.5, 1.5, 2.5]}, ["\ud800", "b"], "\ud800", "9" * 5000,
    "linear(1, 0.1)", "jump(0, 1, 25)", "cosine(1, 0, 9) every 50", f"linear(0, 1{' ' * 5000}",
    {"sampler": "tempering", "arguments": LADDER}, "tempering",
    {"sampler": "tempering", "arguments": LADDER | {"n_replicas": 10**9}},
]  # fmt: skip
ODD_NUMBERS = [np.nan, np.inf, -np.inf, 0, -1, 1, 1e308, -1e308, 5e-324, 255, 1 << 31, 1 << 62]
ODD_SHAPES = [(0,), (1,), (0, 0), (0, 1 << 30), (1 << 30, 0), (0, 0, 1 << 30), (1, 1), ()]


def change_document(document, dice):
    """Walk down to some value of the document, and replace, remove or repeat it."""
    node = document
    while True:
        keys = sorted(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            return
        key = dice.pick(keys)
        if isinstance(node[key], dict | list) and node[key] and dice.number(4):
            node = node[key]
            continue
        match dice.number(8):
            case 0:
                del node[key]
            case 1 if isinstance(node, dict):
                node[f"{key}2"] = deepcopy(node[key])
            case 1:
                node.append(deepcopy(node[key]))
            case 2 if isinstance(node[key], int | float):
                node[key] = node[key] * 2 + 1
            case _:
                node[key] = deepcopy(dice.pick(ODD_VALUES))
        return


def change_arrays(arrays, dice):
    """Change a value, the type or the shape of some array, or which arrays there are."""
    name = dice.pick(sorted(arrays))
    array = arrays[name] = np.array(arrays[name])
    match dice.number(12):
        case 0:
            del arrays[name]
        case 1:
            arrays[f"{name}2"] = array
        case 2:
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(dice.pick(list(container.TYPES.values())))
        case 3:
            arrays[name] = np.zeros(dice.pick(ODD_SHAPES), array.dtype)
        case 4:
            arrays[name] = array[: max(0, len(array) - 1 - dice.number(3))] if array.ndim else array
        case 5:
            arrays[name] = np.concatenate([array, array]) if array.ndim else array
        case 6:
            other = dice.pick(sorted(arrays))
            arrays[name], arrays[other] = arrays[other], array
        case kind if array.size and kind < 10:
            with np.errstate(all="ignore"):
                number = np.array(dice.pick(ODD_NUMBERS)).astype(array.dtype)
            array.reshape(-1)[dice.number(array.size)] = number
        case _ if array.size:
            bits = array.reshape(-1).view(np.uint8)
            bits[dice.number(bits.size)] ^= 1 << dice.number(8)


def changed(data, key, dice):
    """A file, or a part of one, with changes of its content."""
    document, arrays = container.unpack(key, data)
    for _ in range(1 + (dice.number(4) == 3)):
        parts = [
            n for n, a in arrays.items() if a.dtype == np.uint8 and a.size > 200 and a.ndim == 1
        ]
        if parts and dice.number(2):
            name = dice.pick(parts)
            content = arrays[name].tobytes()
            inner = "sglb" if content[8:].startswith(archive.BEGINNING[8:]) else "part"
            if inner == "sglb" and not dice.number(8):  # a file with parts in place of a part
                part = dice.pick([seeds()[other] for other in sorted(seeds())])
            else:
                part = changed(content, inner, dice)
                part = signed(part) if inner == "sglb" else part
            arrays[name] = np.frombuffer(part, dtype=np.uint8)
        elif dice.number(2):
            change_document(document, dice)
        elif arrays:
            change_arrays(arrays, dice)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    arrays = {name: arrays[name] for name in container._order(arrays)}
    return container._header(key, text, arrays) + b"".join(a.tobytes() for a in arrays.values())


@cache
def seeds():
    """The kept files, by name."""
    paths = [path for path in sorted(golden.FOLDER.iterdir()) if path.suffix in JUDGES]
    return {path.name: path.read_bytes() for path in paths}


def forgery(choices):
    """A file with a digest that fits and another meaning, and its kind, as some bytes choose."""
    dice = Dice(choices)
    name = dice.pick(sorted(seeds()))
    data = seeds()[name]
    if dice.number(4):
        try:
            data = signed(changed(data, "sglb", dice))
        except (ModelFormatError, UnicodeEncodeError):
            return data, Path(name).suffix  # a change that no file can hold
    else:  # of the header as text
        data = bytearray(data)
        length = int.from_bytes(data[:8], "little") + 8
        data[dice.number(length)] = dice.number(256)
        data = signed(bytes(data))
    return data, Path(name).suffix


def count(files, limit=10):
    """Verdicts of (file, kind), and the files of which there was none."""
    verdicts, failures = Counter(), []
    for data, kind in files:
        signal.alarm(limit)
        try:
            verdicts[verdict(data, kind)] += 1
        except Exception as error:
            verdicts[type(error).__name__] += 1
            failures.append((data, f"{type(error).__name__}: {error}"[:200]))
        finally:
            signal.alarm(0)
    return verdicts, failures


def peak(data, kind=".sglb"):
    """Bytes of memory that reading a file takes, beside the bytes of the file itself."""
    tracemalloc.start()
    try:
        if kind == ".sglb":
            archive.loads_with_draws(data)
        else:
            Snapshot.from_bytes(data)
    except ModelFormatError:
        pass
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most


def limit_memory(n_bytes=MOST_MEMORY):
    """Let this process have no more than so much memory beyond what it has, or any if None."""
    most = resource.RLIM_INFINITY
    if n_bytes is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + n_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def _report(name, damage, files):
    start = time.perf_counter()
    verdicts, failures = count(files)
    seconds = time.perf_counter() - start
    print(f"{name:20} {damage:13} {json.dumps(dict(verdicts))} {seconds:.0f} s", flush=True)
    for text, n in Counter(text for _, text in failures).most_common(20):
        print(f"    {n} x {text}", flush=True)
    return verdicts


def main(arguments):
    """Do all of it, and print counts."""
    parser = argparse.ArgumentParser(prog="damage")
    parser.add_argument("names", nargs="*", help="of kept files, or 'forgeries'")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--forgeries", type=int, default=20_000)
    options = parser.parse_args(arguments)
    names = options.names
    for name, data in seeds().items():
        verdict(data, Path(name).suffix)  # imports what there is to import
    limit_memory()
    total = Counter()
    for name, data in seeds().items():
        if not names or Path(name).stem in names:
            for damage, make in DAMAGES.items():
                is_signed = damage == "signed flips"
                end = len(data) - DIGEST if is_signed else len(data)
                files = make(data, range(0, end, options.every if is_signed else 1))
                kind = Path(name).suffix
                total += _report(name, damage, ((file, kind) for file in files))
    if not names or "forgeries" in names:
        chance = np.random.default_rng(0)
        files = (forgery(chance.bytes(64)) for _ in range(options.forgeries))
        total += _report("all", "forgeries", files)
    print(dict(total))


if __name__ == "__main__":
    main(sys.argv[1:])
