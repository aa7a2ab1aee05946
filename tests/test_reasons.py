"""A call that cannot answer says what to pass: methods of uncertainty times families of losses."""

import warnings

import numpy as np
import pytest

from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = np.exp(0.3 * X[:, 0])
FAST = {"n_estimators": 5, "max_depth": 2, "random_state": 0}
QUERIES = np.repeat(np.arange(12), 10)


class LogCosh:
    def loss(self, y, raw):
        return np.logaddexp(raw - y, y - raw)

    def gradient(self, y, raw):
        return np.tanh(raw - y)


# Losses of numbers by what they know of y: its law after uncertainty=True, quantiles, or nothing.
LAWS = {name: {"loss": name} for name in ("squared", "poisson", "gamma", "tweedie")}
QUANTILES = {"quantiles": {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]}}
NO_LAW = {name: {"loss": name} for name in ("quantile", "absolute", "huber", "cauchy", "welsch")}
NO_LAW["own"] = {"loss": LogCosh()}
NUMBERS = LAWS | QUANTILES | NO_LAW
CLASSES = {"two": Y > 1.0, "three": np.digitize(Y, [0.8, 1.2])}

OF_OUTCOMES = {
    "predict_interval": lambda model: model.predict_interval(X),
    "predict_quantiles": lambda model: model.predict_quantiles(X, [0.1, 0.9]),
    "predict_distribution": lambda model: model.predict_distribution(X),
    "predict": lambda model: model.predict(X, return_std=True),
}


def target_of(name):
    return np.round(Y) if name == "poisson" else Y


def fitted(name, uncertainty):
    return SGLBRegressor(uncertainty=uncertainty, **FAST, **NUMBERS[name]).fit(X, target_of(name))


@pytest.fixture(scope="module")
def models():
    return {(name, flag): fitted(name, flag) for name in NUMBERS for flag in (False, True)}


@pytest.mark.parametrize("call", OF_OUTCOMES.values(), ids=OF_OUTCOMES)
@pytest.mark.parametrize("name", NUMBERS)
def test_the_distribution_of_y_is_there_or_the_error_says_what_to_pass(models, name, call):
    plain, full = models[name, False], models[name, True]
    if name in LAWS:
        with pytest.raises(ValueError, match=r"fit it with uncertainty=True"):
            call(plain)
        call(full)
    elif name in QUANTILES:
        call(plain)
        call(full)
    else:
        for model in (plain, full):
            advice = (
                r"loss '\w+' has no distribution of y.* fit with uncertainty=True and one of"
                r" loss='gamma', 'poisson', 'squared', 'tweedie', or with loss='quantile',"
                r" quantile=\[0.05, 0.5, 0.95\]; or use conformalize\("
            )
            with pytest.raises(ValueError, match=advice):
                call(model)


@pytest.mark.parametrize("name", NUMBERS)
def test_knowledge_of_numbers_is_there_or_a_warning_says_what_to_pass(models, name):
    with pytest.warns(UserWarning, match="Fit with uncertainty=True"):
        models[name, False].predict_uncertainty(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (models[name, True].predict_uncertainty(X).knowledge > 0.0).any()


@pytest.mark.parametrize("name", NUMBERS)
def test_a_posterior_of_numbers_is_there_after_any_fit(models, name):
    plain, full, y = models[name, False], models[name, True], target_of(name)
    assert plain.posterior(X, y, n_draws=4).plan.temperature > 0.0
    assert plain.posterior(X, y, n_draws=4, temperature=0.1).n_draws == 4
    assert full.posterior(X, y, n_draws=4).n_draws == 4


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("name", NUMBERS)
def test_conformal_intervals_are_there_for_every_loss_after_any_fit(models, name, flag):
    model = models[name, flag].conformalize(X, target_of(name))
    assert np.shape(model.predict_interval(X, coverage=0.8).bounds) == (len(X), 2)


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_sets_and_draws_and_the_errors_name_them(name, flag):
    y = CLASSES[name]
    model = SGLBClassifier(uncertainty=flag, **FAST).fit(X, y)
    for method in ("predict_interval", "predict_quantiles", "predict_distribution"):
        assert not hasattr(model, method)
        advice = (
            r"SGLBClassifier does not have this method: .*predict_proba.*predict_set.*posterior"
        )
        with pytest.raises(AttributeError, match=advice):
            getattr(model, method)
    assert model.posterior(X, y, n_draws=4).n_draws == 4
    assert len(model.conformalize(X, y).predict_set(X, coverage=0.8)) == len(X)
    if flag:
        assert (model.predict_uncertainty(X).knowledge > 0.0).any()
    else:
        with pytest.warns(UserWarning, match="Fit with uncertainty=True"):
            model.predict_uncertainty(X)


def test_a_ranker_says_that_it_has_scores_of_several_chains():
    model = SGLBRanker(**FAST).fit(X, np.round(Y), group=QUERIES)
    for method in (
        "posterior",
        "predict_interval",
        "predict_quantiles",
        "predict_distribution",
        "predict_uncertainty",
        "conformalize",
    ):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError, match=r"SGLBRanker .*predict_raw_chains") as error:
            getattr(model, method)
        assert "(n_chains)" in str(error.value)
    with pytest.raises(TypeError, match="no parameter 'uncertainty'"):
        SGLBRanker(uncertainty=True)
