"""A table whose rows are held elsewhere gives the model of the same rows in memory, bit for bit."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from held_parts import PartsTable, as_parts
from problems import generators
from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor, archive, bundles
from sglb.bins import Bins, threshold_rows
from sglb.bundles import Bundles, meetings
from sglb.code_layout import CodeCounts
from sglb.target import Target
from small_tables import FAST


def model_bytes(estimator):
    return archive.dumps(estimator._fitted())


def awkward_frame(n_rows=700, *, one_hot=0):
    """Numbers with missing values and ties, constants, few and many levels, one-hot columns."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"number": rng.normal(size=n_rows), "ties": rng.integers(0, 3, n_rows)})
    frame["missing"] = np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows))
    frame["missing in the last part"] = rng.normal(size=n_rows)
    frame.loc[n_rows - 1, "missing in the last part"] = np.nan
    frame["constant"] = 2.0
    which = rng.integers(0, one_hot + 1, n_rows)
    for column in range(one_hot):
        frame[f"is {column}"] = which == column
    y = frame["number"] + (frame["missing"] > 0) + rng.normal(size=n_rows)
    return frame, y.to_numpy(), rng


def with_levels(frame, rng):
    frame["few"] = rng.choice(["a", "b", "c"], len(frame))
    frame["many"] = pd.Categorical(rng.integers(0, 90, len(frame)).astype(str))
    return frame


def fitted(kind, X, y, *arguments, **parameters):
    fit = parameters.pop("fit", {})
    return kind(**(FAST | {"n_estimators": 8} | parameters)).fit(X, y, *arguments, **fit)


@pytest.mark.parametrize("n_parts", [1, 2, 5])
def test_numbers_missing_values_and_bundles_in_parts(n_parts):
    frame, y, _ = awkward_frame(one_hot=6)
    expected = fitted(SGLBRegressor, frame.astype(np.float64), y)
    assert fitted(SGLBRegressor, as_parts(frame, n_parts), y) is not expected
    assert model_bytes(fitted(SGLBRegressor, as_parts(frame, n_parts), y)) == model_bytes(expected)


def test_categories_and_their_copies_in_parts():
    frame, y, rng = awkward_frame()
    frame = with_levels(frame, rng)
    positive = np.where(y > 0, "yes", "no")
    expected = fitted(SGLBClassifier, frame, positive)
    assert expected._fitted().recipe.encoding.tables  # means by level: several copies of the rows
    held = fitted(SGLBClassifier, as_parts(frame), positive)
    assert model_bytes(held) == model_bytes(expected)


def test_a_table_of_categories_alone_in_parts():
    frame, y, rng = awkward_frame()
    levels = with_levels(frame, rng)[["few", "many"]]
    expected = fitted(SGLBRegressor, levels, y)
    assert model_bytes(fitted(SGLBRegressor, as_parts(levels), y)) == model_bytes(expected)


def test_weights_of_zero_and_evaluation_sets_in_parts():
    frame, y, rng = awkward_frame()
    frame = with_levels(frame, rng)
    weight = rng.integers(0, 3, len(y)).astype(float)
    models = []
    for hold in (lambda table: table, as_parts):
        sets = [(hold(frame[:100]), y[:100])]
        models.append(
            fitted(
                SGLBRegressor,
                hold(frame),
                y,
                weight,
                early_stopping_rounds=3,
                fit={"eval_set": sets},
            )
        )
    assert model_bytes(models[0]) == model_bytes(models[1])


def test_rankings_uncertainty_and_searched_lengths_in_parts():
    frame, y, rng = awkward_frame(300)
    group = rng.integers(0, 40, len(y))
    for kind, labels, options in (
        (SGLBRanker, (y > 0).astype(float), {"fit": {"group": group}}),
        (SGLBRegressor, y, {"uncertainty": True, "n_estimators": 5}),
        (SGLBClassifier, y > 0, {"n_estimators": "auto", "learning_rate": 0.5}),
    ):
        expected = fitted(kind, frame, labels, **dict(options))
        held = fitted(kind, as_parts(frame), labels, **dict(options))
        assert model_bytes(held) == model_bytes(expected)


