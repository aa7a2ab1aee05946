"""A saved posterior is the same posterior: its draws, its model, its plan."""

import hashlib
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as numpy_load
from safetensors.numpy import save as numpy_save
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor

import sglb
from sglb import ModelFormatError, SGLBClassifier, SGLBRegressor, archive
from sglb.cli.apply import load_model
from sglb.losses.logistic import Logistic
from sglb.schedules import StepFunction

FAST = {"n_estimators": 30, "random_state": 0, "max_depth": 3}
NUMBERS = load_diabetes(return_X_y=True)
TWO = load_breast_cancer(return_X_y=True)
THREE = load_iris(return_X_y=True)


def table():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": pd.Categorical(rng.integers(0, 90, 300))})
    return frame, np.where(frame["a"] + rng.normal(size=300) > 0.0, "high", "low")


def numbers():
    model = SGLBRegressor(uncertainty=True, **FAST).fit(*NUMBERS)
    return model.posterior(*NUMBERS, n_draws=8), NUMBERS[0]


def two_chains():
    model = SGLBClassifier(n_chains=2, **FAST).fit(*TWO)
    return model.posterior(*TWO, n_draws=8, prior_variance=0.3), TWO[0]


def three_classes():
    return SGLBClassifier(**FAST).fit(*THREE).posterior(*THREE, n_draws=8), THREE[0]


def full():
    X, y = table()
    model = SGLBClassifier(**FAST).fit(X, y)
    return model.posterior(X, y, kind="full", n_draws=8, n_steps=20), X


def long_chains():
    X, y = table()
    model = SGLBClassifier(**FAST).fit(X, y)
    return model.posterior(X, y, kind="paper", n_draws=16, n_steps=60), X


CASES = {case.__name__: case for case in (numbers, two_chains, three_classes, full, long_chains)}


@pytest.fixture(scope="module", params=list(CASES))
def drawn(request):
    return CASES[request.param]()


@pytest.fixture(scope="module")
def chains():
    return SGLBClassifier(**FAST).fit(*TWO).posterior(*TWO, kind="paper", n_draws=16, n_steps=60)


@pytest.fixture(scope="module")
def two():
    return two_chains()[0]


def assert_same(post, other, X):
    assert type(other) is type(post)
    assert other.plan == post.plan
    assert (other.predict(X) == post.predict(X)).all()
    for part, expected in zip(other.uncertainty(X), post.uncertainty(X), strict=True):
        assert (part is None and expected is None) or (part == expected).all()
    assert str(other.summary()) == str(post.summary())
    assert (other.model.predict(X) == post.model.predict(X)).all()
    assert other.model.get_params() == post.model.get_params()


def test_a_loaded_posterior_is_the_same_bits(drawn, tmp_path):
    post, X = drawn
    post.save(tmp_path / "p.sglb")
    assert_same(post, sglb.load(tmp_path / "p.sglb"), X)


def test_an_unpickled_posterior_is_the_same_bits(drawn):
    post, X = drawn
    assert_same(post, pickle.loads(pickle.dumps(post)), X)


def test_saving_what_was_loaded_gives_the_same_file(drawn, tmp_path):
    post, _ = drawn
    post.save(tmp_path / "p.sglb")
    sglb.load(tmp_path / "p.sglb").save(tmp_path / "q.sglb")
    assert (tmp_path / "p.sglb").read_bytes() == (tmp_path / "q.sglb").read_bytes()


def test_the_model_keeps_error_bars_of_its_own(tmp_path):
    """Draws of another kind do not replace those that fit has made."""
    model = SGLBRegressor(uncertainty=True, **FAST).fit(*NUMBERS)
    post = model.posterior(*NUMBERS, kind="full", n_draws=4, prior_variance=0.1)
    post.save(tmp_path / "p.sglb")
    other = sglb.load(tmp_path / "p.sglb").model
    expected = model.predict_uncertainty(NUMBERS[0])
    assert (other.predict_uncertainty(NUMBERS[0]).knowledge == expected.knowledge).all()
    assert archive.dumps(other._model) == archive.dumps(model._model)


@pytest.mark.parametrize("kind", ["laplace", "paper"])
def test_another_fit_of_the_estimator_leaves_its_posterior_alone(kind):
    X, y = TWO
    model = SGLBClassifier(**FAST).fit(X, y)
    post = model.posterior(X, y, kind=kind, n_draws=8, n_steps=20, prior_variance=0.3)
    expected = post.predict(X)
    model.fit(X[:, ::-1], 1 - y)
    assert (post.predict(X) == expected).all()
    assert ((post.model.predict(X) == y).mean()) > 0.9


