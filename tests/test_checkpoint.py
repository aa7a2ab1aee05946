"""A fit that was interrupted becomes the model that it would have become, byte for byte."""

import functools
import signal
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import damage
import sglb
from interrupted import (
    FITS,
    HELD_OUT,
    NEW,
    NUMBERS,
    SCORED,
    SMALL,
    X,
    content,
    fitted,
    killed_after,
    killed_fits,
)
from sglb import (
    BaseCallback,
    Checkpoint,
    CheckpointError,
    EarlyStopping,
    KeepOnInterrupt,
    ModelFormatError,
    SGLBRegressor,
    Stop,
    TimeLimit,
    archive,
)
from sglb.checkpoints.snapshot import Snapshot
from sglb.checkpoints.store import Store


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
    ended = fitted("numbers")._model
    model = replace(ended, residual_variance=None)
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
    with pytest.raises(ModelFormatError, match="it has results"):
        Snapshot.from_bytes(archive.dumps(ended, checkpoint=plain))


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


def test_checkpoints_take_a_fiftieth_of_the_time(tmp_path, monkeypatch):
    clock, written, write = SimpleNamespace(now=0.0), [], Store.write
    clock.monotonic = lambda: clock.now

    class Tick(BaseCallback):
        def step(self, info):
            clock.now += 10.0

    def slow(store, data):
        clock.now += 1.0
        written.append(clock.now)
        write(store, data)

    monkeypatch.setattr(sglb.checkpoints.journal, "time", clock)
    monkeypatch.setattr(Store, "write", slow)
    fitted("numbers", callbacks=[Tick(), Checkpoint(tmp_path / "c", seconds=1e-6)])
    between = np.diff(written[:-1])  # the last one ends the fit
    assert len(between) >= 3
    assert between.min() >= 50.0


def test_a_fit_whose_last_step_is_written_has_ended(tmp_path):
    path = tmp_path / "c"
    fitted("numbers", callbacks=Checkpoint(path, 1))
    assert Snapshot.from_bytes(path.read_bytes()).is_finished
    fitted("weights", callbacks=Checkpoint(path, 100))  # which loses nothing


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