def test_a_continued_model_reads_a_table_in_parts():
    frame, y, rng = awkward_frame()
    frame = with_levels(frame, rng)
    for rows in (slice(None), slice(0, 500)):  # those of the model, and others
        models = []
        for hold in (lambda table: table, as_parts):
            model = fitted(SGLBRegressor, hold(frame), y)
            fit = {"init_model": model}
            models.append(fitted(SGLBRegressor, hold(frame[rows]), y[rows], fit=fit))
        assert model_bytes(models[0]) == model_bytes(models[1])


def test_a_held_table_is_checked_as_a_frame_is():
    frame, y, rng = awkward_frame(50)
    model = fitted(SGLBRegressor, as_parts(frame), y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    eval_set = [(as_parts(frame.rename(columns={"ties": "other"})), y)]
    with pytest.raises(ValueError, match="feature names"):
        fitted(SGLBRegressor, as_parts(frame), y, fit={"eval_set": eval_set})
    with pytest.raises(ValueError, match="X has 50 rows but y has 49"):
        fitted(SGLBRegressor, as_parts(frame), y[:49])
    text = with_levels(frame.copy(), rng)
    with pytest.raises(ValueError, match="column 'few' is of type"):
        fitted(SGLBRegressor, as_parts(text), y, categorical_features=None)
    with pytest.raises(ValueError, match="no rows"):
        fitted(SGLBRegressor, as_parts(frame[:0], 1), y[:0])
    with pytest.raises(ValueError, match="some rows at a time"):
        model.predict(as_parts(frame))
    wrong = type("Wrong", (PartsTable,), {"empty": frame})
    with pytest.raises(TypeError, match="without rows"):
        fitted(SGLBRegressor, wrong(frame, 1), y)


def test_thresholds_of_sampled_rows_are_those_of_the_table():
    X = np.random.default_rng(0).normal(size=(9_001, 2)).round(2)
    expected = Bins.fit(X, 4, seed=7)
    rows = threshold_rows(len(X), 4000, 7)
    assert len(rows) == 4000
    assert (np.diff(rows) >= 0).all()
    assert np.array_equal(Bins.fit(X[rows], 4, seed=1).thresholds, expected.thresholds)
    assert np.array_equal(threshold_rows(3, 4000, 7), np.arange(3))


def test_codes_that_are_too_large_are_named_in_any_part():
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0)})
    codes = as_parts(frame).held_numbers([0, 1]).encode(Bins.fit(frame.to_numpy(), 9), 1)
    target, is_level = Target.of(np.zeros(9)), np.zeros(2, dtype=bool)
    with pytest.raises(ValueError, match="feature 1 has a code above 8"):
        codes.training_set(np.array([10, 9]), is_level, target, 1, 1)


@given(generators, st.integers(1, 4))
def test_bundles_in_parts_are_those_of_all_rows(rng, n_parts):
    n_rows = int(rng.choice([5, 60, 300]))
    on = rng.random((int(rng.integers(4, 40)), n_rows)) < rng.choice([0.003, 0.02, 0.1])
    columns = np.where(on, 2, 1).astype(np.uint8)
    columns[::5] = 3 - columns[::5]
    candidates = np.flatnonzero(rng.random(len(columns)) < 0.9)
    counts = CodeCounts.of(columns, np.full(len(columns), 3))
    parts = np.array_split(columns, n_parts, axis=1)

    def ask(groups, on, *, first_rows):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bundles, "FIRST_ROWS", 20)
            patch.setattr(bundles, "MOST_SHARED", 3)
            pairs = [meetings(part, groups, on, first_rows=first_rows) for part in parts]
        return np.concatenate(pairs)

    in_parts = Bundles.find_in_parts(candidates, counts.n_twos, n_rows, ask)
    expected = Bundles.find(columns, candidates)
    assert (in_parts is None) == (expected is None)
    if expected is not None:
        assert in_parts.groups == expected.groups
        assert np.array_equal(in_parts.columns(columns), expected.columns(columns))
