"""Extreme weights, targets, rates and sizes: finite predictions or a clear error."""

import warnings

import numpy as np
import pytest

from sglb import ChainDiverged, SGLBClassifier, SGLBRanker, SGLBRegressor, load

rng = np.random.default_rng(12)
X = rng.normal(size=(120, 3))
SCORE = X[:, 0] + rng.normal(size=120)
GROUP = np.arange(120) // 12
SMALL = {"n_estimators": 8, "max_depth": 3, "random_state": 0, "n_jobs": 1}
AMOUNTS = np.exp(SCORE)

FITS = {
    "squared": (SGLBRegressor, {}, SCORE),
    "quantile": (SGLBRegressor, {"loss": "quantile", "quantile": [0.01, 0.99]}, SCORE),
    "absolute": (SGLBRegressor, {"loss": "absolute"}, SCORE),
    "huber": (SGLBRegressor, {"loss": "huber"}, SCORE),
    "poisson": (SGLBRegressor, {"loss": "poisson"}, AMOUNTS.round()),
    "gamma": (SGLBRegressor, {"loss": "gamma"}, AMOUNTS),
    "tweedie": (SGLBRegressor, {"loss": "tweedie", "tweedie_power": 1.1}, AMOUNTS.round()),
    "welsch": (SGLBRegressor, {"loss": "welsch"}, SCORE),
    "logistic": (SGLBClassifier, {}, SCORE > 0),
    "softmax": (SGLBClassifier, {}, np.digitize(SCORE, [-1, 0, 1])),
    "sla": (SGLBClassifier, {"loss": "sla"}, SCORE > 0),
    "cost": (SGLBClassifier, {"loss": "cost"}, SCORE > 0),
    "query_squared": (SGLBRanker, {}, AMOUNTS.round().clip(0, 4)),
    "pairwise_logistic": (SGLBRanker, {"loss": "pairwise_logistic"}, AMOUNTS.round().clip(0, 4)),
    "stochastic_rank": (SGLBRanker, {"loss": "stochastic_rank"}, AMOUNTS.round().clip(0, 4)),
    "yeti": (SGLBRanker, {"loss": "yeti"}, AMOUNTS.round().clip(0, 4)),
    "xendcg": (SGLBRanker, {"loss": "xendcg"}, AMOUNTS.round().clip(0, 4)),
}
EVERY = pytest.mark.parametrize("name", FITS)


