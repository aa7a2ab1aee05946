"""Draws of fitted models: centred, in any unit, the same bits, and honest about themselves."""

import hashlib
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as numpy_load
from safetensors.numpy import save as numpy_save
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from sglb import ModelFormatError, SGLBClassifier, SGLBRegressor, archive, load
from sglb.losses import get_loss
from sglb.posterior import PosteriorPlan
from sglb.posterior.harmless import PRIOR_VARIANCES
from sglb.posterior.of_model import LEAST_TEMPERATURE, noise_temperature, variance_of_numbers
from sglb.target import Target
from sglb.uncertainty import of_probabilities

FAST = {"n_estimators": 60, "random_state": 0, "max_depth": 3}
NUMBERS = load_diabetes(return_X_y=True)
TWO = load_breast_cancer(return_X_y=True)
THREE = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def two():
    model = SGLBClassifier(**FAST).fit(*TWO)
    return model, model.posterior(*TWO, n_draws=40, prior_variance=0.3)


@pytest.fixture(scope="module")
def numbers():
    model = SGLBRegressor(uncertainty=True, **FAST).fit(*NUMBERS)
    return model, model.posterior(*NUMBERS, n_draws=40)


def test_draws_have_the_shapes_of_their_task(two, numbers):
    assert two[1].predict_raw(TWO[0]).shape == (40, 569)
    assert two[1].predict(TWO[0]).shape == (40, 569, 2)
    assert numbers[1].predict(NUMBERS[0]).shape == (40, 442)
    assert numbers[1].interval(NUMBERS[0], 0.5).shape == (442, 2)
    model = SGLBClassifier(**FAST).fit(*THREE)
    post = model.posterior(*THREE, n_draws=4)
    assert post.predict_raw(THREE[0]).shape == (4, 150, 3)
    probability = post.predict(THREE[0])
    np.testing.assert_allclose(probability.sum(axis=-1), 1.0)
    assert post.predict(THREE[0][:0]).shape == (4, 0, 3)
    assert post.uncertainty(THREE[0]).mean.shape == (150, 3)


def test_the_mean_of_raw_scores_is_the_model(two, numbers):
    for (model, post), X in ((two, TWO[0]), (numbers, NUMBERS[0])):
        raw = post.predict_raw(X)
        np.testing.assert_allclose(raw.mean(axis=0), model.predict_raw(X), rtol=1e-4, atol=1e-4)
        assert (raw.std(axis=0) > 0.0).all()


def test_statistics_are_those_of_the_draws(two):
    _, post = two
    draws = post.predict(TWO[0])
    np.testing.assert_allclose(post.mean(TWO[0]), draws.mean(axis=0))
    np.testing.assert_allclose(post.std(TWO[0]), draws.std(axis=0))
    np.testing.assert_allclose(
        post.interval(TWO[0], 0.8), np.moveaxis(np.quantile(draws, [0.1, 0.9], axis=0), 0, -1)
    )
    for part, expected in zip(post.uncertainty(TWO[0]), of_probabilities(draws), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-12)


def test_a_larger_prior_variance_is_more_spread(two):
    model, _ = two
    spreads = [
        model.posterior(*TWO, n_draws=40, prior_variance=variance).std(TWO[0]).mean()
        for variance in (0.01, 0.1, 1.0)
    ]
    assert spreads == sorted(spreads)


