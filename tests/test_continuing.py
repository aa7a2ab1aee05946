"""More steps for a model there is, and fewer: shrink and noise are those of a single fit."""

import time
from dataclasses import replace

import numpy as np
import pytest

import sglb
from interrupted import (
    FITS,
    HELD_OUT,
    NEW,
    NUMBERS,
    QUERIES,
    SCORED,
    SMALL,
    THREE,
    TWO,
    WEIGHT,
    X,
    categories,
    content,
    killed_after,
)
from sglb import BaseCallback, Checkpoint, SGLBClassifier, SGLBRanker, SGLBRegressor, TimeLimit

# Fits whose settings do not depend on the number of steps once the learning rate is stated.
SAME = sorted(
    FITS.keys()
    - {
        "searched length",
        "error bars",
        "annealed",
        "cyclical",
        "early stopping",
        "stochastic ranking",
    }
    - {name for name in FITS if name.startswith(("tempering", "chains that"))}
)


def model_of(name, **more):
    kind, parameters, arguments = FITS[name]
    parameters = parameters | {"learning_rate": 0.2} | more
    return kind(**parameters), arguments


@pytest.mark.parametrize("name", SAME)
def test_some_steps_and_then_more_are_all_steps_at_once(name, tmp_path):
    model, arguments = model_of(name)
    whole = content(model.fit(**arguments))
    warm, _ = model_of(name, warm_start=True)
    for n_steps in (10, 10, 24):
        warm.set_params(n_estimators=n_steps).fit(**arguments)
        assert warm.n_iter_ == n_steps
    assert content(warm) == whole
    first, _ = model_of(name)
    first.set_params(n_estimators=9).fit(**arguments).save(tmp_path / "m")
    if warm._model.residual_variance is None:
        assert content(warm[:9]) == content(first)
    more, _ = model_of(name)
    for origin in (tmp_path / "m", first):
        more.set_params(n_estimators=15).fit(**arguments, init_model=origin)
        assert content(more) == whole
    assert first.n_iter_ == 9


def test_error_bars_are_learned_anew_on_the_same_rows():
    parameters = SMALL | {"uncertainty": True, "learning_rate": 0.2}
    whole = SGLBRegressor(**parameters | {"n_estimators": 6}).fit(X, NUMBERS)
    warm = SGLBRegressor(**parameters | {"n_estimators": 2, "warm_start": True}).fit(X, NUMBERS)
    assert content(warm.set_params(n_estimators=6).fit(X, NUMBERS)) == content(whole)


def test_early_stopping_counts_from_the_model_that_is_continued():
    late = {"n_estimators": 200, "early_stopping_rounds": 8, "learning_rate": 0.1}
    whole = SGLBRegressor(**SMALL | late).fit(X, NUMBERS, **SCORED)
    assert 15 < whole.n_iter_ < 190
    first = SGLBRegressor(**SMALL | late | {"n_estimators": 10}).fit(X, NUMBERS, **SCORED)
    warm = first.set_params(n_estimators=200, warm_start=True).fit(X, NUMBERS, **SCORED)
    assert content(warm) == content(whole)
    # Scores elsewhere that were best long ago do not end it before it has begun.
    other = [(NEW, -HELD_OUT)]
    warm.set_params(n_estimators=whole.n_iter_ + 50).fit(X, NUMBERS, eval_set=other)
    assert len(warm.evals_result_["validation_0"]["loss"]) == whole.n_iter_ + 8


def test_a_model_goes_on_from_its_predictions_on_other_rows():
    model = SGLBRegressor(**SMALL | {"sampler": "plain", "learning_rate": 0.1}).fit(X, NUMBERS)
    before = model.predict(NEW)

    class First(BaseCallback):
        def step(self, info):
            if info.step == info.n_replayed:
                self.raw = info.raw[0].copy()

    seen = First()
    more = sglb.SGLBRegressor(**model.get_params()).fit(
        NEW, HELD_OUT, init_model=model, callbacks=seen
    )
    np.testing.assert_allclose(seen.raw, before, atol=1e-12)
    assert more.n_iter_ == 48
    np.testing.assert_array_equal(more.predict(NEW, n_estimators=24), before)
    assert np.mean((more.predict(NEW) - HELD_OUT) ** 2) < np.mean((before - HELD_OUT) ** 2)
    thresholds = model.trace_.bins.thresholds
    np.testing.assert_array_equal(more.trace_.bins.thresholds, thresholds)
    assert more._model.recipe.total_weight == len(NEW)