def outcome(name, *, y=None, weight=None, costs=((0.0, 1.0), (5.0, 0.0)), **parameters):
    """Fit and predict: "finite", or the words of an error."""
    kind, stated, target = FITS[name]
    arguments = {"group": GROUP} if kind is SGLBRanker else {}
    if name == "cost":
        arguments = {"costs": costs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = kind(**SMALL | stated | parameters)
            model.fit(X, target if y is None else y, sample_weight=weight, **arguments)
        except (ValueError, ChainDiverged) as error:
            return str(error)
    predictions = [model.predict_raw(X), *model.staged_predict(X[:9])]
    predictions += [model.predict_proba(X)] if kind is SGLBClassifier else [model.predict(X)]
    for prediction in predictions:
        values = np.asarray(prediction)
        assert values.dtype.kind not in "fc" or np.isfinite(values).all()
    return "finite"


def assert_clear(words, *hints):
    """A finite model, or an error that names what is too large and what would do."""
    assert words == "finite" or any(hint in words for hint in hints), words


WEIGHTS = {
    "tiny": np.full(120, 5e-324),
    "small": np.full(120, 1e-300),
    "huge": np.full(120, 1e300),
    "largest": np.full(120, np.finfo(float).max),
    "wide": 10.0 ** rng.uniform(-300, 300, 120),
    "a single row": (np.arange(120) == 7) * 1.0,
    "a giant": np.where(np.arange(120) == 7, 1e15, 1.0),
}


@EVERY
@pytest.mark.parametrize("weights", WEIGHTS)
def test_extreme_weights_give_finite_predictions_or_a_clear_error(name, weights):
    words = outcome(name, weight=WEIGHTS[weights])
    assert_clear(words, "weight")


@pytest.mark.parametrize("name", [n for n, (kind, *_) in FITS.items() if kind is SGLBRegressor])
@pytest.mark.parametrize("factor", [5e-324, 1e-300, 1e-150, 1e100, 1e150, 1e300, 1e305])
def test_extreme_targets_give_finite_predictions_or_a_clear_error(name, factor):
    target = FITS[name][2]
    assert_clear(outcome(name, y=target * factor), "y ", "target", "learning_rate")


@EVERY
@pytest.mark.parametrize("learning_rate", [5e-324, 1e-300, 1e-9, 1.0, 100.0, 1e10, 1e300])
@pytest.mark.parametrize("leaf_method", ["auto", "gradient"])
def test_extreme_learning_rates_give_finite_predictions_or_a_clear_error(
    name, learning_rate, leaf_method
):
    words = outcome(name, learning_rate=learning_rate, leaf_method=leaf_method)
    assert_clear(words, "learning_rate")


@EVERY
@pytest.mark.parametrize(
    "parameters",
    [
        {"random_strength": 1e-300},
        {"random_strength": 1e300},
        {"l2_regularization": 5e-324},
        {"l2_regularization": 1e300},
        {"temperature": 5e-324},
        {"temperature": 1e300},
        {"shrink_rate": 1e-300, "learning_rate": 0.1},
        {"structure_noise": 1e300},
        {"subsample": 1e-9},
        {"sampler": "hamiltonian", "friction": 1e-12},
        {"sampler": "hamiltonian", "friction": 1.0},
        {"sampler": "hamiltonian", "temperature": 1e250},
    ],
    ids=str,
)
def test_extreme_parameters_give_finite_predictions_or_a_clear_error(name, parameters):
    assert_clear(outcome(name, **parameters), *parameters, "learning_rate")


@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1e150, 1e300])
def test_extreme_costs_give_finite_predictions_or_a_clear_error(unit):
    costs = ((0.0, unit), (5.0 * unit, 0.0))
    assert_clear(outcome("cost", costs=costs), "costs")


def test_a_column_has_255_codes_and_more_where_values_are_missing():
    column = np.arange(5080.0).reshape(-1, 1)
    column[::20] = np.nan
    model = SGLBRegressor(
        n_estimators=40, max_depth=6, max_bins=255, learning_rate=0.5, random_state=0
    )
    model.fit(column, np.where(np.isnan(column[:, 0]), -9.0, column[:, 0] % 7))
    trace = model._model.traces[0]
    assert trace.bins.n_thresholds.tolist() == [254]
    codes = trace.bins.encode(column)
    assert sorted(set(codes.ravel().tolist())) == list(range(256))
    assert np.isfinite(model.predict(column)).all()


def test_trees_of_depth_16_have_leaves_of_their_own_and_are_read_again(tmp_path):
    rows = rng.permutation(1 << 16)
    bits = ((rows[:, None] >> np.arange(16)) & 1).astype(float)
    y = bits @ (1.5 ** np.arange(16))
    model = SGLBRegressor(
        n_estimators=2, max_depth=16, learning_rate=1.0, leaf_method="newton", random_state=0,
        l2_regularization=0.0, sampler="plain", structure_sample=1.0,
    )  # fmt: skip
    model.fit(bits, y)
    trace = model._model.traces[0]
    assert trace.depths.max() == 16
    assert len(np.unique(trace.values[0])) > 1 << 15
    assert np.abs(model.predict(bits) - y).max() < 1e-6 * y.max()
    model.save(tmp_path / "m.sglb")
    assert np.array_equal(load(tmp_path / "m.sglb").predict(bits), model.predict(bits))


def test_a_hundred_thousand_trees_are_trained_saved_and_read(tmp_path):
    model = SGLBRegressor(n_estimators=100_000, max_depth=1, random_state=0, n_jobs=1)
    model.fit(X[:, :1], SCORE)
    assert model.n_iter_ == 100_000
    model.save(tmp_path / "m.sglb")
    again = load(tmp_path / "m.sglb")
    predictions = model.predict(X[:, :1])
    assert np.isfinite(predictions).all()
    assert again.predict(X[:, :1]).tobytes() == predictions.tobytes()
    assert again.n_iter_ == 100_000
