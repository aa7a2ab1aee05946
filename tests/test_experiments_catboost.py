"""The search with CatBoost: the paper's settings reach it, and its trials are like sglb's."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from sglb.cli.app import app
from sglb.experiments import catboost_sla, real_data, search, tables_2_3
from sglb.experiments.search import Search
from sglb.experiments.tables_2_3 import TuningOptions
from sglb.experiments.tuned_catboost import TunedCatBoost, options_of

pytest.importorskip("catboost")
pytest.importorskip("optuna")

SGB = {"learning_rate": 0.3, "max_depth": 6, "l2_regularization": 2.0, "subsample": 0.7}
SGLB = {"learning_rate": 0.3, "max_depth": 6, "shrink_rate": 1e-3, "temperature": 1e-3}


def make_table(n_rows=300, seed=0):
    """A table with a number, a category with gaps, and its labels as text."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal(n_rows)
    town = generator.choice(["Rom", "Bern", "Oslo"], n_rows)
    y = np.where(x + 2.0 * (town == "Bern") > 0.5, "yes", "no")
    towns = pa.array(np.where(generator.random(n_rows) < 0.1, None, town))
    return pa.table({"x": x, "town": towns.dictionary_encode()}), y


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    X, y = make_table()
    table = X.append_column("target", pa.array((y == "yes").astype(np.int64)))
    pa.parquet.write_table(table, data / "higgs_26k.parquet")
    monkeypatch.setenv("SGLB_DATA", str(data))
    search._split_in.cache_clear()
    yield tmp_path
    search._split_in.cache_clear()


def test_both_methods_are_drawn_from_the_same_distributions_as_ours():
    for ours, theirs in zip(("SGB", "SGLB"), real_data.CATBOOST_METHODS, strict=True):
        assert [search.draw(ours, seed) for seed in range(5)] == [
            search.draw(theirs, seed) for seed in range(5)
        ]


def test_parameters_are_translated():
    sgb, sglb = options_of(SGB), options_of(SGLB)
    assert (sgb["bootstrap_type"], sgb["subsample"], sgb["l2_leaf_reg"]) == ("Bernoulli", 0.7, 2.0)
    assert "langevin" not in sgb
    assert (sglb["bootstrap_type"], sglb["langevin"], sglb["l2_leaf_reg"]) == ("No", True, 0.0)
    assert sglb["diffusion_temperature"] == pytest.approx(1000.0)
    assert sglb["model_shrink_rate"] == 1e-3


def fitted(parameters, n_trees=20, seed=1):
    X, y = make_table()
    model = TunedCatBoost(parameters, n_trees, 64, 0.1, seed)
    return model.fit(X.slice(0, 200), y[:200], [(X.slice(200), y[200:])]), X.slice(200), y[200:]


@pytest.mark.parametrize("parameters", [SGB, SGLB], ids=["SGB", "SGLB"])
def test_the_best_iteration_is_that_of_the_evaluation_rows(parameters):
    model, X, y = fitted(parameters)
    assert np.mean(model.predict(X) != y) == pytest.approx(model.best_score_)
    assert model.best_score_ < 0.2
    assert 1 <= model.best_iteration_ <= 20
    assert set(model.predict(X)) <= {"yes", "no"}
    again, _, _ = fitted(parameters)
    assert (again.best_score_, again.best_iteration_) == (model.best_score_, model.best_iteration_)
    assert np.array_equal(again.predict(X), model.predict(X))


def test_the_noise_reaches_the_leaves():
    """With Newton leaves CatBoost's langevin has no effect at any temperature."""
    raws = []
    for parameters in (SGLB | {"temperature": t} for t in (1e-12, 1e-6, 10.0)):
        model, X, _ = fitted(parameters, 1)
        raws.append(model.model_.predict(model._pool(X, None)))
    assert np.abs(raws[1] - raws[0]).max() < 0.02
    assert np.abs(raws[2] - raws[0]).max() > 0.1


def test_another_metric_is_rejected(folder):
    X, y = make_table()
    with pytest.raises(ValueError, match="by the 0-1 error, not by 'logloss'"):
        TunedCatBoost(SGB, 2, 64, 0.1, 0).fit(X, y, [(X, y)], "logloss")


def test_trials_are_resumed_and_chosen_like_ours(folder):
    whole, broken = (
        Search(folder / name, "zero-one", "higgs_26k", "CatBoost-SGLB", 6)
        for name in ("whole", "broken")
    )
    assert [whole.run_next(3) for _ in range(4)] == [0, 1, 2, None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TunedCatBoost, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            broken.run_next(3)
    assert [broken.run_next(3) for _ in range(4)] == [0, 1, 2, None]
    for a, b in zip(whole.finished(3), broken.finished(3), strict=True):
        assert (a.parameters, a.score, a.n_trees) == (b.parameters, b.score, b.n_trees)
    best = whole.best(3)
    assert np.array_equal(whole.test_losses(best), broken.test_losses(best))
    assert 0 < whole.test_losses(best).mean() < 0.5


def interrupted(*arguments, **options):
    raise KeyboardInterrupt


def invoke(folder, *words):
    words = ["paper", "zero-one", "--catboost", "--datasets", "higgs", "--jobs", 1, *words]
    words += ["--out", folder / "out"]
    return CliRunner().invoke(app, [str(word) for word in words], prog_name="sglb")


def test_the_command_writes_a_table_of_its_own(folder):
    page = folder / "page.md"
    page.write_text("<!-- zero-one CatBoost-SGB -->\n<!-- end of zero-one CatBoost-SGB -->\n")
    words = ["--trials", 2, "--max-trees", 4, "--splits", 2, "--write", "--page", page]
    result = invoke(folder, *words)
    assert result.exit_code == 0, result.stderr
    options = TuningOptions(
        "zero-one", folder / "out", 2, ["higgs"], 4, n_splits=2, rival="CatBoost-SGB"
    )
    row = tables_2_3.measure(options, real_data.get_data_sets(["higgs"])[0])
    text = page.read_text()
    assert "tuned CatBoost-SGB against tuned CatBoost-SGLB" in text
    assert f"{100 * row.test[0]:.2f}" in text
    assert f"{100 * row.test[1]:.2f}" in text
    assert "CatBoost-SGLB - CatBoost-SGB" in text
    assert row.verdict.n_splits == 2


def test_a_choice_that_makes_no_sense_is_rejected_before_any_work(folder, monkeypatch):
    both = invoke(folder, "--structures")
    assert both.exit_code == 2
    assert "--catboost or --structures" in both.stderr
    monkeypatch.setattr(catboost_sla, "installed", lambda: False)
    missing = invoke(folder)
    assert missing.exit_code == 2
    assert 'pip install "sglb[paper]"' in missing.stderr
    assert not (folder / "out").exists()
    monkeypatch.setitem(sys.modules, "catboost", None)
    with pytest.raises(ImportError, match=r'pip install "sglb\[paper\]"'):
        fitted(SGB)
