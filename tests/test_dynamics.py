"""Samplers beyond Langevin's, by name: files, threads, stages, early stopping, draws."""

import numpy as np
import pytest

import sglb
from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor
from sglb.samplers import Cyclical, Hamiltonian, Langevin, Tempering

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
    sampler = Cyclical(0.2, 0.5, 0.1, cycle_length=10, drawn=0.4)
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
    sampler = Cyclical(0.1, 1e-3, 0.1, cycle_length=20, drawn=0.25)
    model = SGLBRegressor(sampler=sampler, n_estimators=100, leaf_method="gradient").fit(X, Y)
    assert len(model._numbers_of_draws(1000)[0]) == 15  # of the last three cycles, five each
    assert all((number - 1) % 20 >= 15 for number in model._numbers_of_draws(7)[0])


def test_a_ladder_is_geometric_and_has_one_prior():
    rungs = Tempering(0.02, 0.01, 0.2, hot_temperature=1.0, n_replicas=3).ladder()
    assert [rung.temperature for rung in rungs] == pytest.approx([0.01, 0.1, 1.0])
    priors = [rung.temperature / rung.shrink_rate for rung in rungs]
    assert priors == pytest.approx([0.05] * 3)


def test_tempering_tells_how_often_neighbours_exchange(capsys):
    SGLBRegressor(sampler="tempering", n_estimators=60, random_state=0, verbose=30).fit(X, Y)
    assert "accepted exchanges between neighbours, the coldest first: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cyclical(0.1, 1.0, 0.1, cycle_length=1), "cycle_length must be at least 2"),
        (lambda: Cyclical(0.1, 1.0, 0.1, 10, drawn=0.0), r"drawn must be in \(0, 1\]"),
        (lambda: Tempering(0.1, 1.0, 0.1, 0.5), "hot_temperature must be above the temperature"),
        (lambda: Tempering(0.1, 0.0, 0.1, 0.5), "temperature must be above 0"),
        (lambda: Tempering(0.1, 1e-3, 0.1, 1.0), "shrink_rate must be below 0.01, because the hot"),
        (lambda: Tempering(0.1, 0.1, 0.1, 0.5, n_replicas=1), "n_replicas must be at least 2"),
        (
            lambda: SGLBRegressor(sampler="tempering", n_chains=2).fit(X, Y),
            "n_chains=2 is not allowed with sampler='tempering'",
        ),
    ],
)
def test_invalid_settings_are_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("sampler", [Langevin, Hamiltonian, Cyclical])
def test_structure_noise_is_a_multiple_of_the_noise_of_the_leaves(sampler):
    lengths = {"cycle_length": 2} if sampler is Cyclical else {}
    for factor in (0.0, 0.5, 2.0):
        move = sampler(0.1, 2.0, 0.01, **lengths, structure_noise=factor).move(1)
        assert move.noise > 0.0
        assert move.structure_noise == pytest.approx(factor * move.noise, rel=1e-14)
