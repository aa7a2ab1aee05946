"""What tests/test_mpi.py has three ranks do: mpirun -n 3 python tests/mpi_ranks.py."""

import os
import signal
import time

import numpy as np
import pandas as pd
from mpi4py import MPI

import sglb.mpi
from own_losses import Squared
from sglb import archive

rank, n_ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
FAST = {"n_estimators": 12, "max_depth": 3, "random_state": 0}
rng = np.random.default_rng(0)
FRAME = pd.DataFrame(rng.normal(size=(900, 3)), columns=list("abc"))
FRAME.loc[::7, "b"] = np.nan
FRAME["city"] = pd.Categorical(rng.choice(["Oslo", "Rome", "Lima"], 900))
Y = (FRAME["a"] * FRAME["c"]).to_numpy() + rng.normal(size=900)
LABELS = pd.Series(np.where(Y > 0, "up", "down"))
WEIGHT = rng.uniform(0.5, 2.0, 900)
QUERY = np.repeat(np.arange(90), 10)
# One rank has no rows.
HERE = [slice(0, 340), slice(340, 340), slice(340, 900)][rank] if n_ranks == 3 else slice(900)


def same(model, *rows, **by_name):
    """Whether rows of three ranks and all rows in this process give the same model."""
    part = {name: values[HERE] for name, values in by_name.items()}
    together = sglb.mpi.fit(model, *(values[HERE] for values in rows), **part)
    contents = archive.dumps(together._fitted())
    alone = type(model)(**model.get_params()).fit(*rows, **by_name)
    return contents == archive.dumps(alone._fitted())


def message(X, y=Y[HERE], *weight, model=None, **options):
    """The error of a fit, on every rank."""
    try:
        sglb.mpi.fit(model or sglb.SGLBRegressor(**FAST), X, y, *weight, **options)
    except (KeyboardInterrupt, RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


class OddError(ValueError):
    """An error that cannot be unpickled."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Failing(Squared):
    """Cannot be trained with on rank 1."""

    row_wise = True

    def gradient(self, y, raw):
        if rank == n_ranks - 1:
            raise OddError("this", "that")
        return raw - y


class Interrupted(sglb.BaseCallback):
    """Sends Ctrl-C to a rank in the middle of a fit."""

    def __init__(self, process):
        self.process = process

    def step(self, info):
        if info.step == 2:
            os.kill(self.process, signal.SIGINT)
            time.sleep(0.2)


FITS = {
    "numbers": (sglb.SGLBRegressor(**FAST, n_chains=2), FRAME, Y),
    "weights": (sglb.SGLBRegressor(**FAST, uncertainty=True), FRAME, Y, WEIGHT),
    "labels": (sglb.SGLBClassifier(**FAST), FRAME, LABELS),
}
report = {name: same(*fit) for name, fit in FITS.items()}
ranker = sglb.SGLBRanker(**FAST)
report["queries"] = same(ranker, FRAME[["a", "b"]], (Y > 0).astype(int), group=QUERY)
broken = FRAME[["a", "b"]].to_numpy(copy=True)
broken[800, 1] = np.inf
report["infinity"] = message(broken[HERE])
report["no rows"] = message(FRAME[HERE] if rank else None)
if n_ranks > 1:
    here = FRAME[["a", "b"]][HERE]
    report["some weights"] = message(here, Y[HERE], None if rank == 1 else WEIGHT[HERE])
    report["other weights"] = message(here, Y[HERE], None if rank == 0 else WEIGHT[HERE])
    shifted = Y[:350] if rank == 0 else Y[350:] if rank == n_ranks - 1 else Y[:0]
    report["lengths"] = message(here, shifted)
    report["columns"] = message(here[["b", "a"]] if rank == n_ranks - 1 else here)
    failing = sglb.SGLBRegressor(**FAST, loss=Failing())
    report["odd error"] = message(here, model=failing, check_gradient=False)
    broken = sglb.SGLBRegressor(**FAST, loss=type("Local", (Squared,), {})())
    report["unpicklable"] = message(here, model=broken)
    processes = MPI.COMM_WORLD.allgather(os.getpid())
    for number in (0, n_ranks - 1):
        callbacks = [Interrupted(processes[number])]
        report[f"interrupt {number}"] = message(here, callbacks=callbacks)
    report["afterwards"] = message(here)
for line in MPI.COMM_WORLD.gather(str(report)) or ():
    print(line)
