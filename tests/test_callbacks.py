"""Guests of the loop: what they see, when they stop it, what they print."""

import builtins
import sys

import numpy as np
import pytest

from sglb import BaseCallback, SGLBClassifier, SGLBRegressor, Stop
from sglb.callbacks import EarlyStopping, EvaluationSet, History, Moment, Progress, user_shape
from sglb.losses import get_loss
from sglb.metrics import METRICS

rng = np.random.default_rng(1)
X, X_VAL = rng.normal(size=(300, 4)), rng.normal(size=(200, 4))


def respond(x, noise):
    return x[:, 0] * x[:, 1] + noise * rng.normal(size=len(x))


Y, Y_VAL = respond(X, 1.0), respond(X_VAL, 1.0)
FAST = {"n_estimators": 60, "max_depth": 3, "learning_rate": 0.3, "random_state": 0, "n_jobs": 1}


class Witness(BaseCallback):
    """Writes down what it sees."""

    def __init__(self):
        self.calls, self.losses, self.moments = [], [], []

    def start(self, moment):
        self.calls.append("start")
        assert moment.step == 0
        assert moment.structure is None

    def step(self, moment):
        self.calls.append(moment.step)
        self.losses.append(moment.loss.loss(moment.training_set.y, user_shape(moment.raw)).mean())
        assert len(moment.ensemble) == moment.step
        assert moment.values.shape == (moment.structure.n_leaves, 1)

    def finish(self, moment):
        self.calls.append("finish")
        self.raw = moment.raw.copy()


def test_a_callback_sees_every_step_and_the_true_scores():
    witness = Witness()
    model = SGLBRegressor(**FAST).fit(X, Y, callbacks=iter([witness]))  # read once
    assert witness.calls == ["start", *range(1, 61), "finish"]
    np.testing.assert_allclose(witness.raw[0], model.predict(X), atol=1e-6)
    expected = [0.5 * np.mean((Y - p) ** 2) for p in model.staged_predict(X)]
    np.testing.assert_allclose(witness.losses, expected, rtol=1e-9)


def test_callbacks_do_not_change_the_model():
    alone = SGLBRegressor(**FAST).fit(X, Y)
    watched = SGLBRegressor(**FAST).fit(
        X, Y, callbacks=[Witness()], eval_set=[(X_VAL, Y_VAL)], eval_metric=["rmse", "mae"]
    )
    np.testing.assert_array_equal(alone.predict(X_VAL), watched.predict(X_VAL))


def test_a_callback_that_returns_stop_ends_the_chain_there():
    class AtFive(BaseCallback):
        def step(self, moment):
            return Stop("five are enough") if moment.step == 5 else None

    witness = Witness()
    model = SGLBRegressor(**FAST).fit(X, Y, callbacks=[AtFive(), witness])
    assert model.n_iter_ == 5
    assert witness.calls[-2:] == [5, "finish"]


def test_what_is_not_a_callback_is_refused_before_a_row_is_read():
    with pytest.raises(TypeError, match=r"not a callback.*BaseCallback"):
        SGLBRegressor(**FAST).fit(None, None, callbacks=[print])


def test_history_is_the_staged_metric_of_each_set():
    sets = [(X, Y), (X_VAL, Y_VAL, np.arange(200.0))]
    model = SGLBRegressor(**FAST).fit(X, Y, eval_set=sets, eval_metric=["rmse", "mae"])
    assert list(model.evals_result_) == ["validation_0", "validation_1"]
    staged = list(model.staged_predict(X_VAL))
    rmse = [np.sqrt(np.average((Y_VAL - p) ** 2, weights=np.arange(200.0))) for p in staged]
    np.testing.assert_allclose(model.evals_result_["validation_1"]["rmse"], rmse, rtol=1e-9)
    mae = [np.abs(Y - p).mean() for p in model.staged_predict(X)]
    np.testing.assert_allclose(model.evals_result_["validation_0"]["mae"], mae, rtol=1e-9)


def test_history_knows_the_best_iterate_by_the_first_metric_on_the_last_set():
    sets = [(X_VAL, Y_VAL), (X, Y)]
    model = SGLBRegressor(**FAST).fit(X, Y, eval_set=sets, eval_metric=["mae", "rmse"])
    watched = model.evals_result_["validation_1"]["mae"]
    assert model.best_iteration_ == np.argmin(watched) + 1
    assert model.best_score_ == min(watched)
    assert model.n_iter_ == 60


