"""Several chains side by side: callbacks, errors, Ctrl-C and threads."""

import _thread
import threading
import time

import pytest

from sglb import BaseCallback, SGLBRegressor, Stop
from sglb.chain import Chain
from sglb.chains import Cancelled, Follow, Pace
from sglb.noise import chain_seed
from sglb.settings import draw_seed
from test_chains import HELD_OUT, LATE, NEW, NUMBERS, X, assert_same_trace, regressor


class Recorder(BaseCallback):
    """Remembers what it sees, and may stop or fail."""

    def __init__(self, stop_at=None, fail_at=None):
        self.stop_at, self.fail_at = stop_at, fail_at
        self.steps, self.threads, self.closed, self.end = [], set(), 0, None

    def start(self, info):
        self.parameters = info.parameters

    def step(self, info):
        self.steps.append(info.step)
        self.threads.add(threading.get_ident())
        if info.step == self.fail_at:
            raise KeyError("lost")
        return Stop("enough") if info.step == self.stop_at else None

    def finish(self, info):
        self.end = info.step, info.stop

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_callbacks_see_the_first_chain_in_the_thread_of_the_caller(n_jobs):
    seen = Recorder()
    model = regressor(n_chains=3, n_jobs=n_jobs).fit(X, NUMBERS, callbacks=seen)
    assert seen.steps == list(range(1, 31))
    assert seen.threads == {threading.get_ident()}
    assert seen.end == (30, None)
    assert seen.closed == 1
    assert seen.parameters["n_chains"] == 3
    assert_same_trace(model.trace_, regressor().fit(X, NUMBERS).trace_)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("step", [1, 11, 30])
def test_a_callback_that_stops_ends_all_chains_at_the_same_step(n_jobs, step):
    seen = Recorder(stop_at=step)
    several = regressor(n_chains=4, n_jobs=n_jobs).fit(X, NUMBERS, callbacks=[seen, Recorder()])
    assert [len(trace) for trace in several.traces_] == [step] * 4
    assert seen.end == (step, Stop("enough"))
    whole = regressor(n_chains=4).fit(X, NUMBERS)
    for trace, longer in zip(several.traces_, whole.traces_, strict=True):
        assert_same_trace(trace, longer.at(step))


def test_early_stopping_of_the_first_chain_does_not_end_the_others():
    arguments = {"eval_set": (NEW, HELD_OUT), "callbacks": Recorder()}
    model = SGLBRegressor(**LATE, n_chains=3, n_jobs=2).fit(X, NUMBERS, **arguments)
    del arguments["callbacks"]
    alone = SGLBRegressor(**LATE, n_chains=3, n_jobs=1).fit(X, NUMBERS, **arguments)
    assert model.best_iterations_ == alone.best_iterations_
    assert model.chain_evals_results_ == alone.chain_evals_results_


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_an_error_in_a_callback_comes_back_and_leaves_no_thread(n_jobs):
    seen, before = Recorder(fail_at=5), threading.active_count()
    with pytest.raises(KeyError, match="lost"):
        regressor(n_chains=4, n_jobs=n_jobs).fit(X, NUMBERS, callbacks=seen)
    assert threading.active_count() == before
    assert seen.closed == 1


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_in_another_chain_comes_back_and_ends_the_first(n_jobs, monkeypatch):
    step, seed = Chain.step, chain_seed(draw_seed(0), 1)

    def failing(chain):
        if chain.seed == seed and len(chain.trace) == 5:
            raise ArithmeticError("chain 1")
        return step(chain)

    monkeypatch.setattr(Chain, "step", failing)
    before = threading.active_count()
    with pytest.raises(ArithmeticError, match="chain 1"):
        regressor(n_chains=3, n_jobs=n_jobs, n_estimators=100_000 if n_jobs > 1 else 10).fit(
            X, NUMBERS
        )
    assert threading.active_count() == before


def test_ctrl_c_ends_all_chains():
    before = threading.active_count()
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        regressor(n_chains=3, n_jobs=3, n_estimators=1_000_000).fit(X, NUMBERS)
    timer.join()
    assert threading.active_count() == before


def test_chains_wait_for_the_first_where_it_may_end_them():
    pace = Pace(led=True)
    assert pace.allows(1)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(pace.allows(2)))
    thread.start()
    time.sleep(0.05)
    assert not answers
    pace.advance_to(2)
    thread.join(10)
    assert answers == [True]
    pace.end_at(2)
    assert not pace.allows(3)
    pace.cancel()
    with pytest.raises(Cancelled):
        pace.allows(1)
    with pytest.raises(Cancelled):
        Follow(pace).step(type("Info", (), {"step": 1, "n_steps": 2}))


def test_a_loss_that_sees_all_rows_is_never_called_in_two_threads():
    threads = set()

    class Centred:
        def loss(self, y, raw):
            threads.add(threading.get_ident())
            return (raw - y) ** 2

        def gradient(self, y, raw):
            threads.add(threading.get_ident())
            return 2 * (raw - y)

    regressor(n_chains=3, n_jobs=3, loss=Centred()).fit(X, NUMBERS, eval_set=(NEW, HELD_OUT))
    assert threads == {threading.get_ident()}


def test_progress_is_that_of_the_first_chain(capsys):
    regressor(n_chains=3, n_jobs=2, verbose=10).fit(X, NUMBERS)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "sglb: 3 chains, 2 at a time; progress is that of the first"
    assert [line.split()[2] for line in lines[1:-1]] == ["1/30", "10/30", "20/30", "30/30"]
    assert lines[-1] == "sglb: 3 chains of 30, 30, 30 steps"
