"""Figures of uncertainty: what is drawn are the numbers of the library, on any axes."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

matplotlib = pytest.importorskip("matplotlib")

from sglb import calibration, plots  # noqa: E402
from sglb.conformal import Intervals  # noqa: E402
from sglb.distributions import Normal  # noqa: E402

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _headless():
    with matplotlib.rc_context({"backend": "agg"}):
        yield


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


def line(axes, label):
    return next(each for each in axes.lines if each.get_label().startswith(label))


def subtitle(axes):
    return axes.texts[0].get_text()


def outline(band):
    """Lower and upper edge of a band of fill_between, by x."""
    points = band.get_paths()[0].vertices
    return {x: (min(y), max(y)) for x in np.unique(points[:, 0])
            for y in [points[points[:, 0] == x, 1]]}  # fmt: skip


def test_a_fan_has_the_quantiles_of_each_row_in_the_order_of_a_feature(axes):
    x = pd.Series([3.0, 1.0, 2.0], name="age")
    law = Normal(np.array([30.0, 10.0, 20.0]), np.array([1.0, 2.0, 3.0]))
    assert plots.fan_chart(law, [31.0, 9.0, 20.0], x, axes=axes) is axes
    median = line(axes, "median")
    assert median.get_xdata().tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(median.get_ydata(), [10.0, 20.0, 30.0], atol=1e-9)
    outer, inner = axes.collections
    z = norm.ppf(0.95)
    np.testing.assert_allclose(outline(outer)[1.0], [10.0 - 2.0 * z, 10.0 + 2.0 * z])
    np.testing.assert_allclose(outline(inner)[3.0], [30.0 + norm.ppf(0.25), 30.0 + norm.ppf(0.75)])
    assert sorted(line(axes, "outcomes").get_ydata()) == [9.0, 20.0, 31.0]
    assert axes.get_xlabel() == "age"


def test_a_bin_of_a_fan_is_the_mixture_of_its_rows(axes):
    """Half of the rows of a bin are at 0 and half at 100: so are the outer quantiles."""
    centre = np.tile([0.0, 100.0], 100)
    plots.fan_chart(Normal(centre, np.ones(200)), x=np.arange(200.0), axes=axes)
    assert subtitle(axes) == "200 rows in 20 bins"
    low, high = outline(axes.collections[0])[4.5]
    assert low == pytest.approx(norm.ppf(0.1), abs=0.05)
    assert high == pytest.approx(100.0 + norm.ppf(0.9), abs=0.05)


def test_reliability_is_the_table_of_calibration(axes):
    probability = RNG.uniform(size=500)
    y = RNG.uniform(size=500) < probability**2
    assert plots.reliability(probability, y, n_bins=5, axes=axes) is axes
    table = calibration.reliability(probability, y, 5)
    drawn = line(axes, "observed")
    assert (drawn.get_xdata() == table.predicted).all()
    assert (drawn.get_ydata() == table.observed).all()
    gap = np.abs(table.predicted - table.observed).mean()
    assert subtitle(axes) == f"5 bins of 100 rows; mean gap {gap:.3f}"
    with pytest.raises(ValueError, match="y is True in every row"):
        plots.reliability(probability, np.full(500, True))


def test_coverage_by_scale_is_drawn_above_the_width():
    scale = np.linspace(1.0, 2.0, 400)
    y = scale * RNG.normal(size=400)
    bounds = 1.6448536 * scale[:, None] * [-1.0, 1.0]
    upper, lower = plots.coverage_by_scale(y, bounds, scale, coverage=0.9, n_bins=4)
    table = calibration.coverage_by_scale(y, bounds, scale, 4)
    assert (line(upper, "observed").get_ydata() == table.coverage).all()
    assert line(upper, "observed").get_xdata().tolist() == [12.5, 37.5, 62.5, 87.5]
    assert (lower.lines[0].get_ydata() == table.width).all()
    inside = 100.0 * np.mean(np.abs(y) <= bounds[:, 1])
    assert subtitle(upper) == f"400 rows; {inside:g} % are covered, 90 % promised"
    with pytest.raises(ValueError, match="coverage is missing"):
        plots.coverage_by_scale(y, bounds, scale)
    conformal = Intervals(bounds, coverage=0.9, guarantee=0.9, n_rows=50)
    assert subtitle(plots.coverage_by_scale(y, conformal, scale)[0]) == subtitle(
        plots.coverage_by_scale(y, bounds, scale, coverage=0.9)[0]
    )


@pytest.mark.parametrize("n_infinite", [1, 400])
def test_infinite_intervals_are_marked_above_the_others(n_infinite):
    """Too few calibration rows have intervals from minus to plus infinity."""
    scale = np.linspace(1.0, 2.0, 400)
    bounds = scale[:, None] * [-1.0, 1.0]
    bounds[-n_infinite:] = [-np.inf, np.inf]
    _, lower = plots.coverage_by_scale(np.zeros(400), bounds, scale, coverage=0.9, n_bins=4)
    expected = [87.5] if n_infinite == 1 else [12.5, 37.5, 62.5, 87.5]
    assert line(lower, "infinite").get_xdata().tolist() == expected
    lower.figure.canvas.draw()
    assert np.isfinite(lower.get_ylim()).all()
    shown = lower.lines[0].get_ydata()
    assert np.isnan(shown).sum() == len(expected)
    assert lower.get_ylim()[1] > np.nanmax(shown, initial=0.0)


def test_rejection_curves_begin_at_the_mean_error_and_the_oracle_is_right(axes):
    error = np.array([0.0, 1.0, 0.0, 1.0])
    uncertainty = {"right": error, "wrong": 1.0 - error}
    plots.rejection_curve(error, uncertainty, axes=axes)
    right, wrong = line(axes, "right, PRR 1.00"), line(axes, "wrong, PRR -1.00")
    assert right.get_ydata().tolist() == [0.5, 0.25, 0.0, 0.0, 0.0]
    assert wrong.get_ydata().tolist() == [0.5, 0.5, 0.5, 0.25, 0.0]
    assert (line(axes, "oracle").get_ydata() == right.get_ydata()).all()
    with pytest.raises(ValueError, match="nothing to reject"):
        plots.rejection_curve(np.zeros(4), error)


def test_a_trace_has_a_line_of_each_chain_and_says_whether_they_have_mixed(axes):
    draws = RNG.normal(size=(4, 100))
    plots.draws_trace(draws, axes=axes)
    assert [each.get_label() for each in axes.lines] == [f"chain {k}" for k in range(1, 5)]
    assert (axes.lines[2].get_ydata() == draws[2]).all()
    assert subtitle(axes).startswith("4 × 100 draws; R-hat 1.0")
    apart = draws + 5.0 * np.arange(4.0)[:, None]
    rhat = float(subtitle(plots.draws_trace(apart)).split("R-hat ")[1].split(",")[0])
    assert rhat > 2.0
    with pytest.raises(ValueError, match="draw 1 of chain 0 is nan"):
        plots.draws_trace([[0.0, np.nan]])


def test_bars_of_a_rank_plot_count_the_draws_of_a_chain():
    draws = np.arange(200.0).reshape(2, 100)  # all of the second chain are larger
    axes = plots.rank_plot(draws, n_bins=10)
    first, second = (np.array([bar.get_height() for bar in bars]) for bars in axes.containers)
    unit = first.max() / 20.0  # a bin holds twenty draws
    np.testing.assert_allclose(first / unit, [20.0] * 5 + [0.0] * 5)
    np.testing.assert_allclose(second / unit, [0.0] * 5 + [20.0] * 5)
    with pytest.raises(ValueError, match="a single one"):
        plots.rank_plot(draws[0])


class Lines:
    """Draw m is (m + 1) times the first column, plus the second."""

    def predict(self, X):
        table = np.asarray(X, dtype=np.float64)
        return np.arange(1.0, 12.0)[:, None] * table[:, 0] + table[:, 1]


@pytest.mark.parametrize("as_table", [np.asarray, lambda X: pd.DataFrame(X, columns=["a", "b"])])
def test_partial_dependence_is_the_mean_over_rows_of_each_draw(as_table):
    X = np.column_stack([np.arange(10.0), np.full(10, 100.0)])
    feature = "a" if hasattr(as_table(X), "columns") else 0
    axes = plots.partial_dependence_posterior(
        Lines(), as_table(X), feature, grid=[0.0, 2.0], coverage=0.8
    )
    assert line(axes, "mean").get_ydata().tolist() == [100.0, 112.0]
    assert outline(axes.collections[0])[2.0] == (104.0, 120.0)
    assert subtitle(axes).startswith("11 draws")
    with pytest.raises(ValueError, match="single value"):
        plots.partial_dependence_posterior(Lines(), as_table(X), feature, grid=[1.0])
