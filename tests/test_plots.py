import pickle
import sys

import numpy as np
import pytest

from sglb import plots
from sglb.plots.style import spread_out
from sglb.plots.training import LONGEST_NAME

PNG = b"\x89PNG\r\n"


def curves():
    generator = np.random.default_rng(0)
    return {
        name: 0.5 - 0.01 * index + 0.01 * generator.standard_normal((5, 40))
        for index, name in enumerate(["one", "two", "three"])
    }


def texts(figure):
    axes = figure.axes[0]
    return [text.get_text() for text in axes.texts] + [axes.get_title(loc="left")]


def test_error_curves_draw_a_named_line_and_band_per_method():
    figure = plots.error_curves(curves(), title="A title", subtitle="and more")
    axes = figure.axes[0]
    assert len(axes.lines) == len(axes.collections) == 3
    assert {"one", "two", "three", "A title", "and more"} <= set(texts(figure))
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert np.allclose(axes.lines[0].get_ydata(), curves()["one"].mean(axis=0))


def test_the_band_is_one_standard_error_wide_on_either_side():
    values = curves()["one"]
    band = plots.error_curves({"one": values}).axes[0].collections[0]
    heights = band.get_paths()[0].vertices[:, 1]
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(5)
    assert np.isclose(heights.max(), (mean + error).max())
    assert np.isclose(heights.min(), (mean - error).min())


def test_the_first_steps_do_not_flatten_the_rest_of_the_picture():
    values = np.full((3, 1000), 0.4)
    values[:, 0] = 5.0
    assert plots.error_curves({"one": values}).axes[0].get_ylim()[1] < 0.5


def test_importances_show_the_largest_first_from_the_top():
    figure = plots.importances(["a", "b", "c"], [0.2, 0.5, 0.3], top=2)
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["c", "b"]
    assert [bar.get_width() for bar in axes.patches] == [0.3, 0.5]
    assert "share of the total gain, 1 smaller ones not shown" in texts(figure)


def test_importances_reject_names_that_do_not_fit():
    with pytest.raises(
        ValueError, match=r"there are 2 names, but the importances have shape \(3,\)"
    ):
        plots.importances(["a", "b"], [1, 2, 3])


def test_training_curves_draw_a_line_per_set_and_mark_the_best_step():
    scores = {
        "training": {"loss": [3, 2, 1]},
        "validation": {"loss": [3, 1, 2], "error": [1, 1, 0]},
    }
    figure = plots.training_curves(scores, best_iteration=2)
    axes = figure.axes[0]
    assert axes.get_ylabel() == "loss"
    assert [line.get_xdata()[0] for line in axes.lines] == [1, 1, 2]
    assert {"training", "validation"} <= set(texts(figure))
    only = plots.training_curves(scores, metric="error").axes[0]
    assert len(only.lines) == 1


@pytest.mark.parametrize("scores", [{}, {"validation": {"loss": [1.0]}}])
def test_training_curves_reject_a_metric_that_does_not_exist(scores):
    with pytest.raises(ValueError, match="not in evals_result"):
        plots.training_curves(scores, metric="auc")


def test_nothing_to_draw_is_an_error():
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.error_curves({})


@pytest.mark.parametrize("seed", range(20))
def test_labels_are_moved_apart_no_further_than_needed(seed):
    generator = np.random.default_rng(seed)
    heights = generator.uniform(0, 1, size=6)
    placed = spread_out(heights, 0.1)
    order = np.argsort(heights)
    assert np.all(np.diff(placed[order]) >= 0.1 - 1e-12)
    assert np.isclose(placed.mean(), heights.mean())
    far = np.arange(6.0)
    assert np.allclose(spread_out(far, 0.1), far)


def test_figures_are_saved_whole_and_leave_pyplot_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it now fails
    path = tmp_path / "figure.png"
    plots.save(plots.error_curves(curves()), path)
    assert path.read_bytes().startswith(PNG)
    assert list(tmp_path.iterdir()) == [path]


