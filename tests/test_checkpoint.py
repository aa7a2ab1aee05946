"""A fit that was interrupted becomes the model that it would have become, byte for byte."""

import functools
import inspect
import signal
import warnings

import numpy as np
import pytest

import damage
import interrupted
import sglb
from interrupted import (
    FITS,
    HELD_OUT,
    NEW,
    NUMBERS,
    SCORED,
    SMALL,
    THREE,
    TWO,
    WEIGHT,
    X,
    content,
    fitted,
    killed_after,
    killed_fits,
)
from sglb import (
    BaseCallback,
    ChangedChain,
    Checkpoint,
    CheckpointError,
    EarlyStopping,
    KeepOnInterrupt,
    ModelFormatError,
    SGLBClassifier,
    SGLBRegressor,
    Stop,
    TimeLimit,
    archive,
)
from sglb.checkpoints.fingerprint import IDLE
from sglb.checkpoints.snapshot import Snapshot
from sglb.samplers import Langevin


@pytest.mark.parametrize("name", sorted(FITS.keys() - {"searched length"}))
def test_a_fit_that_is_killed_twice_gives_the_bytes_of_one_that_is_not(name, tmp_path):
    whole = fitted(name)
    model, n_kills = killed_fits(name, tmp_path / "c", kills=[7, 40])
    assert n_kills >= 1
    assert content(model) == content(whole)
    assert model.evals_result_ == whole.evals_result_
    assert model.chain_evals_results_ == whole.chain_evals_results_


@functools.cache
def searched():
    """The bytes of a fit whose length is cross-validated."""
    return content(fitted("searched length"))


@pytest.mark.parametrize("kills", [[10, 20, 300], [700, 710]])
def test_a_cross_validation_of_the_length_goes_on_where_it_was_killed(kills, tmp_path):
    model, n_kills = killed_fits("searched length", tmp_path / "c", kills, every=100)
    assert n_kills == len(kills)
    assert content(model) == searched()


def test_steps_of_a_checkpoint_are_not_searched_again(tmp_path, monkeypatch):
    with killed_after(20):
        fitted("numbers", callbacks=Checkpoint(tmp_path / "c", 1))
    searches, search = [], sglb.structure.GreedySearch.search
    monkeypatch.setattr(
        sglb.structure.GreedySearch,
        "search",
        lambda rule, sample: searches.append(1) or search(rule, sample),
    )
    assert fitted("numbers", resume_from=tmp_path / "c").n_iter_ == 24
    assert len(searches) == 5  # the last of 20 once more, and four new ones


class Stopping(BaseCallback):
    """Stops five steps after the largest leaf value so far: a rule with a memory."""

    def __init__(self):
        self.best, self.since, self.steps = 0.0, 0, []

    def start(self, info):
        self.replayed = info.n_replayed

    def step(self, info):
        self.steps.append(info.step)
        size = float(np.abs(info.values).max())
        self.best, self.since = (size, 0) if size > self.best else (self.best, self.since + 1)
        return Stop("shrinking") if self.since == 5 else None


def test_callbacks_see_the_repeated_steps_and_stop_where_they_would_have(tmp_path):
    rule = {"sampler": "plain", "learning_rate": 0.1, "n_estimators": 50}
    model = SGLBRegressor(**SMALL | rule)
    whole = content(model.fit(X, NUMBERS, callbacks=Stopping()))
    assert model.n_iter_ < 50
    at = model.n_iter_ - 2
    with killed_after(at):
        model.fit(X, NUMBERS, callbacks=[Stopping(), Checkpoint(tmp_path / "c", 1)])
    resumed = Stopping()
    model.fit(X, NUMBERS, callbacks=resumed, resume_from=tmp_path / "c")
    assert content(model) == whole
    assert resumed.steps == list(range(1, model.n_iter_ + 1))
    assert resumed.replayed == at


def test_a_checkpoint_leaves_the_model_as_it_is_and_needs_no_end(tmp_path):
    path = tmp_path / "c"
    assert content(fitted("searched length", callbacks=Checkpoint(path))) == searched()
    finished = Snapshot.from_bytes(path.read_bytes())
    assert finished.is_finished
    assert content(fitted("searched length", resume_from=path)) == searched()
    fitted("numbers", callbacks=Checkpoint(path))  # a finished fit may be replaced