def test_automatic_draws_predict_as_well_as_the_model(two):
    model, _ = two
    post = model.posterior(*TWO)
    assert post.plan.prior_variance in PRIOR_VARIANCES
    truth = np.arange(569), TWO[1]
    of_model, mean = (
        -np.log(p[truth]).mean() for p in (model.predict_proba(TWO[0]), post.mean(TWO[0]))
    )
    assert mean < 1.02 * of_model


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_any_number_of_threads_gives_the_same_bits(two, n_jobs):
    model = SGLBClassifier(n_jobs=n_jobs, **FAST).fit(*TWO)
    post = model.posterior(*TWO, n_draws=40, prior_variance=0.3)
    assert (post.predict_raw(TWO[0]) == two[1].predict_raw(TWO[0])).all()


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_unit_of_y_does_not_matter(numbers, factor):
    X, y = NUMBERS
    model = SGLBRegressor(uncertainty=True, **FAST).fit(X, factor * y)
    expected = numbers[0].predict_uncertainty(X)
    actual = model.predict_uncertainty(X)
    np.testing.assert_allclose(actual.knowledge, factor**2 * expected.knowledge, rtol=1e-3)
    np.testing.assert_allclose(actual.total, factor**2 * expected.total, rtol=1e-3)


def test_rows_that_are_unlike_any_others_are_less_known(two):
    _, post = two
    rng = np.random.default_rng(0)
    strange = np.column_stack([rng.permutation(column) for column in TWO[0].T])
    known, unknown = (post.uncertainty(X).knowledge.mean() for X in (TWO[0], strange))
    assert unknown > 2.0 * known


def test_uncertainty_of_a_fit_is_that_of_its_posterior():
    model = SGLBClassifier(uncertainty=True, **FAST).fit(*TWO)
    plain = SGLBClassifier(**FAST).fit(*TWO)
    assert (model.predict_proba(TWO[0]) == plain.predict_proba(TWO[0])).all()
    u = model.predict_uncertainty(TWO[0])
    expected = plain.posterior(*TWO, n_draws=64).uncertainty(TWO[0])
    for part, other in zip(u, expected, strict=True):
        assert (part == other).all()
    assert u.knowledge.mean() > 1e-4


def test_parts_of_the_variance_add_up(numbers):
    model, _ = numbers
    u = model.predict_uncertainty(NUMBERS[0])
    np.testing.assert_allclose(u.knowledge + u.data, u.total)
    assert (u.data >= 0.0).all()
    assert (u.total >= model.predict_distribution(NUMBERS[0]).variance).all()


def test_losses_without_a_law_have_knowledge_only():
    model = SGLBRegressor(loss="huber", uncertainty=True, **FAST).fit(*NUMBERS)
    u = model.predict_uncertainty(NUMBERS[0])
    assert u.data is None
    assert u.total is None
    assert (u.knowledge > 0.0).all()


class LogCosh:
    def loss(self, y, raw):
        return np.logaddexp(raw - y, y - raw)

    def gradient(self, y, raw):
        return np.tanh(raw - y)


def test_a_loss_of_the_users_own_has_a_posterior():
    X, y = NUMBERS
    model = SGLBRegressor(loss=LogCosh(), uncertainty=True, **FAST).fit(X, (y - 150.0) / 80.0)
    assert (model.predict_uncertainty(X).knowledge > 0.0).all()


def test_the_full_posterior_of_weights_and_categories():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=600), "b": pd.Categorical(rng.integers(0, 90, 600))})
    y = (frame["a"] + 0.02 * frame["b"].astype(int) + rng.normal(size=600) > 1.0).astype(int)
    weight = rng.uniform(0.5, 2.0, 600)
    model = SGLBClassifier(**FAST).fit(frame, y, weight)
    post = model.posterior(
        frame, y, weight, kind="full", n_draws=20, prior_variance=1.0, n_steps=300
    )
    mean = post.mean(frame)[:, 1]
    assert np.corrcoef(mean, model.predict_proba(frame)[:, 1])[0, 1] > 0.8
    assert "kind='full'" in repr(post)


