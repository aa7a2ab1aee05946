"""Training rows encoded once more by a stored encoding: the codes that the chain has seen."""

import numpy as np
import pandas as pd
import pytest

from sglb import SGLBClassifier, SGLBRegressor, archive
from sglb.categories import training_codes
from sglb.estimators.error_bars import N_DRAWS
from sglb.frame import Features
from sglb.labels import label_objects
from sglb.posterior import TreePartitions
from sglb.prepare import LabelledRows, encode_rows
from sglb.target import Target

N_ROWS = 3000
FAST = {"n_estimators": 30, "max_depth": 3, "random_state": 4, "n_jobs": 1}


def frame(n_rows=N_ROWS, seed=0):
    """A number, columns of few and of many levels, and one that identifies its rows."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "number": rng.normal(size=n_rows),
            "few": pd.Categorical(rng.choice(["a", "b", "c"], n_rows)),
            "many": pd.Categorical([f"m{i}" for i in rng.integers(0, 300, n_rows)]),
            "more": pd.Categorical([f"n{i}" for i in rng.integers(0, 90, n_rows)]),
            "row": pd.Categorical([f"r{i}" for i in range(n_rows)]),
        }
    )


def score(X):
    """A raw score that two columns together explain, and neither by itself."""
    few, more = (X[name].cat.codes.to_numpy() for name in ("few", "more"))
    return X["number"].to_numpy() + 4.0 * ((few + more) % 2) - 2.0


def features_of(X):
    names = [name for name in X if name != "number"]
    labels = tuple(label_objects(X[name].to_numpy(dtype=object), 0) for name in names)
    mask = np.array([name != "number" for name in X])
    return Features(X[["number"]].to_numpy(), labels, mask)


def targets():
    rng = np.random.default_rng(1)
    raw = score(frame()) + rng.logistic(size=N_ROWS)
    weight = rng.choice([0.5, 1.0, 3.0], N_ROWS)
    return {
        "two classes": Target.of(raw > 0.0, classes=[0, 1]),
        "three classes": Target.of(np.digitize(raw, [-1.0, 1.0]), classes=[0, 1, 2]),
        "weights": Target.of(raw > 0.0, weight, classes=[0, 1]),
        "numbers": Target.of(raw),
    }


@pytest.mark.parametrize("name", list(targets()))
def test_rows_of_training_have_the_codes_of_their_first_copy(name):
    target, features = targets()[name], features_of(frame())
    encoded = encode_rows(LabelledRows(features, target), 64, 5, 1)
    assert encoded.n_copies > 1
    assert any(len(table.members) > 1 for table in encoded.encoding.tables) or name == "numbers"
    for n_threads in (1, 3):
        codes = training_codes(
            encoded.encoding, encoded.bins, features, target, seed=5, n_threads=n_threads
        )
        assert (codes == encoded.columns[:, :N_ROWS]).all()
    assert (codes != encoded.encode(features, 1)).any()


def test_no_row_sees_its_own_target():
    target, features = targets()["two classes"], features_of(frame())
    encoded = encode_rows(LabelledRows(features, target), 64, 5, 1)

    def codes(values):
        known = Target.of(values, classes=[0, 1])
        return training_codes(encoded.encoding, encoded.bins, features, known, seed=5, n_threads=1)

    expected = codes(target.values)
    for row in (0, 17, N_ROWS - 1):
        values = target.values.copy()
        values[row] = 1.0 - values[row]
        changed = codes(values)
        assert (changed[:, row] == expected[:, row]).all()
    assert (changed != expected).any()


def test_levels_that_the_encoding_does_not_know_have_the_codes_of_prediction():
    target, features = targets()["two classes"], features_of(frame())
    encoded = encode_rows(LabelledRows(features, target), 64, 5, 1)
    strange = frame()
    strange["more"] = "unknown"
    rows = features_of(strange)
    codes = training_codes(encoded.encoding, encoded.bins, rows, target, seed=5, n_threads=1)
    features_of_more = [
        position
        for position, members in enumerate(members_of(encoded.encoding))
        if members is not None and 2 in members
    ]
    assert len(features_of_more) > 2
    predicted = encoded.encode(rows, 1)
    assert (codes[features_of_more] == predicted[features_of_more]).all()
    assert (codes != predicted).any()


def members_of(encoding):
    """Columns behind each feature, None for numbers."""
    result = [None] * encoding.n_numeric + [(column,) for column in encoding.level_columns]
    for table in encoding.tables:
        result += [table.members] * table.n_features
    return result


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, {0.0: 1.0, 1.0: 3.0}])
def test_a_fit_with_uncertainty_has_the_draws_of_the_posterior_of_its_rows(weighted, class_weight):
    X, y = frame(), targets()["two classes"].values
    options = FAST | {"class_weight": class_weight}
    weight = np.where(np.arange(N_ROWS) % 5 == 0, 0.0, 2.0) if weighted else None
    model = SGLBClassifier(uncertainty=True, **options).fit(X, y, weight)
    stored = archive.loads(archive.dumps(model._model)).posterior
    post = SGLBClassifier(**options).fit(X, y, weight).posterior(X, y, weight, n_draws=N_DRAWS)
    assert post.plan == stored.plan
    assert (post._posterior.draws.values == stored.draws.values).all()


def test_draws_are_watched_at_the_rows_whose_codes_are_like_those_of_new_rows():
    X, y = frame(), targets()["two classes"].values
    model = SGLBClassifier(**FAST).fit(X, y)
    recipe = model._model.recipe
    draws = model.posterior(X, y, n_draws=4, prior_variance=0.3)._posterior.draws
    order = recipe.training_order(N_ROWS)
    assert sorted(order) == list(range(N_ROWS))
    rows = model._read_known_rows(X, y, None)
    codes = recipe.encode_training(rows.features, rows.target, 1)
    last = np.ascontiguousarray(codes[:, np.sort(order[-draws.stages.shape[2] :])])
    expected = draws.predict(TreePartitions(model.trace_, last))
    np.testing.assert_allclose(draws.stages[1], expected, rtol=1e-4, atol=1e-4)
    # Means over nearly all rows are nearer to those of prediction than means over few.
    distance = np.abs(codes - model._codes(X)[0].astype(np.float64))
    assert distance[:, order[-500:]].mean() < 0.7 * distance[:, order[:500]].mean()


def test_codes_of_numbers_do_not_depend_on_an_order():
    X = frame()[["number", "few"]]
    model = SGLBClassifier(**FAST).fit(X, targets()["two classes"].values)
    assert model._model.recipe.training_order(N_ROWS) is None


def test_rows_in_another_order_have_draws_of_the_same_spread():
    X, y = frame(), targets()["two classes"].values
    model = SGLBClassifier(**FAST).fit(X, y)
    order = np.random.default_rng(0).permutation(N_ROWS)
    posteriors = [
        model.posterior(*rows, prior_variance=0.3) for rows in ((X, y), (X.iloc[order], y[order]))
    ]
    spread, other = (post.std(X).mean() for post in posteriors)
    assert 0.8 < other / spread < 1.25


def test_numbers_are_drawn_by_the_codes_of_training_too():
    X, y = frame(), targets()["numbers"].values
    model = SGLBRegressor(uncertainty=True, **FAST).fit(X, y)
    post = model.posterior(X, y, n_draws=N_DRAWS)
    assert (post._posterior.draws.values == model._model.posterior.draws.values).all()
