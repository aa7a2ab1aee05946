"""Samplers beyond Langevin's, by name: files, threads, stages, early stopping, draws."""

import dataclasses
import pickle

import numpy as np
import pytest

import sglb
from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor, archive
from sglb.diagnostics import rhat
from sglb.losses import OwnMetric
from sglb.posterior import chains_of_draws, drawn_states
from sglb.samplers import Hamiltonian, Langevin, Tempering
from sglb.schedules import StepFunction

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.2 * RNG.normal(size=400)
CLASSES = np.digitize(Y, [-0.5, 0.5])
NAMES = ["hamiltonian", "cyclical", "tempering", "annealed"]


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


def test_a_model_learns_and_comes_back_from_its_file(name, tmp_path):
    model = SGLBRegressor(sampler=name, n_estimators=150, random_state=0).fit(X[:300], Y[:300])
    assert model.score(X[300:], Y[300:]) > 0.8
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last, model.predict(X), rtol=1e-9)


def test_any_number_of_threads_gives_the_same_model(name):
    models = [
        SGLBClassifier(sampler=name, n_estimators=25, random_state=0, n_jobs=n_jobs).fit(X, CLASSES)
        for n_jobs in (1, 3)
    ]
    assert np.array_equal(*(model.predict_proba(X) for model in models))


def test_early_stopping_returns_the_state_of_the_best_step(name):
    model = SGLBRegressor(
        sampler=name,
        n_estimators=300,
        learning_rate=0.1 if name != "hamiltonian" else 0.02,
        early_stopping_rounds=20,
        random_state=0,
    ).fit(X[:200], Y[:200], eval_set=[(X[200:], Y[200:])], eval_metric="rmse")
    errors = next(iter(model.evals_result_.values()))["rmse"]
    assert len(model.trace_) == model.best_iteration_ == 1 + int(np.argmin(errors))
    error = np.sqrt(np.mean(np.square(model.predict(X[200:]) - Y[200:])))
    assert error == pytest.approx(min(errors), rel=1e-9)


def test_rankings_are_learned_with_it(name):
    group = np.repeat(np.arange(40), 10)
    relevance = np.digitize(Y, [-1, 0, 1])
    model = SGLBRanker(sampler=name, n_estimators=60, random_state=0).fit(X, relevance, group=group)
    assert model.score(X, relevance, group=group) > 0.8


def test_cycles_have_long_steps_without_noise_and_short_ones_with_it():
    sampler = Langevin("cosine(0.2, 0) every 10", "jump(0, 0.5, 6) every 10", 0.1)
    moves = [sampler.move(step) for step in range(20)]
    rates = [move.learning_rate for move in moves]
    assert rates[0] == rates[10] == 0.2
    assert rates[5] == pytest.approx(0.1)  # half of a cosine
    assert rates[9] == pytest.approx(0.2 * (1 + np.cos(0.9 * np.pi)) / 2)
    noisy = [move.noise > 0.0 for move in moves]
    assert noisy == ([False] * 6 + [True] * 4) * 2
    for move in moves[6:10]:
        assert move.noise == pytest.approx(np.sqrt(2 * 0.5 / move.learning_rate))
        assert move.shrink == pytest.approx(1 - 0.1 * move.learning_rate)


def test_the_draws_of_a_cyclical_chain_are_the_noisy_states():
    sampler = Langevin("cosine(0.1, 0) every 20", "jump(0, 1e-3, 15) every 20", 0.1)
    model = SGLBRegressor(sampler=sampler, n_estimators=100, leaf_method="gradient").fit(X, Y)
    assert len(drawn_states(model._model, 1000)[0]) == 15  # of the last three cycles, five each
    assert all((number - 1) % 20 >= 15 for number in drawn_states(model._model, 7)[0])


def test_a_ladder_is_geometric_and_has_one_prior():
    rungs = Tempering(0.02, 0.01, 0.2, hot_temperature=1.0, n_replicas=3).ladder()
    assert [rung.temperature for rung in rungs] == pytest.approx([0.01, 0.1, 1.0])
    priors = [rung.temperature / rung.shrink_rate for rung in rungs]
    assert priors == pytest.approx([0.05] * 3)


def test_tempering_tells_how_often_neighbours_exchange(capsys):
    SGLBRegressor(sampler="tempering", n_estimators=60, random_state=0, verbose=30).fit(X, Y)
    assert "accepted exchanges between neighbours, the coldest first: " in capsys.readouterr().err


LADDER = Tempering(0.1, 1.0, 2.0, hot_temperature=1.5, n_replicas=3, swap_every=5)


class Raws(sglb.BaseCallback):
    """Keeps the raw scores of the chain in sight after each step."""

    def __init__(self):
        self.raws = []

    def step(self, info):
        self.raws.append(info.raw[0].copy())


@pytest.fixture(scope="module")
def tempered():
    raws = Raws()
    model = SGLBRegressor(
        sampler=LADDER, n_estimators=200, max_depth=2, leaf_method="gradient", random_state=0
    )
    return model.fit(X, Y, callbacks=raws), np.array(raws.raws)