def test_a_figure_that_cannot_be_saved_leaves_nothing_behind(tmp_path):
    figure = plots.error_curves(curves())
    with pytest.raises(ValueError, match="nonsense"):
        plots.save(figure, tmp_path / "figure.nonsense")
    assert list(tmp_path.iterdir()) == []


def test_a_figure_is_saved_to_a_path_that_is_text(tmp_path):
    plots.save(plots.error_curves(curves()), str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("again", [lambda figure: figure, lambda f: pickle.loads(pickle.dumps(f))])
def test_a_notebook_shows_a_figure_without_pyplot(monkeypatch, again):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it now fails
    figure = again(plots.importances(["a", "b"], [0.7, 0.3]))
    data, size = figure._repr_png_()
    assert data.startswith(PNG)
    width, height = (int.from_bytes(data[at : at + 4]) for at in (16, 20))
    assert (width, height) == (1.5 * size["width"], 1.5 * size["height"])
    figure.axes[0].set_title("changed later")
    assert figure._repr_png_()[0] != data


def test_few_steps_are_points_at_whole_numbers():
    axes = plots.training_curves({"rows": {"loss": [2.0]}}).axes[0]
    assert axes.lines[0].get_marker() == "o"
    assert all(float(tick).is_integer() for tick in axes.get_xticks())
    many = plots.training_curves({"rows": {"loss": np.ones(100)}}).axes[0]
    assert many.lines[0].get_marker() == "None"


def test_the_axis_is_as_long_as_the_longest_curve():
    scores = {"long": {"loss": [3, 2, 1, 1]}, "short": {"loss": [3, 2]}}
    assert plots.training_curves(scores).axes[0].get_xlim() == (1, 4)


def test_the_name_of_a_curve_stands_at_its_last_number():
    scores = {"one": {"loss": [3.0, 1.0, np.nan]}, "none": {"loss": [np.nan] * 3}}
    axes = plots.training_curves(scores).axes[0]
    heights = {text.get_text(): text.xy[1] for text in axes.texts}
    low, high = axes.get_ylim()
    assert heights["one"] == pytest.approx(1.0, abs=0.06 * (high - low))
    assert heights["none"] == pytest.approx(low, abs=0.06 * (high - low))


def test_long_names_of_features_are_shortened_in_the_middle_and_keep_their_bars():
    names = [f"{'x' * 60} {index}" for index in range(3)] + ["x" * 100] * 2
    axes = plots.importances(names, [0.5, 0.2, 0.1, 0.1, 0.1]).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()][::-1]
    assert [label[-1] for label in labels] == ["0", "1", "2", "x", "x"]
    assert max(map(len, labels)) <= LONGEST_NAME
    assert len(axes.patches) == 5
    assert len({bar.get_y() for bar in axes.patches}) == 5


def test_without_matplotlib_plots_say_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "sglb\[plots\]"'):
        plots.error_curves(curves())


def test_a_sweep_draws_lines_levels_and_marks():
    at, values = [0.01, 0.1, 1.0], np.array([[0.3, 0.2, 0.4], [0.5, 0.2, 0.6]])
    figure = plots.sweep(
        at, {"a line": values}, {"a level": 0.25}, marks={"left": 0.02, "right": 0.5}, title="T"
    )
    axes = figure.axes[0]
    assert axes.get_xscale() == "log"
    assert {"a line", "a level", "left", "right", "T"} <= set(texts(figure))
    assert np.allclose(axes.lines[0].get_ydata(), [0.4, 0.2, 0.5])
    assert len(axes.lines) == 4
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert np.isclose(heights.max(), 0.5 + 0.1)  # standard error of .4 and .6


def test_panels_are_titled_and_two_in_a_row():
    figure, axes = plots.panels(8, 6, ["one", "two", "three"])
    assert [panel.get_title(loc="left") for panel in axes] == ["one", "two", "three"]
    assert axes[0].get_gridspec().get_geometry() == (2, 2)
    assert figure.get_size_inches().tolist() == [8, 6]
