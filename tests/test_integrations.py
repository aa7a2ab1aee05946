"""Integrations: what Optuna and MLflow are told, and what is rejected before the first step."""

import contextlib
import re
import sys
import types
from pathlib import Path

import numpy as np
import optuna
import pytest

from sglb import BaseCallback, SGLBClassifier, SGLBRegressor, StepInfo, Stop
from sglb.integrations import MLflowLogging, OptunaPruning

rng = np.random.default_rng(0)
X, X_VAL = rng.normal(size=(200, 3)), rng.normal(size=(100, 3))
Y, Y_VAL = (x[:, 0] + 0.3 * rng.normal(size=len(x)) for x in (X, X_VAL))
FAST = {"n_estimators": 30, "max_depth": 2, "random_state": 0, "n_jobs": 1}
SETS = {"eval_set": [(X_VAL, Y_VAL)]}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


class WorseThan(optuna.pruners.BasePruner):
    """Prunes a trial whose newest score is above a level."""

    def __init__(self, level):
        self.level = level

    def prune(self, study, trial):
        return trial.intermediate_values[trial.last_step] > self.level


def study(direction="minimize", pruner=None):
    return optuna.create_study(direction=direction, pruner=pruner or optuna.pruners.NopPruner())


def test_a_trial_receives_the_watched_score_of_each_step():
    models = []

    def objective(trial):
        model = SGLBRegressor(**FAST)
        models.append(model.fit(X, Y, **SETS, callbacks=OptunaPruning(trial)))
        return model.best_score_

    complete = study()
    complete.optimize(objective, n_trials=1)
    reported = complete.trials[0].intermediate_values
    assert reported == dict(enumerate(models[0].evals_result_["validation_0"]["loss"], start=1))


def test_a_trial_receives_the_chosen_score_every_n_steps():
    trial = study("maximize").ask()
    sets = [(X_VAL, Y_VAL > 0), (X, Y > 0)]
    model = SGLBClassifier(**FAST).fit(
        X,
        Y > 0,
        eval_set=sets,
        eval_metric=["logloss", "auc"],
        callbacks=OptunaPruning(trial, metric="auc", set="validation_0", every=10),
    )
    scores = model.evals_result_["validation_0"]["auc"]
    reported = trial.study.trials[0].intermediate_values
    assert reported == {step: scores[step - 1] for step in (10, 20, 30)}


def test_a_trial_that_falls_behind_is_pruned_at_once():
    full = SGLBRegressor(**FAST).fit(X, Y, **SETS).evals_result_["validation_0"]["loss"]
    pruned_study = study(pruner=WorseThan(full[0]))

    def objective(trial):
        worse = Y + trial.suggest_float("shift", 5.0, 5.0)
        SGLBRegressor(**FAST).fit(X, worse, **SETS, callbacks=OptunaPruning(trial))

    pruned_study.optimize(objective, n_trials=1)
    assert pruned_study.trials[0].state == optuna.trial.TrialState.PRUNED
    assert list(pruned_study.trials[0].intermediate_values) == [1]
    with pytest.raises(optuna.TrialPruned, match="pruned after step 1: loss on validation_0 is"):
        objective(pruned_study.ask())


def test_a_trial_of_fixed_parameters_is_never_pruned():
    trial = optuna.trial.FixedTrial({})
    assert SGLBRegressor(**FAST).fit(X, Y, **SETS, callbacks=OptunaPruning(trial)).n_iter_ == 30


@pytest.mark.parametrize(
    ("direction", "metric", "message"),
    [
        ("minimize", "r2", r"study is to minimize, but better values of r2 are greater: use "
         r"optuna.create_study\(direction='maximize'\)"),
        ("maximize", "mae", r"study is to maximize, but better values of mae are smaller"),
    ],
)  # fmt: skip
def test_a_study_that_goes_the_other_way_is_rejected(direction, metric, message):
    pruning = OptunaPruning(study(direction).ask())
    with pytest.raises(ValueError, match=message):
        SGLBRegressor(**FAST).fit(X, Y, **SETS, eval_metric=metric, callbacks=pruning)


def test_a_study_of_several_objectives_is_rejected():
    several = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(ValueError, match="needs a study with one objective, and this one has 2"):
        SGLBRegressor(**FAST).fit(X, Y, **SETS, callbacks=OptunaPruning(several.ask()))


def test_pruning_rejects_an_unknown_set_or_metric_by_name():
    trial = study().ask()
    for arguments, message in (
        ({"set": "test"}, "set='test' is not an evaluation set; allowed: validation_0"),
        ({"metric": "auc"}, "metric='auc' is not computed; eval_metric has: loss"),
    ):
        with pytest.raises(ValueError, match=message):
            SGLBRegressor(**FAST).fit(X, Y, **SETS, callbacks=OptunaPruning(trial, **arguments))
    with pytest.raises(ValueError, match="OptunaPruning needs an evaluation set"):
        SGLBRegressor(**FAST).fit(X, Y, callbacks=OptunaPruning(trial))