def small_history(values, metric="rmse"):
    nothing = EvaluationSet("rows", np.zeros((1, 0), np.uint8), np.zeros(0), None)
    history = History([nothing], [METRICS[metric]])
    history.result["rows"][metric] = list(values)
    return history


@pytest.mark.parametrize(
    ("metric", "values", "best"),
    [
        ("rmse", [3.0, 1.0, 2.0, 1.0], (2, 1.0)),
        ("auc", [0.5, 0.9, 0.9, 0.7], (2, 0.9)),
        ("rmse", [np.nan, 3.0, np.nan, 4.0], (2, 3.0)),
    ],
)
def test_the_best_iterate_is_the_first_of_equals_and_never_nan(metric, values, best):
    assert small_history(values, metric).best() == best


def test_early_stopping_waits_for_the_given_rounds_and_says_why():
    values = [5.0, 4.0, 4.0, 4.5, 3.9, 4.0, 4.0, 4.0]
    history = small_history([])
    stopping = EarlyStopping(history, rounds=3)
    empty = (None, None, None, 1.0, np.zeros((1, 0)), get_loss("squared"), None)
    stopping.start(Moment(0, *empty))
    answers = []
    for step, value in enumerate(values, start=1):
        history.result["rows"]["rmse"].append(value)
        answers.append(stopping.step(Moment(step, *empty)))
    assert answers[:7] == [None] * 7
    assert answers[7] == Stop("rmse on rows has not improved for 3 steps; best 3.9 after 5 steps")


@pytest.mark.parametrize("sampler", ["plain", "langevin"])
def test_early_stopping_returns_the_true_iterate(sampler):
    noisy = {} if sampler == "plain" else {"temperature": 1e-2, "shrink_rate": 0.1}
    parameters = FAST | {"sampler": sampler} | noisy
    stopped = SGLBRegressor(**parameters, early_stopping_rounds=10).fit(
        X, Y, eval_set=[(X_VAL, Y_VAL)]
    )
    assert stopped.n_iter_ == stopped.best_iteration_ < 60
    assert len(stopped.evals_result_["validation_0"]["loss"]) == stopped.n_iter_ + 10
    full = SGLBRegressor(**parameters).fit(X, Y)
    staged = list(full.staged_predict(X_VAL))
    np.testing.assert_allclose(stopped.predict(X_VAL), staged[stopped.n_iter_ - 1], atol=1e-6)
    shorter = SGLBRegressor(**parameters | {"n_estimators": stopped.n_iter_}).fit(X, Y)
    np.testing.assert_array_equal(stopped.predict(X_VAL), shorter.predict(X_VAL))
    assert stopped.best_score_ == pytest.approx(
        0.5 * np.mean((Y_VAL - stopped.predict(X_VAL)) ** 2)
    )


def test_silence_is_the_default(capfd):
    SGLBRegressor(**FAST).fit(X, Y, eval_set=[(X_VAL, Y_VAL)])
    SGLBClassifier(**FAST, verbose=0).fit(X, Y > 0)
    assert capfd.readouterr() == ("", "")


def test_progress_shows_steps_loss_and_metric_on_stderr(capfd):
    SGLBRegressor(**FAST, verbose=1).fit(X, Y, eval_set=[(X_VAL, Y_VAL)], eval_metric="mae")
    out, err = capfd.readouterr()
    assert out == ""
    assert "60/60" in err
    assert "loss" in err
    assert "validation_0 mae" in err


@pytest.fixture
def no_rich(monkeypatch):
    real = builtins.__import__

    def without_rich(name, *rest):
        if name.startswith("rich"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_rich)


@pytest.mark.usefixtures("no_rich")
def test_progress_without_rich_is_plain_lines_once_a_second_at_most(capfd):
    SGLBRegressor(**FAST, verbose=1).fit(X, Y)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) <= 2
    assert lines[-1].startswith("sglb: step 60/60  loss 0.")
    assert lines[-1].endswith("0 s left")


def test_a_broken_chain_gives_the_terminal_back(capfd):
    class Broken(BaseCallback):
        def step(self, moment):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        SGLBRegressor(**FAST, verbose=1).fit(X, Y, callbacks=[Broken()])
    from rich.progress import Progress as Bar

    bar = Bar()
    bar.start()  # rich refuses a second live display while one is open
    bar.stop()
    assert "Traceback" not in capfd.readouterr().err


def test_progress_can_be_closed_twice():
    progress = Progress(3)
    progress.close()
    progress.close()
    assert sys.stderr is not None