def test_several_classes_around_the_model_spread_as_the_loss_itself_does():
    """Laplace has the whole block of a row's curvature, at the model; a long chain has the loss.

    Raw scores to a constant; deviations of 192 draws are off by 5 % each.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    odds = np.exp(0.7 * np.column_stack([X, -X.sum(axis=1)]))
    share = np.cumsum(odds, axis=1) / odds.sum(axis=1, keepdims=True)
    y = (rng.random(800)[:, None] > share).sum(axis=1)
    model = SGLBClassifier(n_estimators=30, max_depth=3, random_state=0).fit(X, y)
    deviation = {}
    for kind, n_steps in (("laplace", 300), ("full", 1000)):
        raw = model.posterior(
            X, y, kind=kind, n_draws=192, prior_variance=0.3, n_steps=n_steps
        ).predict_raw(X[:200])
        deviation[kind] = (raw - raw.mean(axis=2, keepdims=True)).std(axis=0).ravel()
    ratio = deviation["laplace"] / deviation["full"]
    assert 0.95 < ratio.mean() < 1.05
    assert np.quantile(ratio, 0.05) > 0.8
    assert np.quantile(ratio, 0.95) < 1.25
    assert np.corrcoef(deviation["laplace"], deviation["full"])[0, 1] > 0.9


def test_a_summary_prints_and_warns(two):
    model, post = two
    good = post.summary()
    assert good.share_converged > 0.9
    assert "effective draws" in str(good)
    assert len(good.warnings) == 1  # 40 draws
    short = model.posterior(*TWO, n_draws=40, prior_variance=3.0, n_steps=40).summary()
    assert any("n_steps=40" in text for text in short.warnings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 3}, "n_draws=3 is not allowed; use an even integer"),
        ({"kind": "long"}, "kind='long' is not allowed; use 'laplace' or 'full' or 'paper'"),
        ({"prior_variance": 0.0}, "prior_variance=0.0 is not allowed"),
        ({"temperature": -1.0}, "temperature=-1.0 is not allowed"),
        ({"n_steps": -1}, "n_steps=-1 is not allowed"),
    ],
)
def test_wrong_arguments_are_rejected(two, options, message):
    with pytest.raises(ValueError, match=message):
        two[0].posterior(*TWO, **options)


def test_a_posterior_asks_for_what_it_needs():
    X, y = NUMBERS
    model = SGLBRegressor(**FAST).fit(X, y)
    with pytest.raises(ValueError, match="temperature='auto' needs two rows or more"):
        model.posterior(X[:1], y[:1])
    assert model.posterior(X, y, temperature=3000.0, n_draws=4).n_draws == 4
    with pytest.raises(ValueError, match="X has 442 rows but y has 10"):
        model.posterior(X, y[:10], temperature=1.0)
    classes = SGLBClassifier(**FAST).fit(*TWO)
    with pytest.raises(ValueError, match="labels that do not occur in the training rows"):
        classes.posterior(TWO[0], TWO[1] + 1)


def test_the_temperature_of_the_squared_loss_is_the_variance_of_the_residuals():
    y, raw = np.array([1.0, 2.0, 5.0]), np.array([[0.0, 4.0, 5.0]])
    assert noise_temperature(get_loss("squared"), Target.of(y), raw) == pytest.approx(5.0 / 3.0)
    weighted = Target.of(y, [2.0, 1.0, 1.0])
    assert noise_temperature(get_loss("squared"), weighted, raw) == pytest.approx(6.0 / 4.0)
    assert noise_temperature(get_loss("squared"), Target.of(y), y[None]) == LEAST_TEMPERATURE


def test_a_temperature_that_is_not_allowed_is_named(two):
    with pytest.raises(ValueError, match=r"^temperature=0 is not allowed"):
        two[0].posterior(*TWO, temperature=0)


def automatic(name, y, raw, temperature, kind="laplace"):
    loss, target = get_loss(name), Target.of(np.array(y))
    plan = PosteriorPlan(kind, temperature=temperature)
    return variance_of_numbers(loss.adapt(target), target, np.array([raw]), plan)


def test_the_automatic_prior_variance_is_in_units_of_what_a_row_tells():
    assert automatic("squared", [1.0, 7.0, 3.0], [2.0, 2.0, 0.0], 9.0) == 0.3
    assert automatic("squared", [1.0, 7.0, 3.0], [2.0, 2.0, 0.0], 9.0, "full") == 1.0
    # Of counts the curvature is the mean; the variance of a log mean is .3 at most, whatever T.
    log_means = np.log([50.0, 100.0, 150.0])
    assert automatic("poisson", [40.0, 90.0, 170.0], log_means, 2.0) == pytest.approx(0.003)
    assert automatic("poisson", [0.0, 1.0, 0.0], np.log([0.1, 0.2, 0.3]), 2.0) == 0.15
    # |gradient| of the absolute loss is 1, so that a row tells its median with variance T^2.
    assert automatic("absolute", [0.0, 1.0, 2.0], [0.0, 1.0, 2.0], 5.0) == pytest.approx(1.5)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_automatic_draws_follow_the_unit_of_y(loss):
    X, y = NUMBERS
    spread = []
    for unit in (1.0, 1024.0):
        model = SGLBRegressor(loss=loss, uncertainty=True, **FAST).fit(X, unit * y)
        spread.append(model.posterior(X, unit * y, n_draws=20).std(X) / unit)
    np.testing.assert_allclose(spread[1], spread[0], rtol=1e-3)


def test_large_counts_have_draws_of_their_size():
    """The diabetes scores as counts: mean 152, and 20 times the variance of a Poisson law."""
    X, y = NUMBERS
    model = SGLBRegressor(loss="poisson", uncertainty=True, **FAST).fit(X, np.round(y))
    std = np.sqrt(model.predict_uncertainty(X).knowledge)
    assert 10.0 < np.median(std) < 77.0  # the spread of y
    assert std.max() < 4.0 * 77.0


def test_one_row_is_too_few_to_compare_with_predictions():
    X, y = NUMBERS
    with pytest.raises(ValueError, match=r"uncertainty=True needs two rows or more.* there is 1"):
        SGLBRegressor(uncertainty=True, **FAST).fit(X[:3], y[:3], sample_weight=[0.0, 1.0, 0.0])
    assert np.isfinite(
        SGLBRegressor(uncertainty=True, **FAST).fit(X[:2], y[:2]).predict_interval(X)
    ).all()


def assert_same(model, other, X):
    for part, expected in zip(
        other.predict_uncertainty(X), model.predict_uncertainty(X), strict=True
    ):
        assert (part is None and expected is None) or (part == expected).all()


@pytest.mark.parametrize("n_chains", [1, 2])
def test_a_file_holds_error_bars(tmp_path, n_chains):
    X, y = NUMBERS
    model = SGLBRegressor(uncertainty=True, n_chains=n_chains, **FAST).fit(X, y)
    model.save(tmp_path / "m.sglb")
    loaded = load(tmp_path / "m.sglb")
    assert_same(model, loaded, X)
    assert (loaded.predict_interval(X) == model.predict_interval(X)).all()
    assert loaded.posterior(X, y, n_draws=4).plan == model.posterior(X, y, n_draws=4).plan
    assert archive.dumps(loaded._model) == archive.dumps(model._model)
    assert_same(model, pickle.loads(pickle.dumps(model)), X)


def test_a_file_holds_draws_of_classes_and_counts(tmp_path):
    model = SGLBClassifier(uncertainty=True, **FAST).fit(*THREE)
    model.save(tmp_path / "m.sglb")
    assert_same(model, load(tmp_path / "m.sglb"), THREE[0])
    counts = SGLBRegressor(loss="poisson", uncertainty=True, **FAST).fit(
        NUMBERS[0], np.round(NUMBERS[1])
    )
    counts.save(tmp_path / "c.sglb")
    other = load(tmp_path / "c.sglb")
    assert (other.predict_interval(NUMBERS[0]) == counts.predict_interval(NUMBERS[0])).all()


def forged(model, part, change):
    """The bytes of a model with a changed part and a digest that fits it."""
    data = archive.dumps(model._model)
    header = int.from_bytes(data[:8], "little")
    arrays = numpy_load(data)
    metadata = json.loads(data[8 : 8 + header])["__metadata__"]
    blob = arrays[f"part_{part}"].tobytes()
    inner = numpy_load(blob)
    length = int.from_bytes(blob[:8], "little")
    document = json.loads(json.loads(blob[8 : 8 + length])["__metadata__"]["part"])
    change(document, inner)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    packed = numpy_save(inner, metadata={"part": text})
    arrays[f"part_{part}"] = np.frombuffer(packed, dtype=np.uint8)
    body = numpy_save(arrays, metadata=metadata)[:-32]
    return body + hashlib.sha256(body).digest()


def put(**values):
    return lambda document, arrays: document.update(values)


def put_plan(**values):
    return lambda document, arrays: document["plan"].update(values)


def put_array(**values):
    return lambda document, arrays: arrays.update(values)


@pytest.mark.parametrize(
    ("part", "change", "field"),
    [
        ("outcomes", put(law="cauchy"), "outcomes.law"),
        ("outcomes", put(law="poisson"), "outcomes"),
        ("outcomes", put(unit=-1.0), "outcomes.unit"),
        ("outcomes", put(unit="a"), "outcomes.unit"),
        ("outcomes", put(parameters={"factor": 0.0, "df": 3.0}), "outcomes.factor"),
        ("outcomes", put(more=1), "outcomes"),
        ("outcomes", put_array(scale=np.zeros(3, np.uint8)), "outcomes.scale.size"),
        ("outcomes", put_array(scale=np.zeros(0, np.uint8)), "outcomes.scale"),
        ("posterior", put(mirror=False), "posterior"),
        ("posterior", put_plan(kind="long"), "posterior.kind"),
        ("posterior", put_plan(n_draws=-2), "posterior.n_draws"),
        ("posterior", put_plan(n_draws=98), "posterior.values"),
        ("posterior", put_plan(seed=1.5), "posterior.seed"),
        ("posterior", put_plan(temperature=0.0), "posterior.temperature"),
        ("posterior", put_plan(prior_variance=None), "posterior.prior_variance"),
        ("posterior", put_array(values=np.zeros((1, 1, 50), np.float32)), "posterior.values"),
        ("posterior", put_array(stages=np.zeros((2, 1, 3, 7))), "posterior.stages"),
        ("posterior", put_array(more=np.zeros(1)), "posterior"),
    ],
)
def test_forged_error_bars_are_rejected_by_their_field(numbers, part, change, field):
    with pytest.raises(ModelFormatError) as error:
        archive.loads(forged(numbers[0], part, change))
    assert error.value.field == field


def test_a_draw_that_is_not_finite_is_rejected(numbers):
    def spoil(document, arrays):
        arrays["values"] = np.where(arrays["values"] == 0.0, 0.0, np.nan).astype(np.float32)

    with pytest.raises(ModelFormatError, match="not finite"):
        archive.loads(forged(numbers[0], "posterior", spoil))


def test_an_automatic_number_of_steps_is_enough_and_not_more():
    """A sine of one column needs more than the fewest steps, many weak columns do not."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (1000, 1))
    sine = SGLBRegressor(n_estimators=50, random_state=0).fit(x, np.sin(2 * x[:, 0]))
    post = sine.posterior(x, np.sin(2 * x[:, 0]), temperature=0.1, prior_variance=1.0)
    assert post.plan.n_steps > 150
    assert abs(post.summary().change) < 0.15
    X = rng.normal(size=(1000, 10))
    y = X @ rng.normal(size=10) * 0.1 + rng.normal(size=1000)
    weak = SGLBRegressor(n_estimators=50, max_depth=3, random_state=0).fit(X, y)
    assert weak.posterior(X, y, temperature=1.0, prior_variance=0.1).plan.n_steps == 150
