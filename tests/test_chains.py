"""Several chains in one model: they differ in their noise, and their mean is the model."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import sglb
from sglb import SGLBClassifier, SGLBRegressor, archive
from sglb.estimators import training
from sglb.noise import chain_seed
from sglb.posterior import virtual_states
from sglb.samplers import Move
from sglb.settings import draw_seed
from sglb.trace import States, join, split
from sglb.transition import Transition

rng = np.random.default_rng(3)
X = rng.normal(size=(400, 4))
X[::9, 1] = np.nan
NUMBERS = X[:, 0] * X[:, 2] + 0.5 * rng.normal(size=400)
BINARY = NUMBERS > 0
CLASSES = np.digitize(NUMBERS, [-0.5, 0.5])
NEW = rng.normal(size=(120, 4))
HELD_OUT = NEW[:, 0] * NEW[:, 2]
FAST = {"n_estimators": 30, "max_depth": 3, "random_state": 0}
LATE = {"n_estimators": 300, "max_depth": 3, "random_state": 0, "early_stopping_rounds": 20}


def regressor(**parameters):
    return SGLBRegressor(**(FAST | parameters))


def classifier(**parameters):
    return SGLBClassifier(**(FAST | parameters))


class Seeded(np.random.RandomState):
    """A random state that `draw_seed` reads a certain seed from."""

    def __init__(self, seed):
        super().__init__(0)
        self.words = np.array([seed >> 32, seed & 0xFFFFFFFF], dtype=np.uint64)

    def randint(self, *arguments, **named):
        return self.words


class HeavyBall:
    """A sampler with momentum."""

    def move(self, step):
        return Move(0.1, noise=0.3, transition=Transition([[1.0, 0.5], [0.0, 0.5]], [1.0, 1.0]))


def assert_same_trace(first, second):
    for name, array in first.arrays().items():
        np.testing.assert_array_equal(array, second.arrays()[name], err_msg=name)


CASES = {
    "numbers": lambda **p: regressor(**p).fit(X, NUMBERS),
    "binary": lambda **p: classifier(**p).fit(X, BINARY),
    "classes": lambda **p: classifier(**p).fit(X, CLASSES),
    "weights": lambda **p: regressor(**p).fit(X, NUMBERS, rng_weights()),
    "sampled rows": lambda **p: classifier(subsample=0.5, **p).fit(X, BINARY),
    "hot": lambda **p: classifier(temperature=1, leaf_method="gradient", **p).fit(X, BINARY),
    "momentum": lambda **p: regressor(sampler=HeavyBall(), leaf_method="gradient", **p).fit(
        X, NUMBERS
    ),
    "searched length": lambda **p: regressor(**(p | {"n_estimators": "auto"})).fit(X, NUMBERS),
    "categories": lambda **p: classifier(categorical_features=[3], **p).fit(labelled(), BINARY),
}
EVERY = pytest.mark.parametrize("name", CASES)


def rng_weights():
    return np.random.default_rng(1).uniform(0.2, 3.0, len(X))


def labelled(rows=X):
    table = rows.astype(object)
    table[:, 3] = [f"level {round(4 * x)}" for x in rows[:, 3]]
    return table


def rows_for(name):
    return labelled(NEW) if name == "categories" else NEW


@EVERY
def test_the_first_chain_is_the_chain_of_a_single_one(name):
    single, several = CASES[name](), CASES[name](n_chains=3)
    assert len(several.traces_) == 3
    assert several.trace_ is several.traces_[0]
    assert_same_trace(several.trace_, single.trace_)
    rows = rows_for(name)
    np.testing.assert_array_equal(several.predict_raw_chains(rows)[0], single.predict_raw(rows))
    lengths = {len(trace) for trace in several.traces_}
    assert lengths == {single.n_iter_} == {several.n_iter_}


@EVERY
def test_the_model_does_not_depend_on_the_number_of_threads(name):
    contents = {archive.dumps(CASES[name](n_chains=3, n_jobs=n)._model) for n in (1, 2, 3, 8)}
    assert len(contents) == 1


@EVERY
def test_the_model_is_the_mean_of_its_chains(name):
    model, rows = CASES[name](n_chains=4), rows_for(name)
    raw = model.predict_raw_chains(rows)
    assert raw.shape == (4, *model.predict_raw(rows).shape)
    assert raw.std(axis=0).max() > 0.0
    np.testing.assert_allclose(model.predict_raw(rows), raw.mean(axis=0), atol=1e-9)
    *_, last = model.staged_predict_raw(rows)
    np.testing.assert_allclose(last, raw.mean(axis=0), atol=1e-9)


def test_the_chains_are_those_of_single_models_with_their_seeds():
    seed = draw_seed(0)
    several = regressor(n_chains=3).fit(X, NUMBERS)
    seeds = [seed, chain_seed(seed, 1), chain_seed(seed, 2)]
    single = [regressor(random_state=Seeded(s)).fit(X, NUMBERS) for s in seeds]
    for trace, model in zip(several.traces_, single, strict=True):
        assert_same_trace(trace, model.trace_)
    mean = np.mean([model.predict(NEW) for model in single], axis=0)
    np.testing.assert_allclose(several.predict(NEW), mean, atol=1e-12)
    gains = np.sum([model.trace_.feature_gains() for model in single], axis=0)
    np.testing.assert_allclose(several.feature_importances_, gains / gains.sum())


def test_the_chains_of_a_model_share_their_rows():
    made = []
    original = training.boost_all

    def look(chains, *others):
        made.extend(chains)
        return original(chains, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "boost_all", look)
        regressor(n_chains=3).fit(X, NUMBERS)
    assert len({id(chain.rows.data) for chain in made}) == 1
    assert len({id(chain.rows.raw.base) for chain in made}) == 3


def test_the_mean_is_taken_of_raw_scores():
    model = classifier(n_chains=3).fit(X, BINARY)
    mean = model.predict_raw_chains(NEW).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 1], 1 / (1 + np.exp(-mean)), rtol=1e-12)
    row = model.row_predictor()
    np.testing.assert_array_equal(row(NEW[0]), model.predict_proba(NEW[:1])[0])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_early_stopping_ends_each_chain_by_itself(n_jobs):
    sets = {"eval_set": (NEW, HELD_OUT), "eval_metric": ["rmse", "mae"]}
    model = SGLBRegressor(**LATE, n_chains=3, n_jobs=n_jobs).fit(X, NUMBERS, **sets)
    seed = draw_seed(0)
    for number in range(3):
        random_state = Seeded(chain_seed(seed, number) if number else seed)
        single = SGLBRegressor(**(LATE | {"random_state": random_state})).fit(X, NUMBERS, **sets)
        assert_same_trace(model.traces_[number], single.trace_)
        assert model.best_iterations_[number] == single.best_iteration_ == single.n_iter_
        assert model.chain_evals_results_[number] == single.evals_result_
    assert len(set(model.best_iterations_)) > 1
    assert model.n_iter_ == max(model.best_iterations_) == model.best_iteration_
    scores = model.evals_result_["validation_0"]["rmse"]
    staged = [np.sqrt(np.mean((p - HELD_OUT) ** 2)) for p in model.staged_predict(NEW)]
    np.testing.assert_allclose(scores, staged, rtol=1e-9)
    assert model.best_score_ == scores[-1]
    assert len(model.evals_result_["validation_0"]["mae"]) == model.n_iter_


def test_without_early_stopping_the_best_iteration_is_that_of_the_mean():
    model = classifier(n_chains=2, n_estimators=200, learning_rate=0.5)
    model.fit(X, BINARY, eval_set=(NEW, HELD_OUT > 0))
    scores = model.evals_result_["validation_0"]["loss"]
    assert model.n_iter_ == 200 == len(scores)
    assert model.best_iteration_ == 1 + int(np.argmin(scores))
    assert model.best_score_ == min(scores)
    assert model.best_iterations_ == [
        1 + int(np.argmin(result["validation_0"]["loss"])) for result in model.chain_evals_results_
    ]


def test_a_single_chain_has_lists_of_one():
    model = regressor().fit(X, NUMBERS, eval_set=(X, NUMBERS))
    assert model.best_iterations_ == [model.best_iteration_]
    assert model.chain_evals_results_ == [model.evals_result_]
    assert regressor().fit(X, NUMBERS).best_iterations_ == [None]
    np.testing.assert_array_equal(model.predict_raw_chains(NEW), model.predict_raw(NEW)[None])


def test_a_chain_that_has_ended_stays_where_it_is_in_staged_predictions():
    model = SGLBRegressor(**LATE, n_chains=3).fit(X, NUMBERS, eval_set=(NEW, HELD_OUT))
    lengths = [len(trace) for trace in model.traces_]
    staged = list(model.staged_predict(NEW))
    assert len(staged) == max(lengths)
    for k in (1, min(lengths), max(lengths)):
        states = [trace.predict(NEW, states=[min(k, len(trace))])[0] for trace in model.traces_]
        np.testing.assert_allclose(staged[k - 1], np.mean(states, axis=0)[0], atol=1e-9)


def test_the_residual_variance_is_that_of_the_mean():
    model = regressor(n_chains=3).fit(X, NUMBERS)
    expected = np.mean((NUMBERS - model.predict(X)) ** 2)
    assert model._model.residual_variance == pytest.approx(expected, rel=1e-9)
    early = SGLBRegressor(**LATE, n_chains=2).fit(X, NUMBERS, eval_set=(NEW, HELD_OUT))
    expected = np.mean((NUMBERS - early.predict(X)) ** 2)
    assert early._model.residual_variance == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("ignore:the states of this chain are not draws")
@pytest.mark.parametrize("name", ["numbers", "binary", "classes", "momentum"])
def test_uncertainty_is_that_of_states_of_all_chains(name):
    model = CASES[name](n_chains=3)
    numbers = virtual_states(30, 5).tolist()
    raw = np.concatenate([trace.predict(NEW, states=numbers) for trace in model.traces_])
    states = States.of(model.traces_, [numbers] * 3)
    np.testing.assert_allclose(states.predict(NEW), raw, atol=1e-9)
    uncertainty = model.predict_uncertainty(NEW, n_states=5)
    if name == "binary":
        assert (uncertainty.knowledge > 0.0).any()
        draws = 1 / (1 + np.exp(-raw[:, 0]))
        np.testing.assert_allclose(uncertainty.mean[:, 1], draws.mean(axis=0), atol=1e-9)
    elif name != "classes":
        np.testing.assert_allclose(uncertainty.mean, raw.mean(axis=0)[0], atol=1e-9)
        np.testing.assert_allclose(uncertainty.knowledge, raw.var(axis=0)[0], atol=1e-9)


def test_traces_are_joined_and_split_again():
    traces = regressor(n_chains=3).fit(X, NUMBERS).traces_
    cut = [traces[0], traces[1].at(7), traces[2].at(1)]
    again = split(join(cut), [30, 7, 1])
    for first, second in zip(cut, again, strict=True):
        assert_same_trace(first, second)
    np.testing.assert_allclose(
        States.mean(cut).predict(NEW)[0],
        np.mean([trace.predict(NEW) for trace in cut], axis=0),
        atol=1e-12,
    )


@EVERY
def test_a_model_comes_back_from_its_file_and_its_pickle(name, tmp_path):
    model, rows = CASES[name](n_chains=3), rows_for(name)
    model.save(tmp_path / "m.sglb")
    loaded = sglb.load(tmp_path / "m.sglb")
    for again in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_raw(rows), model.predict_raw(rows))
        np.testing.assert_array_equal(
            again.predict_raw_chains(rows), model.predict_raw_chains(rows)
        )
        assert again.n_chains == again.get_params()["n_chains"] == 3
        assert again.best_iterations_ == model.best_iterations_
    if name != "momentum":  # a file does not hold a sampler of the user's own
        loaded.save(tmp_path / "again.sglb")
        assert (tmp_path / "m.sglb").read_bytes() == (tmp_path / "again.sglb").read_bytes()
        assert_same_trace(clone(loaded).fit(*fitted_rows(name)).traces_[2], model.traces_[2])


def fitted_rows(name):
    y = {"numbers": NUMBERS, "weights": NUMBERS, "searched length": NUMBERS, "classes": CLASSES}
    weight = rng_weights() if name == "weights" else None
    return labelled() if name == "categories" else X, y.get(name, BINARY), weight


def test_scores_of_each_chain_are_in_the_file(tmp_path):
    model = SGLBRegressor(**LATE, n_chains=3).fit(X, NUMBERS, eval_set=(NEW, HELD_OUT))
    model.save(tmp_path / "m.sglb")
    again = sglb.load(tmp_path / "m.sglb")
    assert again.best_iterations_ == model.best_iterations_
    assert again.chain_evals_results_ == model.chain_evals_results_
    assert again.evals_result_ == model.evals_result_
    assert again.best_score_ == model.best_score_


def test_the_file_of_a_single_chain_does_not_speak_of_chains():
    assert b"chains" not in archive.dumps(regressor(n_chains=1).fit(X, NUMBERS)._model)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, 2.0, True, None, "3"])
def test_a_number_of_chains_that_is_not_one_is_rejected(wrong):
    with pytest.raises(ValueError, match=r"n_chains=.* is not allowed; use a whole number >= 1"):
        regressor(n_chains=wrong).fit(X, NUMBERS)