def test_the_draws_of_tempering_are_the_states_of_whichever_chain_was_the_coldest(tempered):
    model, raws = tempered
    numbers = drawn_states(model._model, 10**6)
    assert sorted(np.concatenate(numbers)) == list(range(101, 201))
    assert sum(len(steps) > 0 for steps in numbers) > 1
    chains = chains_of_draws(model._model)
    assert all(len(chain) == 200 for chain in chains)
    for chain, steps in zip(chains, numbers, strict=True):
        np.testing.assert_allclose(chain.temperatures[steps - 1], 1.0)
        for step, raw in zip(steps, chain.predict(X, states=steps.tolist()), strict=True):
            np.testing.assert_allclose(raw[0], raws[step - 1], atol=1e-10)
    # One series in the order of time, whatever the chains: R-hat of halves of it.
    series = raws[drawn_union(51)]
    # Folded, draws at either side of the median tie, but for rounding.
    expected = rhat(series[None, :, :3])
    np.testing.assert_allclose(model.chain_rhat(X[:3], n_states=51), expected, rtol=1e-3)
    unordered = rhat(np.roll(series, 20, axis=0)[None, :, :3])
    assert np.abs(unordered - expected).max() > 0.01
    uncertainty = model.predict_uncertainty(X[:3], n_states=51)
    np.testing.assert_allclose(uncertainty.mean, series[:, :3].mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(uncertainty.knowledge, series[:, :3].var(axis=0), atol=1e-9)


def drawn_union(n_states):
    """Steps, from 0, of evenly spaced states of the second half, the last among them."""
    return np.unique(np.linspace(200, 101, n_states).round().astype(int)) - 1


def test_swap_rates_and_other_chains_stay_with_the_model(tempered, tmp_path):
    model, _ = tempered
    assert len(model.swap_rates_) == 2
    assert all(0.0 < rate <= 1.0 for rate in model.swap_rates_)
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    for copy in (again, pickle.loads(pickle.dumps(model))):
        assert copy.swap_rates_ == model.swap_rates_
        assert copy.get_params() == model.get_params()
        assert np.array_equal(copy.predict(X), model.predict(X))
        pairs = zip(copy.predict_uncertainty(X), model.predict_uncertainty(X), strict=True)
        assert all(np.array_equal(ours, theirs) for ours, theirs in pairs)
    assert archive.dumps(again._model) == archive.dumps(model._model)
    assert SGLBRegressor(n_estimators=2).fit(X, Y).swap_rates_ is None


def test_all_chains_are_in_a_file_that_loses_the_sampler(tmp_path):
    rate = StepFunction(rate_of, 20)
    sampler = Tempering(rate, 1.0, 2.0, hot_temperature=1.5, n_replicas=3)
    model = SGLBRegressor(sampler=sampler, n_estimators=20).fit(X, Y)
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    assert len(chains_of_draws(again._model)) == 3
    assert again.get_params()["sampler"] is None
    assert np.array_equal(again.predict(X, n_estimators=11), model.predict(X, n_estimators=11))


def rate_of(step):
    return 0.1 / (1 + step)


def test_rates_of_exchanges_that_were_never_tried_are_not_numbers(tmp_path):
    model = SGLBRegressor(sampler="tempering", n_estimators=9).fit(X, Y)
    assert np.isnan(model.swap_rates_).all()
    model.save(tmp_path / "model.sglb")
    assert np.isnan(sglb.load(tmp_path / "model.sglb").swap_rates_).all()


def test_early_stopping_cuts_all_chains_of_tempering_to_the_best_step():
    model = SGLBRegressor(
        sampler="tempering", n_estimators=200, learning_rate=0.3, early_stopping_rounds=7
    ).fit(X[:200], Y[:200], eval_set=(X[200:], Y[200:]))
    lengths = {len(chain) for chain in chains_of_draws(model._model)}
    assert lengths == {model.best_iteration_}


def test_a_callback_that_stops_tempering_early_does_not_cut_it(name):
    model = SGLBRegressor(sampler=name, n_estimators=200, learning_rate=0.3, random_state=0)
    sets = {"eval_set": (X[200:], Y[200:]), "eval_metric": "rmse"}
    model.fit(X[:200], Y[:200], **sets, callbacks=sglb.EarlyStopping(7))
    (errors,) = next(iter(model.evals_result_.values())).values()
    assert len(errors) < 200
    assert model.best_iteration_ < len(errors)
    assert {len(chain) for chain in chains_of_draws(model._model)} == {len(errors)}
    assert rmse(model.predict(X[200:])) == pytest.approx(errors[-1], rel=1e-9)


@pytest.fixture(scope="module")
def scored():
    model = SGLBRegressor(
        sampler=Tempering(0.1, 1.0, 2.0, hot_temperature=1.1, n_replicas=3, swap_every=2),
        n_estimators=120,
        max_depth=2,
        leaf_method="gradient",
        random_state=0,
    ).fit(X[:200], Y[:200], eval_set=(X[200:], Y[200:]), eval_metric="rmse")
    recorded = np.array(next(iter(model.evals_result_.values()))["rmse"])
    temperatures = [chain.temperatures for chain in chains_of_draws(model._model)]
    assert np.count_nonzero(np.diff(np.argmin(temperatures, axis=0))) > 5  # another is the coldest
    return model, recorded


def rmse(prediction):
    return np.sqrt(np.mean(np.square(prediction - Y[200:])))


def test_stages_of_tempering_are_the_chain_that_was_the_coldest_then(scored):
    model, recorded = scored
    staged = [rmse(prediction) for prediction in model.staged_predict(X[200:])]
    assert np.abs(recorded - staged).max() < 1e-12
    for k in range(1, 121, 7):
        assert rmse(model.predict(X[200:], n_estimators=k)) == pytest.approx(recorded[k - 1])


def test_the_first_steps_of_tempering_keep_all_its_chains(scored, tmp_path):
    model, recorded = scored
    for k in (12, 31, 45, 78, 101):
        first = model[:k]
        assert {len(chain) for chain in chains_of_draws(first._model)} == {k}
        assert len(chains_of_draws(first._model)) == 3
        np.testing.assert_allclose(first.trace_.temperatures[-1], 1.0)
        assert first.swap_rates_ == model.swap_rates_
        *_, last = first.staged_predict(X[200:])
        assert rmse(last) == pytest.approx(recorded[k - 1], abs=1e-12)
        numbers = drawn_states(first._model, 10**6)
        assert sorted(np.concatenate(numbers)) == list(range(k // 2 + 1, k + 1))
        first.save(tmp_path / "first.sglb")
        again = sglb.load(tmp_path / "first.sglb")
        assert archive.dumps(again._model) == archive.dumps(first._model)
        assert archive.dumps(again[:9]._model) == archive.dumps(model[:9]._model)


class Breaks(sglb.BaseCallback):
    """Ends a fit by an error after so many steps."""

    def __init__(self, n_steps):
        self.n_steps = n_steps

    def step(self, info):
        if info.step == self.n_steps:
            raise ArithmeticError


def test_a_time_limit_keeps_the_steps_of_a_tempered_checkpoint(scored, tmp_path):
    # The chain that is the coldest takes its steps first, so that it has more than the others.
    whole, _ = scored
    model = SGLBRegressor(**(whole.get_params() | {"n_jobs": 1}))
    model.set_params(sampler=dataclasses.replace(model.sampler, swap_every=4))
    whole = model.fit(X, Y)._of(model._model)
    switched = False
    for n_steps in range(7, 40, 4):
        path = tmp_path / f"{n_steps}"
        with pytest.raises(ArithmeticError):
            model.fit(X, Y, callbacks=[sglb.Checkpoint(path, 1), Breaks(n_steps + 1)])
        model.fit(X, Y, callbacks=sglb.TimeLimit(0), resume_from=path)
        assert model.n_iter_ == n_steps
        assert np.array_equal(model.predict(X), whole.predict(X, n_estimators=n_steps))
        switched |= bool(np.ptp(model.trace_.temperatures))
    assert switched


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tempering(0.1, 1.0, 0.1, 0.5), "hot_temperature must be above the temperature"),
        (lambda: Tempering(0.1, 0.0, 0.1, 0.5), "temperature must be above 0"),
        (lambda: Tempering(0.1, 1e-3, 0.1, 1.0), "shrink_rate must be below 0.01, because the hot"),
        (lambda: Tempering(0.1, 0.1, 0.1, 0.5, n_replicas=1), "n_replicas must be at least 2"),
        (lambda: Tempering(0.1, 0.1, 0.1, 0.5, n_replicas=10**9), "n_replicas must be at most 1,0"),
        (lambda: Tempering(0.1, 0.1, 0.1, 0.5, n_replicas=2.5), "n_replicas must be a whole numb"),
        (lambda: Tempering(0.1, 0.1, 0.1, 0.5, swap_every=0.5), "swap_every must be a whole numb"),
        (
            lambda: SGLBRegressor(sampler=LADDER, n_chains=2).fit(X, Y),
            "n_chains=2 is not allowed with sampler=Tempering",
        ),
        (
            lambda: SGLBRegressor(sampler="tempering", n_chains=2).fit(X, Y),
            "n_chains=2 is not allowed with sampler='tempering'",
        ),
        *(
            (
                lambda loss=loss: SGLBRanker(loss=loss, sampler="tempering").fit(
                    X, np.arange(400) % 3, group=np.arange(400) // 10
                ),
                "exchanges temperatures by the sum of the loss, and steps of loss=",
            )
            for loss in ("stochastic_rank", "yeti", "lambdarank", "xendcg", OwnMetric(np.mean))
        ),
    ],
)
def test_invalid_settings_are_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("sampler", [Langevin, Hamiltonian])
def test_structure_noise_is_a_multiple_of_the_noise_of_the_leaves(sampler):
    for factor in (0.0, 0.5, 2.0):
        move = sampler(0.1, 2.0, 0.01, structure_noise=factor).move(1)
        assert move.noise > 0.0
        assert move.structure_noise == pytest.approx(factor * move.noise, rel=1e-14)
