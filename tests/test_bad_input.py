"""Bad input is rejected by name before training, and odd input gives one model from any table."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sglb
from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor, archive

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)
FAST = {"n_estimators": 4, "max_depth": 3, "random_state": 0, "n_jobs": 1}
FITTED = SGLBRegressor(**FAST).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)


def put(array, position, value):
    changed = array.astype(np.result_type(array, type(value)))
    changed[position] = value
    return changed


class Bad:
    """A loss whose gradient is not a number in a row."""

    def loss(self, y, raw):
        return (raw - y) ** 2 / 2

    def gradient(self, y, raw):
        return np.where(np.arange(len(y)) == 7, np.nan, raw - y)


def fit(X=X, y=Y, **more):
    return SGLBRegressor(**FAST).fit(X, y, **more)


def frame(**columns):
    return pd.DataFrame({"a": X[:, 0]} | columns)


# What is wrong -> the exception, and words that name the culprit and the remedy. The first rows are
# where peers fail: LightGBM predicts on columns in another order, it and scikit-learn accept
# negative weights, it and XGBoost train on gradients that are NaN.
BAD = {
    "columns in another order": (
        lambda: FITTED.predict(pd.DataFrame(X, columns=["b", "a", "c"])),
        ValueError,
        "(?s)feature names should match.*same order.*Column 0 is 'b'; in fit it was 'a'",
    ),
    "another column": (
        lambda: FITTED.predict(pd.DataFrame(X, columns=["a", "b", "z"])),
        ValueError,
        "(?s)Feature names unseen.*z.*missing.*c",
    ),
    "a column too many": (
        lambda: fit().predict(np.zeros((2, 4))),
        ValueError,
        "X has 4 features, but SGLBRegressor is expecting 3",
    ),
    "a negative weight": (
        lambda: fit(sample_weight=put(np.ones(60), 5, -1.0)),
        ValueError,
        "sample_weight.*row 5",
    ),
    "no weight at all": (
        lambda: fit(sample_weight=np.zeros(60)),
        ValueError,
        "sample_weight.*zero",
    ),
    "a weight that is NaN": (
        lambda: fit(sample_weight=put(np.ones(60), 9, np.nan)),
        ValueError,
        "sample_weight.*row 9",
    ),
    "weights of other rows": (
        lambda: fit(sample_weight=np.ones(59)),
        ValueError,
        "weight.*60.*59",
    ),
    "a gradient that is NaN": (
        lambda: SGLBRegressor(loss=Bad(), **FAST).fit(X, Y),
        (ValueError, ArithmeticError),
        "gradient.*row 7",
    ),
    "a target that is NaN": (
        lambda: fit(y=put(Y, 3, np.nan)),
        ValueError,
        "y must be finite; row 3 is nan",
    ),
    "an infinite target": (
        lambda: fit(y=put(Y, 3, np.inf)),
        ValueError,
        "y must be finite; row 3 is inf",
    ),
    "a target too large": (lambda: fit(y=Y * 1e300), ValueError, "y is too large"),
    "a target too large without noise": (
        lambda: SGLBRegressor(sampler="plain").fit(X, Y * 1e200),
        ValueError,
        "y is too large; rescale y",
    ),
    "weights too large": (
        lambda: fit(sample_weight=np.abs(Y) * 1e200),
        ValueError,
        "sample_weight has the mean .* too large: .* divide them by their mean",
    ),
    "a target too small for its loss": (
        lambda: SGLBRegressor(loss="huber", **FAST).fit(X, Y * 1e-200),
        ValueError,
        "spread of y.*rescale y",
    ),
    "text as a target": (lambda: fit(y=["b"] * 60), ValueError, "y.*'b'"),
    "a target of other rows": (lambda: fit(y=Y[:59]), ValueError, "60.*59"),
    "a negative count": (
        lambda: SGLBRegressor(loss="poisson").fit(X, put(np.ones(60), 2, -1.0)),
        ValueError,
        "poisson.*row 2",
    ),
    "infinity": (lambda: fit(put(X, (4, 1), np.inf)), ValueError, "infinity.*row 4"),
    "no rows": (lambda: fit(X[:0], Y[:0]), ValueError, "0 sample"),
    "no columns": (lambda: fit(X[:, :0]), ValueError, r"0 feature\(s\)"),
    "a vector": (lambda: fit(X[:, 0]), ValueError, "(?s)Expected 2D array.*Reshape"),
    "a cube": (lambda: fit(X[:, :, None]), ValueError, "(?i)dim"),
    "complex numbers": (lambda: fit(X + 1j), ValueError, "(?i)complex"),
    "a sparse matrix": (lambda: fit(scipy.sparse.csr_matrix(X)), TypeError, "(?i)sparse.*toarray"),
    "text that is said to be numbers": (
        lambda: SGLBRegressor(categorical_features=None).fit(put(X.astype(object), (6, 1), "x"), Y),
        ValueError,
        "column 1 holds text, not numbers; name it in categorical_features",
    ),
    "dates": (lambda: fit(frame(b=pd.Timestamp("2026-01-01"))), (ValueError, TypeError), "'b'"),
    "lists": (lambda: fit(frame(b=[[1]] * 60)), (ValueError, TypeError), "'b'"),
    "names twice": (
        lambda: fit(pd.DataFrame(X, columns=["a", "b", "a"])),
        ValueError,
        "'a'",
    ),
    "one class and a cost": (
        lambda: SGLBClassifier(loss="cost").fit(X, Y > 0),
        ValueError,
        r"costs.*fit\(X, y, costs=costs\)",
    ),
    "queries of other rows": (
        lambda: SGLBRanker().fit(X, Y > 0, group=[10, 20]),
        ValueError,
        "30.*60",
    ),
    "a step that diverges": (
        lambda: SGLBRegressor(learning_rate=3.0).fit(X, Y),
        ValueError,
        "learning_rate=3.*must be below 2.*use a smaller",
    ),
    "a name that does not exist": (
        lambda: SGLBRegressor(learning_rat=3.0),
        TypeError,
        "learning_rat.*did you mean 'learning_rate'",
    ),
    "early stopping on nothing": (
        lambda: SGLBRegressor(early_stopping_rounds=5).fit(X, Y),
        ValueError,
        "early_stopping_rounds.*eval_set",
    ),
    "not fitted": (lambda: SGLBRegressor().predict(X), ValueError, "not fitted yet"),
    "a damaged file": (
        lambda: sglb.load(__file__),
        sglb.ModelFormatError,
        "not a model file",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_rejected_with_its_culprit_and_remedy(name):
    act, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        act()


# --- odd tables ---

NUMBERS = st.one_of(
    st.floats(allow_infinity=False, width=64),  # with NaN, denormal and huge ones
    st.sampled_from([0.0, -0.0, 5e-324, -1e-310, 1.7e308, -1.7e308, np.nan]),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@st.composite
def tables(draw):
    """Columns of numbers, whole numbers with gaps, booleans and odd categories, rows repeated."""
    n_rows = draw(st.integers(1, 12))
    kinds = {
        "number": st.lists(NUMBERS, min_size=n_rows, max_size=n_rows),
        "whole": st.lists(
            st.one_of(st.none(), st.integers(-(2**50), 2**50)), min_size=n_rows, max_size=n_rows
        ),
        "flag": st.lists(st.booleans(), min_size=n_rows, max_size=n_rows),
        "text": st.lists(st.one_of(st.none(), NAMES), min_size=n_rows, max_size=n_rows),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=4))
    columns = [
        (f"{kind} {position}", kind, draw(kinds[kind])) for position, kind in enumerate(chosen)
    ]
    repeats = draw(st.integers(1, 3))
    return [(name, kind, values * repeats) for name, kind, values in columns]


def as_pandas(columns):
    kinds = {"number": float, "whole": "Int64", "flag": bool, "text": "category"}
    return pd.DataFrame(
        {name: pd.Series(values, dtype=kinds[kind]) for name, kind, values in columns}
    )


def as_polars(columns):
    kinds = {"number": pl.Float64, "whole": pl.Int64, "flag": pl.Boolean, "text": pl.String}
    return pl.DataFrame(
        {name: pl.Series(values, dtype=kinds[kind]) for name, kind, values in columns}
    )


def as_arrow(columns):
    kinds = {"number": pa.float64(), "whole": pa.int64(), "flag": pa.bool_(), "text": pa.string()}
    return pa.table({name: pa.array(values, kinds[kind]) for name, kind, values in columns})


def as_objects(columns):
    return np.array([values for _, _, values in columns], dtype=object).T


MAKERS = {"pandas": as_pandas, "polars": as_polars, "arrow": as_arrow}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.booleans())
def test_odd_tables_give_one_model_from_any_library(columns, is_classifier):
    n_rows = len(columns[0][2])
    y = np.arange(n_rows) % 3
    kind = SGLBClassifier if is_classifier else SGLBRegressor
    rows = {name: make(columns) for name, make in MAKERS.items()}
    names = [name for name, dtype, _ in columns if dtype == "text"]
    models = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # numbers as text, and rows that repeat
        for name, table in rows.items():
            models[name] = kind(**FAST, categorical_features=names or "from_dtype").fit(table, y)
        if not names:
            models["numpy"] = kind(**FAST).fit(as_objects(columns), y)
            rows["numpy"] = as_objects(columns)
    expected = models["pandas"].predict_raw(rows["pandas"])
    assert np.isfinite(expected).all()
    for name, model in models.items():
        np.testing.assert_array_equal(model.predict_raw(rows[name]), expected, err_msg=name)


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "every other row": lambda Z: np.repeat(Z, 2, axis=0)[::2],
    "every other column": lambda Z: np.repeat(Z, 2, axis=1)[:, ::2],
    "backwards": lambda Z: Z[::-1, ::-1].copy()[::-1, ::-1],
    "read only": lambda Z: np.frombuffer(Z.tobytes()).reshape(Z.shape),
    "big endian": lambda Z: Z.astype(">f8"),
    "objects": lambda Z: Z.astype(object),
    "lists": lambda Z: Z.tolist(),
    "a masked array without a mask": np.ma.asarray,
    "a matrix in a frame": pd.DataFrame,
    "nullable numbers": lambda Z: pd.DataFrame(Z).astype("Float64").to_numpy(dtype=float),
    "long doubles": lambda Z: Z.astype(np.longdouble),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_may_lie_in_any_way(layout):
    rows = LAYOUTS[layout](X)
    model = fit(rows, Y[::-1][::-1])
    np.testing.assert_array_equal(model.predict(rows), fit().predict(X))


# --- numbers ---

HUGE = [1e-310, 1e-200, 1e-100, 1e100, 1e150, 1e300]


REMEDY = re.compile("use|too large|rescale")


def is_accepted(estimator, *data, **more):
    """Fit and predict; predictions are finite unless the input is rejected with a remedy."""
    try:
        model = estimator.fit(*data, **more)
    except (ValueError, ArithmeticError) as error:
        if REMEDY.search(str(error)):
            return False
        raise
    assert np.isfinite(model.predict_raw(X)).all()
    archive.loads(archive.dumps(model._model))
    return True


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "poisson", "gamma", "cauchy"])
def test_no_nan_comes_out_of_targets_of_any_size(loss):
    y = np.abs(Y) + 0.01
    model = SGLBRegressor(loss=loss, **FAST)
    fits = [is_accepted(model, X, y * scale) for scale in HUGE]
    assert any(fits)


@pytest.mark.parametrize("scale", HUGE)
@pytest.mark.filterwarnings("ignore:sample_weight has the mean")
def test_no_nan_comes_out_of_weights_and_features_of_any_size(scale):
    weight = np.abs(Y)
    sizes = {"all": weight * scale, "half": np.where(np.arange(60) % 2, scale, 1.0)}
    for sample_weight in sizes.values():
        fits = [
            is_accepted(SGLBRegressor(**FAST), X, Y, sample_weight=sample_weight),
            is_accepted(SGLBClassifier(**FAST), X, Y > 0, sample_weight=sample_weight),
        ]
        assert fits == [scale <= 1e100] * 2
    assert np.isfinite(SGLBRegressor(**FAST).fit(X * scale, Y).predict(X * scale)).all()


RATES = ["learning_rate", "temperature", "shrink_rate", "l2_regularization", "structure_noise"]


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("scale", HUGE)
def test_no_nan_comes_out_of_parameters_of_any_size(name, scale):
    is_accepted(SGLBRegressor(**FAST, **{name: scale}), X, Y)
    is_accepted(SGLBClassifier(**FAST, **{name: scale}), X, Y > 0)


def test_limits_of_size():
    one_row = SGLBRegressor(**FAST).fit(X[:1], Y[:1])
    np.testing.assert_allclose(one_row.predict(X), Y[0], atol=1e-2)
    deep = SGLBRegressor(**FAST | {"max_depth": 16, "max_bins": 255}).fit(X, Y)
    assert np.isfinite(deep.predict(X)).all()
    wide = RNG.normal(size=(60, 10_000))
    wide[:, 7_777] = X[:, 0]
    assert np.argmax(fit(wide).feature_importances_) == 7_777
    long = SGLBRegressor(**FAST | {"n_estimators": 100_000, "max_depth": 1}).fit(X[:4], Y[:4])
    assert len(long.trace_) == 100_000
    assert np.isfinite(long.predict(X)).all()


class Wrong:
    """A loss whose gradient points uphill."""

    def loss(self, y, raw):
        return (raw - y) ** 2 / 2

    def gradient(self, y, raw):
        return y - raw


def test_a_chain_that_runs_away_ends_early_with_advice():
    model = SGLBRegressor(loss=Wrong(), learning_rate=0.5, n_estimators=10_000)
    with pytest.raises(sglb.ChainDiverged, match="use a smaller learning_rate") as error:
        model.fit(X, Y, check_gradient=False)
    assert error.value.step < 100
