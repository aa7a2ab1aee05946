"""Tasks of a joblib context: chains, draws and models out of fold are the same bytes there."""

import os
import pickle
import threading
from contextlib import nullcontext
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest

from own_losses import Squared
from sglb import BaseCallback, Checkpoint, ParquetTable, SGLBRegressor, archive, tasks
from sglb.errors import NonFiniteGradient

pytestmark = pytest.mark.filterwarnings("ignore:A worker stopped:UserWarning")

rng = np.random.default_rng(5)
X = rng.normal(size=(300, 4))
X[::9, 1] = np.nan
Y = X[:, 0] * X[:, 2] + 0.5 * rng.normal(size=300)
NEW, LATER = X[:80] + 0.1, Y[:80]
FAST = {"n_estimators": 25, "max_depth": 3, "random_state": 0}


def content(model):
    return archive.dumps(model._fitted())


def regressor(**parameters):
    return SGLBRegressor(**(FAST | parameters))


def draws(**plan):
    model = regressor().fit(X, Y)
    return model.posterior(X, Y, temperature=0.3, **plan).predict_raw(NEW).tobytes()


CASES = {
    "chains": lambda: content(regressor(n_chains=3).fit(X, Y)),
    "chains of an own loss": lambda: content(regressor(n_chains=2, loss=Squared()).fit(X, Y)),
    "chains with early stopping": lambda: content(
        regressor(n_estimators=200, n_chains=3, early_stopping_rounds=9).fit(
            X, Y, eval_set=(NEW, LATER)
        )
    ),
    "error bars": lambda: content(
        SGLBRegressor(random_state=0, max_depth=3, uncertainty=True, n_chains=2).fit(X, Y)
    ),
    "draws": lambda: draws(n_draws=100, n_steps=30),
    "long chains": lambda: draws(n_draws=40, n_steps=60, kind="paper"),
    "models out of fold": lambda: (
        regressor().cross_conformalize(X, Y).predict_interval(NEW).bounds.tobytes()
    ),
}


@pytest.fixture
def sent(monkeypatch):
    """How many tasks have been sent."""
    numbers, original = [], tasks.send

    def send(listed):
        numbers.append(len(listed))
        return original(listed)

    monkeypatch.setattr(tasks, "send", send)
    return numbers


def in_processes():
    return joblib.parallel_config(backend="loky", n_jobs=2)


@pytest.mark.parametrize("name", CASES)
def test_what_is_made_in_other_processes_is_the_same_bytes(name, sent):
    expected = CASES[name]()
    assert not sent
    with in_processes():
        assert CASES[name]() == expected
    assert min(sent) > 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # by Python 3.12 and later
def test_a_backend_that_returns_all_results_together_gives_them_too(sent):
    expected = CASES["draws"]()
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
        assert CASES["draws"]() == expected
    assert sent


@pytest.mark.filterwarnings("ignore")  # of ports and open sockets, by Dask
def test_what_is_made_on_a_cluster_is_the_same_bytes(sent):
    distributed = pytest.importorskip("distributed")
    expected = CASES["error bars"]()
    cluster = {"n_workers": 1, "threads_per_worker": 3, "processes": False}
    with (
        distributed.Client(**cluster, dashboard_address=None),
        joblib.parallel_config(backend="dask"),
    ):
        assert CASES["error bars"]() == expected
    assert min(sent) > 1


@pytest.mark.parametrize(
    "context",
    [
        nullcontext(),
        joblib.parallel_config(backend="threading", n_jobs=3),
        joblib.parallel_config(backend="loky", n_jobs=1),
    ],
)
def test_without_other_processes_nothing_is_sent(context, sent):
    with context:
        assert CASES["chains"]() == CASES["chains"]()
    assert not sent


class Last(BaseCallback):
    def start(self, info):
        self.step_numbers = []

    def step(self, info):
        self.step_numbers.append(info.step)


