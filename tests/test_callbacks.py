"""Callbacks: what they see, when they stop the chain, what is rejected."""

import numpy as np
import pytest

from sglb import BaseCallback, EarlyStopping, SGLBClassifier, SGLBRegressor, StepInfo, Stop
from sglb.callbacks import Evaluation, EvaluationSet, History
from sglb.losses.shapes import user_shape
from sglb.metrics import METRICS
from sglb.target import Target

rng = np.random.default_rng(1)
X, X_VAL = rng.normal(size=(300, 4)), rng.normal(size=(200, 4))


def respond(x, noise):
    return x[:, 0] * x[:, 1] + noise * rng.normal(size=len(x))


Y, Y_VAL = respond(X, 1.0), respond(X_VAL, 1.0)
FAST = {"n_estimators": 60, "max_depth": 3, "learning_rate": 0.3, "random_state": 0, "n_jobs": 1}


class Witness(BaseCallback):
    """Writes down what it sees."""

    def __init__(self):
        self.calls, self.losses = [], []

    def start(self, info):
        self.calls.append("start")
        assert info.step == 0
        assert info.structure is None

    def step(self, info):
        self.calls.append(info.step)
        self.losses.append(
            info.loss.loss(info.rows.data.target.values, user_shape(info.raw)).mean()
        )
        assert len(info.trace) == info.step
        assert info.values.shape == (info.structure.n_leaves, 1)

    def finish(self, info):
        self.calls.append("finish")
        self.raw = info.raw.copy()


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
        def step(self, info):
            return Stop("five are enough") if info.step == 5 else None

    witness = Witness()
    model = SGLBRegressor(**FAST).fit(X, Y, callbacks=[AtFive(), witness])
    assert model.n_iter_ == 5
    assert witness.calls[-2:] == [5, "finish"]


def test_what_is_not_a_callback_is_rejected_before_a_row_is_read():
    with pytest.raises(TypeError, match=r"not a callback.*BaseCallback"):
        SGLBRegressor(**FAST).fit(None, None, callbacks=[print])


def test_a_class_in_the_place_of_a_callback_is_rejected_by_name():
    with pytest.raises(TypeError, match=r"Witness is a class; pass Witness\(\.\.\.\)"):
        SGLBRegressor(**FAST).fit(None, None, callbacks=[Witness])


def test_none_means_no_callbacks_and_one_callback_needs_no_list():
    witness = Witness()
    alone = SGLBRegressor(**FAST).fit(X, Y, callbacks=None)
    watched = SGLBRegressor(**FAST).fit(X, Y, callbacks=witness)
    assert len(witness.losses) == 60
    np.testing.assert_array_equal(alone.predict(X_VAL), watched.predict(X_VAL))


@pytest.mark.parametrize("answer", [True, "enough", Stop])
def test_an_answer_that_is_neither_none_nor_a_stop_is_an_error(answer):
    class Wrong(BaseCallback):
        def step(self, info):
            return answer

    with pytest.raises(TypeError, match=r"return None to go on or sglb\.Stop\(reason\)"):
        SGLBRegressor(**FAST).fit(X, Y, callbacks=Wrong())


class Copies(BaseCallback):
    """Keeps what each call is told."""

    def __init__(self):
        self.started, self.infos, self.training_losses, self.finished = None, [], [], None
        self.scores = []  # as they were when the callback was called

    def start(self, info):
        self.started = info

    def step(self, info):
        self.infos.append(info)
        self.scores.append({name: dict(scores) for name, scores in info.scores.items()})
        self.training_losses.append(info.training_loss)

    def finish(self, info):
        self.finished = info


def test_a_callback_sees_the_scores_of_each_step():
    seen = Copies()
    sets = [(X, Y), (X_VAL, Y_VAL)]
    model = SGLBRegressor(**FAST).fit(
        X, Y, eval_set=sets, eval_metric=["mae", "rmse"], callbacks=[seen]
    )
    for name in ("validation_0", "validation_1"):
        for metric in ("mae", "rmse"):
            message = [scores[name][metric] for scores in seen.scores]
            assert message == model.evals_result_[name][metric]
    assert [info.watched_score for info in seen.infos] == model.evals_result_["validation_1"]["mae"]
    assert seen.started.scores == {}
    assert seen.started.watched_score is None
    assert seen.started.evaluation.sets == ("validation_0", "validation_1")
    assert [metric.name for metric in seen.started.evaluation.metrics] == ["mae", "rmse"]
    assert {info.n_steps for info in (seen.started, *seen.infos)} == {60}
    assert seen.finished is seen.infos[-1]


def test_without_evaluation_sets_there_are_no_scores():
    seen = Copies()
    SGLBRegressor(**FAST).fit(X, Y, callbacks=[seen])
    assert all(info.scores == {} and info.watched_score is None for info in seen.infos)
    assert seen.started.evaluation is None