def test_chance_is_that_of_the_first_run(tmp_path):
    free = SGLBRegressor(**SMALL | {"random_state": None})
    with killed_after(10):
        free.fit(X, NUMBERS, callbacks=Checkpoint(tmp_path / "c", 1))
    first = content(free.fit(X, NUMBERS, resume_from=tmp_path / "c"))
    assert content(free.fit(X, NUMBERS, resume_from=tmp_path / "c")) == first
    assert content(free.fit(X, NUMBERS)) != first


def test_ctrl_c_writes_the_last_steps(tmp_path):
    class Interrupt(BaseCallback):
        def step(self, info):
            if info.step == 13:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted("numbers", callbacks=[Checkpoint(tmp_path / "c", seconds=1e6), Interrupt()])
    assert Snapshot.from_bytes((tmp_path / "c").read_bytes()).n_steps == 13


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A checkpoint of a fit with sets, weights and classes, killed after 10 steps."""
    path = tmp_path_factory.mktemp("started") / "c"
    with killed_after(10):
        start(callbacks=Checkpoint(path, 1))
    return path


FRAME = {"a": X[:, 0], "b": X[:, 1]}


def start(x=None, y=THREE, weight=WEIGHT, new=NEW, labels=THREE[:80], **more):
    model = SGLBClassifier(**SMALL | {"n_chains": more.pop("n_chains", 1)})
    arguments = {"eval_set": [(new, labels)], "eval_metric": "logloss"} | more
    return model.fit(X if x is None else x, y, weight, **arguments)


def moved(values, at=3):
    other = np.array(values)
    other[at] = other[at + 1] if other[at] != other[at + 1] else other[at + 2]
    return other


COLUMN = X.copy()
COLUMN[:, 3] = COLUMN[::-1, 3]
ROW = NEW.copy()
ROW[5] = 9.0


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"y": moved(THREE)}, ["y differs"]),
        ({"y": np.char.upper(THREE), "labels": np.char.upper(THREE[:80])}, ["classes differs"]),
        ({"weight": WEIGHT * np.linspace(1, 2, 160)}, ["sample_weight differs"]),
        ({"x": COLUMN}, ["X differs"]),
        ({"x": X + 1e-3}, ["thresholds differs"]),
        ({"x": X[:150], "y": THREE[:150], "weight": WEIGHT[:150]}, ["n_rows is 150, not 160"]),
        ({"new": ROW}, ["eval_set[0].X differs"]),
        ({"labels": moved(THREE[:80])}, ["eval_set[0].y differs"]),
        ({"eval_set": [(NEW, THREE[:80], np.arange(1.0, 81.0))]}, ["eval_set[0].sample_weight"]),
        ({"eval_set": [(NEW, THREE[:80])] * 2}, ["n_eval_sets is 2, not 1"]),
        ({"eval_metric": ["logloss", "error"]}, ["eval_metric is ['logloss', 'error'], not"]),
    ],
)
def test_other_data_are_rejected_by_name(started, changed, names):
    with pytest.raises(ValueError, match="resume_from: the checkpoint is of another fit") as error:
        start(**changed, resume_from=started)
    for name in names:
        assert name in str(error.value)


def test_queries_columns_and_costs_are_data_too(tmp_path):
    import pandas as pd

    group = {"group": np.arange(160) // 16}
    names = {"X": pd.DataFrame(X, columns=list("abcd"))}
    costs = {"costs": [[0, 2], [5, 0]]}
    for name, other, word in (
        ("rankings", group, "group differs"),
        ("numbers", names, "feature_names is"),
        ("costs", costs, "costs differs"),
    ):
        kind, parameters, arguments = FITS[name]
        with killed_after(5):
            fitted(name, callbacks=Checkpoint(tmp_path / name, 1))
        with pytest.raises(ValueError, match=f"another fit: .*{word}"):
            kind(**parameters).fit(**arguments | other, resume_from=tmp_path / name)


# For each parameter a value other than that of `start`, or of a plain regressor.
OTHER = {
    "loss": "absolute",
    "quantile": 0.3,
    "tweedie_power": 1.2,
    "n_estimators": 25,
    "learning_rate": 0.123,
    "max_depth": 4,
    "max_bins": 17,
    "sampler": "plain",
    "temperature": 0.5,
    "shrink_rate": 0.01,
    "friction": 0.5,
    "structure_noise": 0.5,
    "subsample": 0.5,
    "structure_sample": 0.5,
    "random_strength": 0.5,
    "leaf_method": "gradient",
    "leaf_steps": 2,
    "l2_regularization": 7,
    "init": "zero",
    "categorical_features": [0],
    "class_weight": {0: 1.0, 1: 2.0},
    "n_chains": 2,
    "uncertainty": True,
    "early_stopping_rounds": 5,
    "random_state": 1,
}


@pytest.mark.parametrize("kind", [SGLBClassifier, SGLBRegressor])
def test_every_parameter_that_is_changed_is_rejected_by_name(kind, tmp_path):
    y = TWO if kind is SGLBClassifier else NUMBERS
    with killed_after(3):
        kind(**SMALL).fit(X, y, callbacks=Checkpoint(tmp_path / "c", 1))
    names = set(inspect.signature(kind).parameters) - set(IDLE)
    assert names <= OTHER.keys()
    for name in sorted(names):
        model = kind(**SMALL | {name: OTHER[name]})
        with pytest.raises(ValueError, match=rf"another fit: {name} is ") as error:
            model.fit(X, y, eval_set=[(NEW, y[:80])], resume_from=tmp_path / "c")
        assert ";" not in str(error.value)  # no other parameter
    other = SGLBRegressor if kind is SGLBClassifier else SGLBClassifier
    with pytest.raises(ValueError, match=r"another fit: estimator is '.*', not '"):
        other(**SMALL).fit(X, TWO, resume_from=tmp_path / "c")
    for name, value in (("n_jobs", 2), ("verbose", 7), ("warm_start", True)):
        assert kind(**SMALL | {name: value}).fit(X, y, resume_from=tmp_path / "c").n_iter_ == 24


def test_samplers_losses_and_states_of_chance_are_compared_as_far_as_they_can_be(tmp_path):
    model = SGLBRegressor(**SMALL | {"sampler": Langevin(0.1, 1.0, 0.01)})
    with killed_after(9):
        model.fit(X, NUMBERS, callbacks=Checkpoint(tmp_path / "c", 1))
    model.set_params(sampler=Langevin(0.1, 1.0, 0.02))
    with pytest.raises(ValueError, match="another fit: sampler is "):
        model.fit(X, NUMBERS, resume_from=tmp_path / "c")
    kind, parameters, arguments = FITS["numbers"]
    drawn = kind(**parameters | {"random_state": np.random.RandomState(3)})
    with killed_after(9):
        drawn.fit(**arguments, callbacks=Checkpoint(tmp_path / "d", 1))
    with pytest.raises(ValueError, match=r"another fit: .*seed is "):  # it has moved on
        drawn.fit(**arguments, resume_from=tmp_path / "d")


def test_a_loss_whose_code_has_changed_is_seen_at_the_last_step(tmp_path, monkeypatch):
    stated = {"sampler": "plain", "learning_rate": 0.1, "init": "zero", "loss": interrupted.Cubic()}
    model = SGLBRegressor(**SMALL | stated)
    with killed_after(9):
        model.fit(X, NUMBERS, callbacks=Checkpoint(tmp_path / "c", 1))
    gradient = interrupted.Cubic.gradient
    monkeypatch.setattr(
        interrupted.Cubic, "gradient", lambda loss, y, raw: 0.9 * gradient(loss, y, raw)
    )
    with pytest.raises(ChangedChain, match="step 9 does not come out as it did"):
        model.fit(X, NUMBERS, resume_from=tmp_path / "c", check_gradient=False)


def test_callbacks_that_switch_the_cross_validation_off_are_named(tmp_path):
    with killed_after(30):
        fitted("searched length", callbacks=Checkpoint(tmp_path / "c", 1))
    with pytest.raises(ValueError, match="callbacks other than a Checkpoint"):
        fitted("searched length", callbacks=Stopping(), resume_from=tmp_path / "c")


def test_a_path_without_a_checkpoint_is_an_error_unless_one_is_written_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        fitted("numbers", resume_from=tmp_path / "c")
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        fitted("numbers", resume_from=tmp_path / "c", callbacks=Checkpoint(tmp_path / "d"))
    fitted("numbers", resume_from=tmp_path / "c", callbacks=Checkpoint(str(tmp_path / "c")))


def test_checkpoints_may_go_on_under_another_name(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    with killed_after(10):
        fitted("numbers", callbacks=Checkpoint(first, 1))
    before = first.read_bytes()
    with killed_after(15):
        fitted("numbers", callbacks=Checkpoint(second, 1), resume_from=first)
    assert first.read_bytes() == before
    assert content(fitted("numbers", resume_from=second)) == content(fitted("numbers"))


def test_models_and_checkpoints_are_told_apart(tmp_path):
    with killed_after(10):
        fitted("numbers", callbacks=Checkpoint(tmp_path / "c", 1))
    with pytest.raises(ModelFormatError, match=r"this is a checkpoint, not a model.*resume_from"):
        sglb.load(tmp_path / "c")
    fitted("numbers").save(tmp_path / "m")
    with pytest.raises(ModelFormatError, match=r"this is a model, not a checkpoint.*init_model"):
        fitted("numbers", resume_from=tmp_path / "m")


def test_a_checkpoint_with_other_fields_is_rejected():
    model = fitted("numbers")._model
    plain = {"names": ["chain 0"], "fingerprint": {"data": {}}, "is_finished": True}
    assert Snapshot.from_bytes(archive.dumps(model, checkpoint=plain)).n_steps == 24
    for field, value in (
        ("fingerprint", 3),
        ("fingerprint", {"data": 3}),
        ("is_finished", 1),
        ("names", []),
        ("names", ["a", "b"]),
        ("names", [3]),
        ("names", "a"),
        ("more", 1),
    ):
        with pytest.raises(ModelFormatError, match="checkpoint"):
            Snapshot.from_bytes(archive.dumps(model, checkpoint=plain | {field: value}))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"every": 0}, "every=0"),
        ({"every": True}, "every=True"),
        ({"every": 2.5}, "every=2.5"),
        ({"seconds": 0}, "seconds=0"),
        ({"seconds": float("nan")}, "seconds=nan"),
        ({"seconds": True}, "seconds=True"),
        ({"seconds": "5"}, "seconds='5'"),
        ({"every": "5"}, "every='5'"),
        ({"every": 5, "seconds": 5}, "exclude each other"),
        ({"on_error": "ignore"}, "on_error='ignore'"),
    ],
)
def test_options_that_mean_nothing_are_rejected(arguments, words):
    with pytest.raises(ValueError, match=words):
        Checkpoint("c", **arguments)


def test_a_fit_has_one_checkpoint_which_it_is_given_itself(tmp_path):
    with pytest.raises(ValueError, match="2 checkpoints"):
        fitted("numbers", callbacks=[Checkpoint(tmp_path / "a"), Checkpoint(tmp_path / "b")])

    class Wrapped(BaseCallback):
        def start(self, info):
            Checkpoint(tmp_path / "c").start(info)

    with pytest.raises(RuntimeError, match="itself"):
        fitted("numbers", callbacks=Wrapped())


def test_an_unfinished_fit_is_not_overwritten(tmp_path):
    path = tmp_path / "c"
    with killed_after(10):
        fitted("numbers", callbacks=Checkpoint(path, 1))
    with pytest.raises(CheckpointError, match=r"10 steps of a fit that has not ended.*resume_from"):
        fitted("weights", callbacks=Checkpoint(path))
    assert Snapshot.from_bytes(path.read_bytes()).n_steps == 10
    fitted("weights", callbacks=Checkpoint(path, overwrite=True))
    assert content(fitted("weights", resume_from=path)) == content(fitted("weights"))


def test_early_stopping_as_a_callback_and_progress_go_on(tmp_path, capsys):
    arguments = {"eval_set": [(NEW, HELD_OUT)]}
    model = SGLBRegressor(**LATE_AS_CALLBACK)
    whole = content(model.fit(X, NUMBERS, callbacks=EarlyStopping(8), **arguments))
    with killed_after(model.n_iter_ - 3):
        callbacks = [EarlyStopping(8), Checkpoint(tmp_path / "c", 1)]
        model.fit(X, NUMBERS, callbacks=callbacks, **arguments)
    capsys.readouterr()
    model.set_params(verbose=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, NUMBERS, callbacks=EarlyStopping(8), resume_from=tmp_path / "c", **arguments)
    assert content(model) == whole
    lines = capsys.readouterr().err.splitlines()
    n_steps = [int(line.split()[2].split("/")[0]) for line in lines if " step " in line[:12]]
    assert min(n_steps) == model.n_iter_ - 2  # what is repeated is not shown


LATE_AS_CALLBACK = SMALL | {"n_estimators": 200, "learning_rate": 0.4}


def test_scored_sets_are_scored_from_the_first_step(tmp_path):
    with killed_after(12):
        fitted("scores", callbacks=Checkpoint(tmp_path / "c", 1))
    model = fitted("scores", resume_from=tmp_path / "c")
    assert {len(values) for values in model.evals_result_["validation_0"].values()} == {24}
    assert set(model.evals_result_["validation_1"]) == {"mae", "rmse"} == set(SCORED["eval_metric"])


def test_a_fit_that_failed_before_it_took_steps_is_repeated_or_resumed(tmp_path):
    class Failing(BaseCallback):
        def step(self, info):
            raise RuntimeError("early")

    path, whole = tmp_path / "c", content(fitted("numbers"))
    for more in ({}, {"resume_from": path}):
        with pytest.raises(RuntimeError, match="early"):
            fitted("numbers", callbacks=[Failing(), Checkpoint(path, seconds=1e6)])
        assert Snapshot.from_bytes(path.read_bytes()).n_steps == 0
        assert content(fitted("numbers", callbacks=Checkpoint(path), **more)) == whole


def test_the_clock_of_checkpoints_goes_on_after_steps_that_are_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(sglb.checkpoints.journal, "SHARE", np.inf)  # write at every look
    path, written = tmp_path / "c", []
    for n_steps in (700, 1400):
        callbacks = Checkpoint(path, seconds=1e-6)
        with killed_after(n_steps) as ends:
            fitted("searched length", callbacks=callbacks, resume_from=path)
        assert ends
        written.append(Snapshot.from_bytes(path.read_bytes()).n_steps)
    assert 0 < written[0] < written[1]


@pytest.mark.parametrize(("version", "words"), [(3, "install a newer"), (1, "an older version")])
def test_a_checkpoint_of_another_format_is_neither_damaged_nor_lost(version, words, tmp_path):
    path = tmp_path / "c"
    with killed_after(10):
        fitted("numbers", callbacks=Checkpoint(path, 1))
    document, arrays = archive.container.unpack("sglb", path.read_bytes())
    pieces = archive.container.pack("sglb", document | {"version": version}, arrays)
    path.write_bytes(damage.signed(b"".join(bytes(piece) for piece in pieces)))
    content_before = path.read_bytes()
    with pytest.raises(ModelFormatError, match=f"reads format 2: .*{words}"):
        fitted("numbers", resume_from=path)
    with pytest.raises(CheckpointError, match=rf"{words}.*overwrite=True"):
        fitted("numbers", callbacks=Checkpoint(path))
    assert path.read_bytes() == content_before
    fitted("numbers", callbacks=Checkpoint(path, overwrite=True))
    assert Snapshot.from_bytes(path.read_bytes()).is_finished


def test_a_fit_that_ctrl_c_has_ended_is_not_finished(tmp_path):
    class CtrlC(BaseCallback):
        def step(self, info):
            if info.step == 9:
                signal.raise_signal(signal.SIGINT)

    path = tmp_path / "c"
    kept = fitted("numbers", callbacks=[CtrlC(), KeepOnInterrupt(), Checkpoint(path)])
    assert kept.n_iter_ == 9
    with pytest.raises(CheckpointError, match="9 steps of a fit that has not ended"):
        fitted("numbers", callbacks=Checkpoint(path))
    whole = content(fitted("numbers"))
    assert content(fitted("numbers", callbacks=Checkpoint(path), resume_from=path)) == whole
    assert Snapshot.from_bytes(path.read_bytes()).is_finished


def test_numbers_of_numpy_are_numbers(tmp_path):
    path = tmp_path / "c"
    for number in (np.int64(5), np.float32(5)):
        assert TimeLimit(number).seconds == Checkpoint(path, seconds=number).seconds == 5.0
    assert Checkpoint(path, np.int64(5)).every == 5