def test_chains_that_are_looked_at_stay_here(sent, tmp_path):
    watch = Last()
    with in_processes():
        regressor(n_chains=2).fit(X, Y, callbacks=[watch])
        regressor(n_chains=2).fit(X, Y, callbacks=[Checkpoint(tmp_path / "c", every=5)])
        first = regressor(n_chains=2, warm_start=True)
        with joblib.parallel_config(backend="loky", n_jobs=1):
            first.fit(X, Y)
        first.set_params(n_estimators=30).fit(X, Y)
    assert watch.step_numbers == list(range(1, 26))
    assert not sent


def test_chains_of_a_table_that_memory_may_not_hold_stay_here(sent, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    frame.to_parquet(tmp_path / "table.parquet")
    table = ParquetTable(tmp_path / "table.parquet")
    with in_processes():
        model = regressor(n_chains=2).fit(table.drop("y"), table["y"])
    assert content(model) == content(regressor(n_chains=2).fit(frame[list("abcd")], Y))
    assert not sent


# --- how tasks fail ---


class Broken(Squared):
    """A loss whose gradient is not finite after the first step."""

    def gradient(self, y, raw):
        gradient = super().gradient(y, raw)
        return gradient * np.nan if np.ptp(raw) > 0.0 else gradient


def test_the_error_of_a_task_is_that_of_its_chain(sent):
    with in_processes(), pytest.raises(NonFiniteGradient) as caught:
        regressor(n_chains=2, loss=Broken()).fit(X, Y, check_gradient=False)
    with pytest.raises(NonFiniteGradient) as here:
        regressor(n_chains=2, loss=Broken()).fit(X, Y, check_gradient=False)
    assert str(caught.value) == str(here.value)
    assert "In a task of a joblib context" in caught.value.__notes__[0]
    assert sent == [2]


def test_an_error_that_cannot_be_sent_is_told():
    plain, odd = ValueError("x"), ValueError("well")
    odd.lock = threading.Lock()
    odd.add_note("where it was")
    assert tasks.portable(plain) is plain
    assert repr(tasks.portable(odd)) == repr(RuntimeError("ValueError('well')\nwhere it was"))


class Locked(Squared):
    def __init__(self):
        self.lock = threading.Lock()


def test_a_loss_that_cannot_be_sent_is_named():
    model = regressor(n_chains=2, loss=Locked())
    with in_processes(), pytest.raises(TypeError, match=r"cannot be sent.*lock.*Make your loss"):
        model.fit(X, Y)


# A task of builtins alone, so that new processes start at once: it ends its process the first time.
DIE_ONCE = """
import os
try:
    os.mkdir(MARKER)
except FileExistsError:
    pass
else:
    os._exit(3)
"""


def test_tasks_that_are_lost_with_their_process_are_sent_again(tmp_path):
    once = partial(exec, DIE_ONCE, {"MARKER": str(tmp_path / "died")})
    with in_processes():
        results = tasks.send([os.getpid, once, os.getpid])
    assert (tmp_path / "died").exists()
    assert os.getpid() not in results
    assert results[1] is None


def test_a_task_that_is_lost_each_time_is_an_error(monkeypatch):
    monkeypatch.setattr(tasks, "ATTEMPTS", 1)
    lost = partial(os._exit, 3)
    with in_processes(), pytest.raises(tasks.LostTaskError, match=r"[12] of 2 tasks were lost 1"):
        tasks.send([lost, os.getpid])


def test_a_result_that_cannot_be_sent_is_an_error_at_once(tmp_path):
    counting = partial(exec, COUNT, {"FOLDER": str(tmp_path)})
    unsendable = partial(eval, "lambda: 3", {})
    with in_processes(), pytest.raises((AttributeError, pickle.PicklingError)):
        tasks.send([counting, unsendable])
    assert len(list(tmp_path.iterdir())) <= 1


# Leaves a file each time that it runs.
COUNT = """
import os, tempfile
tempfile.mkstemp(dir=FOLDER)
"""


def test_an_error_that_comes_again_is_not_tried_again(monkeypatch):
    attempts = []

    class Without:
        def __init__(self, **options): ...

        def __call__(self, jobs):
            attempts.append(1)
            raise ModuleNotFoundError("No module named 'sglb'")

    monkeypatch.setattr(tasks, "Parallel", Without)
    with in_processes(), pytest.raises(ModuleNotFoundError):
        tasks.send([os.getpid, os.getpid])
    assert attempts == [1]