def test_other_rows_with_categories_and_fewer_classes_keep_those_of_the_model():
    frame = categories()
    model = SGLBClassifier(**SMALL).fit(frame, THREE)
    few = frame.iloc[::2].assign(town="never seen")
    labels = np.where(THREE[::2] == "c", "a", THREE[::2])
    more = SGLBClassifier(**SMALL).fit(few, labels, init_model=model)
    assert more.classes_.tolist() == ["a", "b", "c"]
    assert more.predict_proba(few).shape == (80, 3)
    with pytest.raises(ValueError, match=r"labels that do not occur .*'z'"):
        SGLBClassifier(**SMALL).fit(frame, np.where(TWO, "z", "a"), init_model=model)
    with pytest.raises(ValueError, match=r"features|columns|names"):
        SGLBClassifier(**SMALL).fit(frame[["x", "town"]], THREE, init_model=model)


def test_shrink_and_noise_go_on_with_other_rows():
    cold = {"temperature": 0.0, "shrink_rate": 0.5, "learning_rate": 0.2, "leaf_method": "gradient"}
    model = SGLBRegressor(**SMALL | cold | {"init": "zero"}).fit(X, NUMBERS)
    nothing = np.zeros(len(NEW))
    more = SGLBRegressor(**SMALL | cold | {"init": "zero", "n_estimators": 1})
    more.fit(NEW, nothing, init_model=model, sample_weight=np.full(len(NEW), 1e-9) + 0 * nothing)
    np.testing.assert_array_equal(more.trace_.C[:, 0, 0], 1.0 - 0.1)
    hot = SMALL | {"temperature": 1.0, "learning_rate": 0.2}
    first = SGLBRegressor(**hot).fit(X, NUMBERS)
    twice = [SGLBRegressor(**hot).fit(NEW, HELD_OUT, init_model=first) for _ in range(2)]
    assert content(twice[0]) == content(twice[1])
    drawn = twice[0].trace_.values
    assert not np.array_equal(drawn[:24], drawn[24:])


def test_a_continued_fit_may_be_interrupted_too(tmp_path):
    first = SGLBRegressor(**SMALL).fit(X, NUMBERS)
    more = SGLBRegressor(**SMALL)
    whole = content(more.fit(NEW, HELD_OUT, init_model=first))
    for n_steps in (20, 24, 25, 40):
        path = tmp_path / str(n_steps)
        with killed_after(n_steps):
            more.fit(NEW, HELD_OUT, init_model=first, callbacks=Checkpoint(path, 1))
        assert content(more.fit(NEW, HELD_OUT, init_model=first, resume_from=path)) == whole
    with pytest.raises(ValueError, match=r"another fit: .*init_model differs"):
        more.fit(NEW, HELD_OUT, init_model=first[:23], resume_from=path)
    with pytest.raises(ValueError, match="another fit"):
        more.fit(NEW, HELD_OUT, resume_from=path)


OTHER = {"max_depth": 2, "learning_rate": 0.1, "n_chains": 2, "temperature": 3.0, "init": "zero"}


@pytest.mark.parametrize("name", OTHER)
def test_a_model_is_continued_with_its_parameters(name):
    model = SGLBRegressor(**SMALL).fit(X, NUMBERS)
    with pytest.raises(
        ValueError, match=rf"init_model: {name}={OTHER[name]!r}.*set_params\({name}"
    ):
        SGLBRegressor(**SMALL | {name: OTHER[name]}).fit(X, NUMBERS, init_model=model)
    model.set_params(warm_start=True, **{name: OTHER[name]})
    with pytest.raises(ValueError, match=rf"warm_start=True: {name}="):
        model.fit(X, NUMBERS)


def test_what_cannot_be_continued_is_said_to_be_so(tmp_path):
    model = SGLBRegressor(**SMALL).fit(X, NUMBERS)
    with pytest.raises(ValueError, match=r"n_estimators=23 is less than the 24 steps.*model\[:k\]"):
        model.set_params(warm_start=True, n_estimators=23).fit(X, NUMBERS)
    with pytest.raises(ValueError, match=r"warm_start=True needs n_estimators, .* steps in all"):
        model.set_params(n_estimators="auto").fit(X, NUMBERS)
    with pytest.raises(ValueError, match="exclude each other"):
        model.fit(X, NUMBERS, init_model=model)
    free = SGLBRegressor(**SMALL | {"n_estimators": "auto"})
    with pytest.raises(ValueError, match=r"init_model needs n_estimators, .* steps to add"):
        free.fit(X, NUMBERS, init_model=model)
    with pytest.raises(ValueError, match="the model is a regressor, not a classifier"):
        SGLBClassifier(**SMALL).fit(X, TWO, init_model=model)
    with pytest.raises(TypeError, match="is not a model of sglb"):
        SGLBRegressor(**SMALL).fit(X, NUMBERS, init_model=3)
    with pytest.raises(FileNotFoundError):
        SGLBRegressor(**SMALL).fit(X, NUMBERS, init_model=tmp_path / "none")
    hot = SGLBRegressor(**SMALL | {"sampler": "tempering"}).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="does not store the rungs"):
        SGLBRegressor(**hot.get_params()).fit(X, NUMBERS, init_model=hot)
    bars = SGLBRegressor(**SMALL | {"uncertainty": True, "n_estimators": 4}).fit(X, NUMBERS)
    with pytest.raises(ValueError, match=r"uncertainty=True cannot.*conformalize"):
        SGLBRegressor(**bars.get_params()).fit(NEW, HELD_OUT, init_model=bars)