class StandIn(types.ModuleType):
    """As much of MLflow as is used, with its rules for names and parameters."""

    def __init__(self):
        super().__init__("mlflow")
        self.params, self.metrics, self.tags = {}, {}, {}

    def log_params(self, params):
        for name, value in params.items():
            if self.params.setdefault(name, str(value)) != str(value):
                raise ValueError(f"{name} was logged with another value")

    def log_metrics(self, metrics, step):
        for name, value in metrics.items():
            assert re.fullmatch(r"[/\w.\- ]+", name)
            self.metrics.setdefault(name, []).append((step, value))

    def set_tag(self, name, value):
        self.tags[name] = value

    def start_run(self):
        return contextlib.nullcontext()

    def logged(self):
        return self.params, self.metrics, self.tags


class Real:
    """MLflow itself, with a store in a folder; what it logged is read back from there."""

    def __init__(self, folder):
        self.mlflow = pytest.importorskip("mlflow")
        self.mlflow.set_tracking_uri(f"file://{folder}")
        self.run = self.mlflow.start_run()

    def logged(self):
        self.mlflow.end_run()
        client, run = self.mlflow.MlflowClient(), self.run.info.run_id
        data = client.get_run(run).data
        metrics = {
            name: [(metric.step, metric.value) for metric in client.get_metric_history(run, name)]
            for name in data.metrics
        }
        tags = {name: tag for name, tag in data.tags.items() if not name.startswith("mlflow.")}
        return data.params, metrics, tags


@pytest.fixture(params=["stand-in", "real"])
def mlflow(request, monkeypatch, tmp_path):
    if request.param == "stand-in":
        module = StandIn()
        monkeypatch.setitem(sys.modules, "mlflow", module)
        yield module
    else:
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        real = Real(tmp_path / "store")
        yield real
        real.mlflow.end_run()


@pytest.mark.filterwarnings("ignore::FutureWarning")  # MLflow's, of its own store
def test_parameters_and_scores_are_logged(mlflow):
    model = SGLBRegressor(**FAST | {"n_estimators": 25}).fit(
        X, Y, **SETS, eval_metric=["mae", "rmse"], callbacks=MLflowLogging()
    )
    params, metrics, tags = mlflow.logged()
    assert params["n_estimators"] == "25"
    assert float(params["learning_rate"]) == model.learning_rate_
    assert params["loss"] == "squared"
    assert set(metrics) == {"training-loss", "validation_0-mae", "validation_0-rmse"}
    scores = model.evals_result_["validation_0"]["mae"]
    expected = [(step, scores[step - 1]) for step in (1, 10, 20, 25)]
    assert metrics["validation_0-mae"] == expected
    assert tags == {}


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_prefix_keeps_several_fits_of_one_run_apart_and_reasons_are_tags(mlflow):
    class Enough(BaseCallback):
        def step(self, info):
            return Stop("enough") if info.step == 4 else None

    for fold, rate in enumerate((0.1, 0.2)):
        SGLBRegressor(**FAST, learning_rate=rate).fit(
            X, Y, callbacks=[Enough(), MLflowLogging(every=2, prefix=f"fold_{fold}/")]
        )
    params, metrics, tags = mlflow.logged()
    assert (params["fold_0/learning_rate"], params["fold_1/learning_rate"]) == ("0.1", "0.2")
    assert [step for step, _ in metrics["fold_1/training-loss"]] == [1, 2, 4]
    assert tags == {"fold_0/stopped": "enough", "fold_1/stopped": "enough"}


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_metric_without_a_name_that_mlflow_takes_is_logged_all_the_same(mlflow):
    SGLBRegressor(**FAST).fit(
        X, Y, **SETS, eval_metric=lambda y, prediction: 1.0, callbacks=MLflowLogging(every=30)
    )
    assert mlflow.logged()[1]["validation_0-_lambda_"] == [(1, 1.0), (30, 1.0)]


@pytest.mark.parametrize(
    ("package", "make"),
    [("optuna", lambda: OptunaPruning(None)), ("mlflow", lambda: MLflowLogging())],
)
def test_without_the_other_library_an_integration_says_how_to_install_it(
    monkeypatch, package, make
):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'{package}: pip install "sglb\[integrations\]"'):
        make()


@pytest.mark.parametrize("every", [0, -1])
def test_every_must_be_a_positive_whole_number(monkeypatch, every):
    monkeypatch.setitem(sys.modules, "mlflow", StandIn())
    for make in (lambda: OptunaPruning(None, every=every), lambda: MLflowLogging(every=every)):
        with pytest.raises(ValueError, match=f"every={every} is not allowed"):
            make()


PAGE = Path(__file__).parents[1] / "docs" / "callbacks.md"


def test_what_the_page_on_callbacks_shows_runs_as_it_stands(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = StandIn()
    monkeypatch.setitem(sys.modules, "mlflow", module)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 5
    names = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert "the log loss is below 0.2" in capsys.readouterr().err
    assert len(names["study"].trials) == 3
    assert names["more"].n_iter_ == 150
    assert (tmp_path / "run.checkpoint").exists()
    assert "validation_0-loss" in module.metrics


def test_the_page_on_callbacks_lists_what_a_callback_sees():
    table = PAGE.read_text().split("`sglb.StepInfo`, holds:")[1].split("\n\n")[1]
    listed = set(re.findall(r"`(\w+)(?:\[\w+\])*`(?=[^|]*\|)", table.replace("| |", "")))
    fields = {name for name in dir(StepInfo) if not name.startswith("_")}
    assert fields <= listed