def test_a_model_of_another_library_is_not_ours_to_store(tmp_path):
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(*NUMBERS)
    post = sglb.posterior_of(forest, *NUMBERS, n_draws=4, temperature=3000.0)
    assert post.model is None
    with pytest.raises(TypeError, match=r"call sglb\.posterior_of\(model, X, y\) again"):
        post.save(tmp_path / "p.sglb")
    assert not list(tmp_path.iterdir())


class Odds:
    n_outputs = 1

    def loss(self, y, raw):
        return np.logaddexp(0.0, np.where(y > 0.0, -raw, raw))

    def gradient(self, y, raw):
        return self.link(raw) - y

    def link(self, raw):
        return 1.0 / (1.0 + np.exp(-raw))


def test_a_loss_of_the_users_own_is_in_the_pickle_and_not_in_the_file(tmp_path):
    model = SGLBClassifier(loss=Odds(), **FAST).fit(*TWO)
    post = model.posterior(*TWO, n_draws=4, prior_variance=0.3)
    again = pickle.loads(pickle.dumps(post))
    assert (again.predict(TWO[0]) == post.predict(TWO[0])).all()
    with pytest.warns(UserWarning, match="code and not in the file") as caught:
        post.save(tmp_path / "p.sglb")
    assert caught[0].filename == __file__
    other = sglb.load(tmp_path / "p.sglb")
    assert (other.predict_raw(TWO[0]) == post.predict_raw(TWO[0])).all()
    with pytest.raises(ValueError, match="has no probabilities"):
        other.predict(TWO[0])


class OwnLogistic(Logistic):
    """A loss of the user's own with a bounded second derivative, which kind='paper' asks for."""

    storable = False


def rate_of(step):
    return 0.1 if step < 20 else 0.05


LOST = {
    "random_state": lambda: {"random_state": np.random.RandomState(0)},
    "learning_rate": lambda: {"learning_rate": StepFunction(rate_of, 30), "temperature": 1e-3},
    "loss": lambda: {"loss": OwnLogistic()},
}


@pytest.mark.parametrize("name", LOST)
def test_long_chains_of_a_fit_whose_parameter_is_lost_come_back(name, tmp_path):
    model = SGLBClassifier(**(FAST | LOST[name]())).fit(*TWO)
    post = model.posterior(*TWO, kind="paper", n_draws=8, n_steps=40)
    post.save(tmp_path / "p.sglb")
    other = sglb.load(tmp_path / "p.sglb")
    assert other.plan == post.plan
    assert other.model.get_params()[name] is None
    assert (other.predict_raw(TWO[0]) == post.predict_raw(TWO[0])).all()
    other.save(tmp_path / "again.sglb")
    again = sglb.load(tmp_path / "again.sglb")
    assert (again.predict_raw(TWO[0]) == post.predict_raw(TWO[0])).all()


def test_the_command_line_uses_the_model_of_a_posterior(two, tmp_path):
    two.save(tmp_path / "p.sglb")
    model = load_model(tmp_path / "p.sglb", n_jobs=2)
    assert type(model) is SGLBClassifier
    assert model.n_jobs == 2


def forged(post, change, change_arrays=lambda arrays: None):
    """The bytes of a posterior whose draws were changed, with a digest that fits."""
    data = archive.dumps(post.model._model, post._posterior)
    arrays = numpy_load(data)
    metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    blob = arrays["part_draws"].tobytes()
    header = json.loads(blob[8 : 8 + int.from_bytes(blob[:8], "little")])
    document, inner = json.loads(header["__metadata__"]["part"]), numpy_load(blob)
    change(document, inner)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    packed = numpy_save(inner, metadata={"part": text})
    arrays["part_draws"] = np.frombuffer(packed, dtype=np.uint8)
    change_arrays(arrays)
    body = numpy_save(arrays, metadata=metadata)[:-32]
    return body + hashlib.sha256(body).digest()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda document, arrays: document["plan"].update(kind="full"), "draws"),
        (lambda document, arrays: document["plan"].update(kind="short"), "draws.kind"),
        (lambda document, arrays: document["plan"].update(n_draws=6), "draws.values"),
        (lambda document, arrays: document["plan"].update(n_steps=-1), "draws.n_steps"),
        (lambda document, arrays: document["plan"].update(temperature="hot"), "draws.temperature"),
        (lambda document, arrays: document["plan"].pop("seed"), "draws"),
        (lambda document, arrays: document.update(more=1), "draws"),
        (lambda document, arrays: document.pop("between_chains"), "draws.between_chains"),
        (lambda document, arrays: document.update(between_chains=-1.0), "draws.between_chains"),
        (lambda document, arrays: document.update(relaxations=-1.0), "draws.relaxations"),
        (lambda document, arrays: document.update(relaxations="many"), "draws.relaxations"),
        (lambda document, arrays: arrays.update(values=arrays["values"][:-1]), "draws.values"),
        (lambda document, arrays: arrays.update(values=np.inf * arrays["values"]), "draws.values"),
    ],
)
def test_forged_draws_are_rejected_by_their_field(two, tmp_path, change, field):
    (tmp_path / "p.sglb").write_bytes(forged(two, change))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ModelFormatError) as error:
            sglb.load(tmp_path / "p.sglb")
    assert error.value.field == field