MODELS = {
    "numbers": lambda: SGLBRegressor(**SMALL).fit(X, NUMBERS, **SCORED),
    "classes": lambda: SGLBClassifier(**SMALL).fit(categories(), THREE),
    "two classes": lambda: SGLBClassifier(**SMALL).fit(X, TWO, WEIGHT),
    "ranks": lambda: SGLBRanker(**SMALL).fit(X, TWO.astype(float), QUERIES),
    "momentum": lambda: SGLBRegressor(**SMALL | {"sampler": "hamiltonian"}).fit(X, NUMBERS),
    "chains": lambda: SGLBRegressor(
        **SMALL | {"n_chains": 2, "n_estimators": 90, "early_stopping_rounds": 3}
    ).fit(X, NUMBERS, **SCORED),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_first_steps_are_a_model_exactly_as_it_was_then(name, tmp_path):
    model = MODELS[name]()
    rows = categories() if name == "classes" else X
    stages = list(model.staged_predict_raw(rows))
    for k in (1, min(5, model.n_iter_), model.n_iter_):
        part = model[:k]
        assert type(part) is type(model)
        assert part.n_iter_ == k
        np.testing.assert_allclose(part.predict_raw(rows), stages[k - 1], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(part.predict(rows), model.predict(rows, n_estimators=k))
        if isinstance(model, SGLBClassifier):
            np.testing.assert_array_equal(
                part.predict_proba(rows), model.predict_proba(rows, n_estimators=k)
            )
            np.testing.assert_array_equal(
                part.decision_function(rows), model.decision_function(rows, n_estimators=k)
            )
        for trace, longer in zip(part.traces_, model.traces_, strict=True):
            for key, array in trace.arrays().items():
                np.testing.assert_array_equal(array, longer.arrays()[key][: len(trace)])
        part.save(tmp_path / "m")
        np.testing.assert_array_equal(sglb.load(tmp_path / "m").predict(rows), part.predict(rows))
    assert content(model[:]) == content(model[: 10**6]) == content(model)
    assert model[:-1].n_iter_ == model.n_iter_ - 1


def test_a_part_keeps_the_scores_of_its_steps_and_the_best_if_it_is_among_them():
    model = MODELS["numbers"]()
    best = model.best_iteration_
    assert best > 1
    part = model[:best]
    assert (part.best_iteration_, part.best_score_) == (best, model.best_score_)
    scores = model.evals_result_["validation_1"]["mae"]
    assert model[: best - 1].evals_result_["validation_1"]["mae"] == scores[: best - 1]
    assert model[: best - 1].best_iteration_ is None
    assert model.n_iter_ == 24  # and stays whole


def test_only_first_steps_are_a_part():
    model = MODELS["numbers"]()
    for wrong in (3, slice(2, None), slice(None, None, 2), "a"):
        with pytest.raises(TypeError, match=r"model\[:k\]"):
            model[wrong]
    for wrong in (slice(0), slice(-24)):
        with pytest.raises(ValueError, match="has no steps; the model has 24"):
            model[wrong]
    for wrong in (0, 25, -1, 2.0, True):
        with pytest.raises(ValueError, match="use 1 to 24"):
            model.predict(X, n_estimators=wrong)
    with pytest.raises(ValueError, match="return_std"):
        model.predict(X, return_std=True, n_estimators=3)


class Slow(BaseCallback):
    def step(self, info):
        time.sleep(0.02)


def test_a_time_limit_ends_the_chain_in_time_with_the_best_state_there_is():
    late = SMALL | {"n_estimators": 5000, "early_stopping_rounds": 4000}
    model = SGLBRegressor(**late)
    started = time.monotonic()
    model.fit(X, NUMBERS, **SCORED, callbacks=[Slow(), TimeLimit(0.2)])
    assert time.monotonic() - started < 30  # and not 100 seconds
    n_steps = len(model.evals_result_["validation_1"]["mae"])
    assert 1 <= n_steps <= 10
    assert model.n_iter_ == model.best_iteration_ <= n_steps
    assert SGLBRegressor(**SMALL).fit(X, NUMBERS, callbacks=TimeLimit(0)).n_iter_ == 1
    assert SGLBRegressor(**SMALL).fit(X, NUMBERS, callbacks=TimeLimit(1e6)).n_iter_ == 24


def test_a_time_limit_keeps_the_steps_of_a_checkpoint(tmp_path):
    path, model = tmp_path / "c", SGLBRegressor(**SMALL)
    with killed_after(15):
        model.fit(X, NUMBERS, callbacks=Checkpoint(path, 1))
    so_far = model.fit(X, NUMBERS, callbacks=TimeLimit(0), resume_from=path)
    assert so_far.n_iter_ == 15


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "1", True, None])
def test_a_time_limit_is_a_number_of_seconds(seconds):
    with pytest.raises(ValueError, match="seconds="):
        TimeLimit(seconds)