def test_the_training_loss_is_the_weighted_mean_over_the_training_rows():
    seen, weight = Copies(), np.arange(300) % 3 + 1.0
    model = SGLBRegressor(**FAST).fit(X, Y, weight, callbacks=[seen])
    expected = [np.average(0.5 * (Y - p) ** 2, weights=weight) for p in model.staged_predict(X)]
    np.testing.assert_allclose(seen.training_losses, expected, rtol=1e-9)


def test_the_training_loss_is_computed_once_a_step_and_only_when_it_is_read():
    class Counting:
        calls = 0

        def loss(self, y, raw):
            Counting.calls += 1
            return 0.5 * (raw - y) ** 2

        def gradient(self, y, raw):
            return raw - y

    def count(*callbacks):
        Counting.calls = 0
        SGLBRegressor(**FAST, loss=Counting()).fit(X, Y, callbacks=callbacks)
        return Counting.calls

    assert count(Copies(), Copies()) == count() + 60


def test_callbacks_are_told_what_auto_stands_for():
    seen = Copies()
    auto = FAST | {"learning_rate": "auto", "max_depth": "auto"}
    model = SGLBClassifier(**auto).fit(X, Y > 0, callbacks=[seen])
    for info in (seen.started, *seen.infos):
        assert info.parameters["learning_rate"] == model.learning_rate_
        assert info.parameters["temperature"] == model.temperature_
        assert info.parameters["loss"] == "logistic"
        assert info.parameters["n_estimators"] == 60
        assert "auto" not in {info.parameters[name] for name in ("max_depth", "max_bins")}


def test_callbacks_hear_at_the_end_why_the_chain_stopped():
    class After(BaseCallback):
        def __init__(self, last):
            self.last = last

        def step(self, info):
            return Stop(f"{self.last} are enough") if info.step == self.last else None

    seen = Copies()
    SGLBRegressor(**FAST).fit(X, Y, callbacks=[After(7), After(5), seen])
    assert seen.finished.stop == Stop("5 are enough")
    assert seen.finished.step == 5
    SGLBRegressor(**FAST).fit(X, Y, callbacks=[seen])
    assert seen.finished.stop is None


@pytest.mark.parametrize("fails", [False, True])
def test_callbacks_with_a_close_are_closed_however_the_chain_ends(fails):
    class Closing(BaseCallback):
        closed = 0

        def close(self):
            self.closed += 1

    class Broken(BaseCallback):
        def step(self, info):
            raise RuntimeError("broken")

    closing = Closing()
    if fails:
        with pytest.raises(RuntimeError, match="broken"):
            SGLBRegressor(**FAST).fit(X, Y, callbacks=[closing, Broken()])
    else:
        SGLBRegressor(**FAST).fit(X, Y, callbacks=[closing])
    assert closing.closed == 1


@pytest.mark.parametrize("sets", [None, []])
def test_a_metric_without_rows_to_score_is_rejected_before_a_row_is_read(sets):
    with pytest.raises(ValueError, match=r"eval_metric='mae' needs an evaluation set.*eval_set"):
        SGLBRegressor(**FAST).fit(None, None, eval_set=sets, eval_metric="mae")
    with pytest.raises(ValueError, match=r"early_stopping_rounds=5 needs an evaluation set"):
        SGLBRegressor(**FAST, early_stopping_rounds=5).fit(None, None, eval_set=sets)


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
    nothing = EvaluationSet("rows", np.zeros((1, 0), np.uint8), Target.of([]))
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


def info_after(step, **rest):
    """What callbacks see of a chain of 100 steps that has no rows."""
    return StepInfo(step, 100, None, None, None, None, None, **rest)


def test_early_stopping_waits_for_the_given_rounds_and_says_why():
    evaluation = Evaluation(("rows",), (METRICS["rmse"],))
    stopping = EarlyStopping(rounds=3)
    stopping.start(info_after(0, evaluation=evaluation))
    answers = []
    for step, value in enumerate([5.0, 4.0, 4.0, 4.5, 3.9, 4.0, 4.0, 4.0], start=1):
        info = info_after(step, scores={"rows": {"rmse": value}}, evaluation=evaluation)
        answers.append(stopping.step(info))
    assert answers[:7] == [None] * 7
    assert answers[7] == Stop("rmse on rows has not improved for 3 steps; best 3.9 after 5 steps")


def test_early_stopping_is_also_a_callback_that_only_ends_the_chain():
    watched = {"eval_set": [(X_VAL, Y_VAL)], "eval_metric": "rmse"}
    model = SGLBRegressor(**FAST).fit(X, Y, callbacks=EarlyStopping(10), **watched)
    assert model.n_iter_ == model.best_iteration_ + 10 < 60
    with pytest.raises(ValueError, match="EarlyStopping needs an evaluation set"):
        SGLBRegressor(**FAST).fit(X, Y, callbacks=EarlyStopping(10))


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
