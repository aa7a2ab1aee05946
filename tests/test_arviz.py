"""Draws for ArviZ of both generations."""

import sys
import types
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from sglb import SGLBClassifier, SGLBRegressor

NAMES = np.array(["setosa", "versicolor", "virginica"])
X, LABEL = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def post():
    model = SGLBClassifier(n_estimators=20, random_state=0, max_depth=2).fit(X, NAMES[LABEL])
    return model.posterior(X, NAMES[LABEL], n_draws=6, prior_variance=0.3)


def stand_in(from_dict, monkeypatch):
    module = types.ModuleType("arviz")
    module.from_dict = from_dict
    monkeypatch.setitem(sys.modules, "arviz", module)


def flat(posterior=None, *, sample_stats=None, coords=None, dims=None):
    return "InferenceData", {"posterior": posterior}, coords, dims


def nested(data, *, name=None, coords=None, dims=None):
    return "DataTree", data, coords, dims


@pytest.mark.parametrize(("from_dict", "kind"), [(flat, "InferenceData"), (nested, "DataTree")])
def test_both_containers_get_one_chain_of_named_draws(post, monkeypatch, from_dict, kind):
    stand_in(from_dict, monkeypatch)
    name, groups, coords, dims = post.to_arviz(X[:5])
    assert name == kind
    variables = groups["posterior"]
    assert variables["raw"].shape == variables["prediction"].shape == (1, 6, 5, 3)
    np.testing.assert_array_equal(variables["prediction"][0], post.predict(X[:5]))
    assert dims == {"raw": ["row", "output"], "prediction": ["row", "class"]}
    assert coords["class"].tolist() == coords["output"].tolist() == NAMES.tolist()
    assert coords["row"].tolist() == [0, 1, 2, 3, 4]


def test_numbers_have_rows_alone(monkeypatch):
    stand_in(nested, monkeypatch)
    rows = load_diabetes(return_X_y=True)
    model = SGLBRegressor(n_estimators=5, random_state=0).fit(*rows)
    post = model.posterior(*rows, n_draws=4, temperature=3000.0)
    _, groups, coords, dims = post.to_arviz(rows[0])
    assert dims == {"raw": ["row"], "prediction": ["row"]}
    assert coords.keys() == {"row"}
    assert groups["posterior"]["prediction"].shape == (1, 4, 442)


def test_arviz_itself_reads_the_draws(post):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("arviz")
        data = post.to_arviz(X[:5])
    prediction = data["posterior"]["prediction"]
    assert prediction.dims == ("chain", "draw", "row", "class")
    assert float(prediction.sel({"class": "setosa"}).mean()) > 0.8


def test_without_arviz_the_error_says_how_to_install_it(post, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r'pip install "sglb\[integrations\]"'):
        post.to_arviz(X)