class CtrlC(BaseCallback):
    """Ends a fit by Ctrl-C after a step."""

    def __init__(self, at):
        self.at = at

    def step(self, info):
        if info.step == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_chains", [1, 2])
def test_a_fit_that_ends_among_the_steps_of_its_model_is_resumed(n_chains, tmp_path):
    parameters = SMALL | {"n_chains": n_chains}
    first = SGLBRegressor(**parameters).fit(X, NUMBERS)
    more = SGLBRegressor(**parameters)
    whole = content(more.fit(NEW, HELD_OUT, init_model=first))
    writing = {"init_model": first, "callbacks": [Checkpoint(tmp_path / "c"), CtrlC(5)]}
    with pytest.raises(KeyboardInterrupt):
        more.fit(NEW, HELD_OUT, **writing)
    resumed = more.fit(NEW, HELD_OUT, init_model=first, resume_from=tmp_path / "c")
    assert content(resumed) == whole


class StopOnce(BaseCallback):
    """Asks for the end of the chain at one step, and at no other."""

    def __init__(self, at):
        self.at, self.seen = at, 0

    def step(self, info):
        self.seen = info.step
        return sglb.Stop("enough") if info.step == self.at else None

    def finish(self, info):
        self.stop = info.stop


@pytest.mark.parametrize("n_chains", [1, 2])
def test_a_stop_among_the_steps_of_a_model_keeps_them_all(n_chains):
    parameters = SMALL | {"n_chains": n_chains, "n_jobs": 2}
    first = SGLBRegressor(**parameters).fit(X, NUMBERS)
    for at, n_steps in ((3, 24), (24, 24), (25, 25)):
        stopping = StopOnce(at)
        more = SGLBRegressor(**parameters)
        more.fit(NEW, HELD_OUT, init_model=first, callbacks=stopping)
        assert [len(trace) for trace in more.traces_] == [n_steps] * n_chains
        assert (stopping.seen, stopping.stop) == (n_steps, sglb.Stop("enough"))
        predicted = more.predict(NEW, n_estimators=24)
        np.testing.assert_array_equal(predicted, first.predict(NEW))
    for callback in (TimeLimit(0), sglb.EarlyStopping(1)):
        more = SGLBRegressor(**parameters)
        sets = {"eval_set": (X, -NUMBERS)}  # scores get worse from the first step on
        more.fit(NEW, HELD_OUT, init_model=first, callbacks=callback, **sets)
        np.testing.assert_array_equal(more.predict(NEW), first.predict(NEW))


def test_a_model_of_another_noise_is_rejected_before_a_checkpoint_is_written(tmp_path):
    model = SGLBRegressor(**SMALL).fit(X, NUMBERS)
    model._model = replace(model._model, recipe=replace(model._model.recipe, noise_version=0))
    model.save(tmp_path / "m")
    for origin in (model, tmp_path / "m"):
        with pytest.raises(ValueError, match="version 0 of the noise"):
            SGLBRegressor(**SMALL).fit(
                X, NUMBERS, init_model=origin, callbacks=Checkpoint(tmp_path / "c")
            )
        assert not (tmp_path / "c").exists()


def test_a_state_of_chance_is_not_in_a_file_and_need_not_be(tmp_path):
    chance = SMALL | {"random_state": np.random.RandomState(3)}
    model = SGLBRegressor(**chance).fit(X, NUMBERS)
    model.save(tmp_path / "m")
    more = [
        SGLBRegressor(**chance).fit(X, NUMBERS, init_model=origin)
        for origin in (model, tmp_path / "m")
    ]
    assert content(more[0]) == content(more[1])
    assert more[0]._model.recipe.settings.seed == model._model.recipe.settings.seed