def test_a_file_that_does_not_tell_relaxation_times_has_no_warning_of_them(two, tmp_path):
    (tmp_path / "p.sglb").write_bytes(forged(two, lambda document, _: document.pop("relaxations")))
    summary = sglb.load(tmp_path / "p.sglb").summary()
    assert summary.relaxations is None
    assert "relaxation times" not in str(summary)


def other_chains(name):
    """The bytes of a model that are put in place of the chains of a posterior."""
    if name == "numbers":
        model = SGLBRegressor(n_estimators=60, max_depth=2).fit(NUMBERS[0][:, :2], NUMBERS[1])
    else:
        model = SGLBClassifier(n_estimators=60, max_depth=2, sampler=name, n_chains=4)
        model.fit(*TWO)
    return np.frombuffer(archive.dumps(model._model), dtype=np.uint8)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda document, arrays: document["plan"].update(kind="full"), "draws"),
        (lambda document, arrays: document["plan"].update(n_draws=15), "draws.n_draws"),
        (lambda document, arrays: document["plan"].update(n_draws=0), "draws.n_draws"),
        (lambda document, arrays: document["plan"].update(n_draws=160), "draws.n_draws"),
        (lambda document, arrays: document["plan"].update(n_steps=59), "draws.n_steps"),
        (lambda document, arrays: document["plan"].update(temperature=2.0), "draws.chains"),
        (lambda document, arrays: document.update(mirror=False), "draws"),
        (lambda document, arrays: arrays.update(chains=np.zeros(3)), "draws.chains"),
        (
            lambda document, arrays: arrays.update(chains=arrays["chains"][:-1]),
            "draws.chains.sha256",
        ),
        (
            lambda document, arrays: arrays.update(chains=other_chains("numbers")),
            "draws.chains",
        ),
        (lambda document, arrays: arrays.update(chains=other_chains("plain")), "draws.chains"),
        (lambda document, arrays: arrays.update(watched=arrays["watched"][:3]), "draws.watched"),
        (
            lambda document, arrays: arrays.update(watched=np.nan * arrays["watched"]),
            "draws.watched",
        ),
        (lambda document, arrays: arrays.pop("watched"), "draws"),
    ],
)
@pytest.mark.filterwarnings("ignore:the chains are equal")
def test_forged_chains_are_rejected_by_their_field(chains, change, field):
    with pytest.raises(ModelFormatError) as error:
        archive.loads_with_draws(forged(chains, change))
    assert error.value.field == field


def test_long_chains_are_not_what_fit_draws(chains):
    def rename(arrays):
        arrays["part_posterior"] = arrays.pop("part_draws")

    with pytest.raises(ModelFormatError) as error:
        archive.loads_with_draws(forged(chains, keep, rename))
    assert error.value.field == "posterior.kind"


def keep(document, arrays):
    """Change nothing."""


def test_a_forged_mark_is_rejected(two):
    def rename(arrays):
        arrays["part_posteriors"] = arrays.pop("part_draws")

    def spoil(arrays):
        arrays["part_draws"] = np.zeros(8)

    for change, field in ((rename, "part_posteriors"), (spoil, "draws")):
        with pytest.raises(ModelFormatError) as error:
            archive.loads_with_draws(forged(two, keep, change))
        assert error.value.field == field


def test_a_posterior_does_not_pass_for_a_model(two):
    data = forged(two, keep)
    assert archive.loads_with_draws(data)[1].plan == two.plan
    with pytest.raises(ModelFormatError, match="bytes of a posterior, not of a model"):
        archive.loads(data)
