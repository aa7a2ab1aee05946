"""Tables 2 and 3: the search gives the same results whatever interrupts it."""

import os
import socket
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import stats
from typer.testing import CliRunner

from sglb.cli.app import app
from sglb.errors import ChainDiverged
from sglb.experiments import real_data, search, tables_2_3
from sglb.experiments.search import Search
from sglb.experiments.tables_2_3 import TuningOptions

optuna = pytest.importorskip("optuna")


def write_table(folder, name, seed=0, n_rows=300):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n_rows, 4))
    y = (x[:, 0] * x[:, 1] + 0.5 * generator.standard_normal(n_rows) > 0).astype(np.int64)
    columns = {f"x{index}": column.astype(np.float32) for index, column in enumerate(x.T)}
    pa.parquet.write_table(pa.table(columns | {"target": y}), folder / f"{name}.parquet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    write_table(data, "higgs_26k")
    write_table(data, "epsilon_5k100f", seed=1)
    monkeypatch.setenv("SGLB_DATA", str(data))
    search._split_in.cache_clear()
    yield tmp_path
    search._split_in.cache_clear()


def higgs(folder, method="SGLB", goal="zero-one", trees=6):
    return Search(folder, goal, "higgs_26k", method, trees)


def facts(trials):
    """What must not depend on when and where a trial was run."""
    return [(t.number, t.parameters, t.score, t.n_trees) for t in trials]


def run_all(searched, n_trials):
    numbers = []
    while (number := searched.run_next(n_trials)) is not None:
        numbers.append(number)
    return numbers


def test_methods_take_turns_so_that_an_early_end_compares_equally_many_trials():
    class Finished:
        def __init__(self, n_finished):
            self.n_finished = n_finished

        def finished(self, n_trials):
            return range(min(self.n_finished, n_trials))

    ahead, behind = Finished(3), Finished(1)
    missing = tables_2_3.missing_trials([ahead, behind], 5)
    assert missing == [behind, behind, ahead, behind, ahead, behind]
    assert tables_2_3.missing_trials([ahead], 3) == []


# Parameters.


@pytest.mark.parametrize("method", real_data.METHODS)
def test_parameters_follow_from_the_seed_alone(method):
    first = [search.draw(method, seed) for seed in range(5)]
    again = [search.draw(method, seed) for seed in reversed(range(5))]
    assert first == again[::-1]
    assert len({parameters["learning_rate"] for parameters in first}) == 5


def test_parameters_have_the_papers_distributions():
    n = 300
    sgb = [search.draw("SGB", seed) for seed in range(n)]
    sglb = [search.draw("SGLB", seed) for seed in range(n)]

    def uniform(draws, name, low, high, transform=lambda v: v):
        values = transform(np.array([drawn[name] for drawn in draws]))
        low, high = transform(np.array([low, high], dtype=float))
        return stats.kstest((values - low) / (high - low), "uniform").pvalue

    # Six tests with fixed seeds, a false alarm of 1e-4 each.
    assert uniform(sgb, "learning_rate", 1e-5, 1.0, np.log) > 1e-4
    assert uniform(sglb, "learning_rate", 1e-5, 1.0, np.log) > 1e-4
    assert uniform(sgb, "l2_regularization", 0.1, 10.0, np.log) > 1e-4
    assert uniform(sgb, "subsample", 0.0, 1.0) > 1e-4
    assert uniform(sglb, "shrink_rate", 1e-5, 1e-2, np.log) > 1e-4
    assert uniform(sglb, "temperature", 1e-5, 1e-2, np.log) > 1e-4
    assert {drawn["max_depth"] for drawn in sgb} == {6, 7, 8, 9, 10}
    assert all(0 < drawn["subsample"] <= 1 for drawn in sgb)
    assert set(sglb[0]) == {"learning_rate", "max_depth", "shrink_rate", "temperature"}
    assert set(sgb[0]) == {"learning_rate", "max_depth", "l2_regularization", "subsample"}
    of_structures = [search.draw("SGB-structures", seed) for seed in range(n)]
    assert [drawn.pop("structure_sample") for drawn in of_structures] == [
        drawn.pop("subsample") for drawn in sgb
    ]
    assert of_structures == sgb


def test_models_are_the_papers(folder):
    model = search.make_model(higgs(folder), 3)
    assert model.loss.width == 0.1
    assert (model.max_bins, model.leaf_method, model.init) == (65, "gradient", "zero")
    assert (model.l2_regularization, model.n_estimators) == (0.0, 6)
    assert search.make_model(higgs(folder, "SGB", "logloss"), 3).loss == "logistic"


def test_methods_draw_rows_where_they_say(folder):
    models = [search.make_model(higgs(folder, method), 3) for method in real_data.METHODS]
    samplers = [model.sampler for model in models]
    assert samplers == ["stochastic", "plain", "langevin"]
    assert [model.structure_sample < 1.0 for model in models] == [False, True, False]
    assert [model.subsample < 1.0 for model in models] == [True, False, False]


def test_seeds_differ_between_searches_and_trials(folder):
    searches = [higgs(folder, m, g) for m in real_data.METHODS for g in ("zero-one", "logloss")]
    assert len({searched.seed_of(number) for searched in searches for number in range(50)}) == 300


# Resuming.


@pytest.mark.parametrize("goal", ["zero-one", "logloss"])
@pytest.mark.parametrize("method", real_data.METHODS)
def test_an_interrupted_search_gives_the_same_results_as_an_uninterrupted_one(folder, goal, method):
    whole, broken = (higgs(folder / name, method, goal) for name in ("whole", "broken"))
    assert run_all(whole, 4) == [0, 1, 2, 3]
    assert broken.run_next(2) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search.SGLBClassifier, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            broken.run_next(4)
    assert run_all(broken, 2) == [1]
    assert run_all(broken, 4) == [2, 3]
    assert facts(whole.finished(4)) == facts(broken.finished(4))
    best = whole.best(4)
    assert best.score == min(trial.score for trial in whole.finished(4))
    assert np.array_equal(whole.test_losses(best), broken.test_losses(broken.best(4)))


def interrupted(*arguments, **options):
    raise KeyboardInterrupt


def claim(searched, owner, number=0):
    ticket = searched.study().ask()
    ticket.set_user_attr("owner", owner)
    ticket.set_user_attr("number", number)


def test_a_claim_of_a_process_that_died_is_free_again(folder):
    searched = higgs(folder)
    claim(searched, f"{socket.gethostname()}:{2**22 + 1}")  # above the largest process number
    claim(searched, f"{socket.gethostname()}:{os.getpid()}", 1)  # this process, before a restart
    assert run_all(searched, 2) == [0, 1]


@pytest.mark.parametrize("owner", [f"{socket.gethostname()}:{os.getppid()}", "elsewhere:1"])
def test_a_claim_of_a_living_process_is_respected(folder, owner):
    searched = higgs(folder)
    claim(searched, owner)
    assert run_all(searched, 2) == [1]
    assert [trial.number for trial in searched.finished(2)] == [1]


def test_fewer_trials_than_are_finished_look_at_the_first_only(folder):
    searched = higgs(folder)
    run_all(searched, 4)
    assert facts(searched.finished(2)) == facts(searched.finished(4))[:2]
    assert searched.best(2).number < 2


def test_of_equal_scores_the_first_trial_counts(folder, monkeypatch):
    searched = higgs(folder)
    run_all(searched, 3)
    equal = [search.Trial(number, {}, 0.25, 1, 0.0) for number in (2, 0, 1)]
    monkeypatch.setattr(Search, "finished", lambda self, n_trials: equal)
    assert searched.best(3).number == 0


def test_losses_of_the_best_trial_are_kept_and_can_be_recomputed(folder):
    searched = higgs(folder, goal="logloss")
    run_all(searched, 3)
    best = searched.best(3)
    kept = searched.test_losses(best)
    assert kept.shape == (60,)
    files = list(folder.rglob("*.npy"))
    assert 1 <= len(files) <= 3
    for path in files:
        path.unlink()
    assert np.array_equal(searched.test_losses(best), kept)


def test_a_trial_that_diverges_is_a_result_that_is_never_chosen(folder, monkeypatch):
    searched, fit = higgs(folder), search.SGLBClassifier.fit

    def first_fails(self, *arguments, **options):
        if self.random_state == searched.seed_of(0):
            raise ChainDiverged(3)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(search.SGLBClassifier, "fit", first_fails)
    assert run_all(searched, 2) == [0, 1]
    assert searched.finished(2)[0].score == np.inf
    assert searched.best(2).number == 1


def test_other_rows_of_the_same_table_are_rejected(folder):
    searched = higgs(folder)
    searched.run_next(2)
    write_table(folder / "data", "higgs_26k", seed=9)
    search._split_in.cache_clear()
    with pytest.raises(ValueError, match="another version of table 'higgs_26k'"):
        searched.run_next(2)


def test_without_optuna_one_line_says_how_to_install_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r'pip install "sglb\[paper\]"'):
        higgs(folder).run_next(1)


# Data.


def test_the_data_sets_are_the_ten_of_the_paper():
    assert len(real_data.DATA_SETS) == 10
    published = [
        row.published(goal) for row in real_data.DATA_SETS for goal in ("zero-one", "logloss")
    ]
    assert sum(row.sgb for row in published[::2]) == pytest.approx(104.8)
    assert sum(row.sglb for row in published[::2]) == pytest.approx(103.1)
    assert sum(row.sgb for row in published[1::2]) == pytest.approx(2.548)
    assert sum(row.sglb for row in published[1::2]) == pytest.approx(2.547)
    # Bold in the paper: better with a p-value of at most .05 as printed.
    for numbers, bold in ((published[::2], (0, 7)), (published[1::2], (2, 4))):
        clear = [row for row in numbers if row.p_value <= 0.05]
        ahead = sum(row.sglb < row.sgb for row in clear)
        assert (len(clear) - ahead, ahead) == bold


def test_rows_are_split_65_15_20_with_the_classes_in_the_same_shares(folder):
    split = real_data.split_table("higgs_26k", 0)
    parts = (split.train, split.valid, split.test)
    assert [len(y) for _, y in parts] == [195, 45, 60]
    assert [X.num_rows for X, _ in parts] == [195, 45, 60]
    rows = np.concatenate([X["x0"].to_numpy() for X, _ in parts])
    assert len(np.unique(rows)) == 300
    shares = [y.mean() for _, y in parts]
    assert np.ptp(shares) < 0.02
    other = real_data.split_table("higgs_26k", 1)
    assert other.fingerprint != split.fingerprint
    assert real_data.split_table("higgs_26k", 0).fingerprint == split.fingerprint


def test_data_sets_are_chosen_by_name():
    assert [data.name for data in real_data.get_data_sets(["kick", "adult", "kick"])] == [
        "kick",
        "adult",
    ]
    assert real_data.get_data_sets(None) == list(real_data.DATA_SETS)
    with pytest.raises(ValueError, match="unknown data set 'iris'; the paper has appetency, churn"):
        real_data.get_data_sets(["adult", "iris"])


def test_a_stored_table_comes_before_that_of_openml(monkeypatch):
    monkeypatch.setattr(real_data, "stored_tables", lambda: ["higgs_26k", "adult"])
    available, missing = real_data.find_tables(real_data.DATA_SETS)
    assert [data.name for data in missing] == ["epsilon"]
    tables = {data.name: data.table for data in available}
    assert tables["higgs"] == "higgs_26k"
    assert tables["churn"] == "kdd09_churn"
    kick = next(data for data in available if data.name == "kick")
    assert not kick.copy.deviation  # the deviation of the stored copy does not apply to this table
    monkeypatch.setattr(real_data, "stored_tables", list)
    (higgs,), _ = real_data.find_tables(real_data.get_data_sets(["higgs"]))
    assert higgs.table == "higgs_98k"
    assert "98,050" in higgs.copy.deviation


# The tables.


def make_options(folder, goal="zero-one", **more):
    settings = {"n_trials": 3, "data_sets": ["higgs", "epsilon"], "max_trees": 5} | more
    return TuningOptions(goal, folder / "out", **settings)


def measured(options):
    rows = [
        tables_2_3.measure(options, data) for data in real_data.get_data_sets(options.data_sets)
    ]
    return [(row.data.name, row.test, row.p_value, row.n_trials) for row in rows]


@pytest.mark.parametrize("rival", ["SGB", "SGB-structures"])
@pytest.mark.parametrize("goal", ["zero-one", "logloss"])
def test_a_table_shows_the_test_losses_of_the_chosen_models_beside_the_published(
    folder, goal, rival, capsys
):
    page = folder / "page.md"
    mark = goal if rival == "SGB" else f"{goal} {rival}"
    page.write_text(f"<!-- {mark} -->\n<!-- end of {mark} -->\n")
    options = make_options(folder, goal, rival=rival)
    tables_2_3.run(options, page)
    printed = capsys.readouterr().out
    for data in real_data.get_data_sets(options.data_sets):
        losses = []
        for method in (rival, "SGLB"):
            searched = options.search(data, method)
            model = search.make_model(searched, searched.best(3).number)
            split = real_data.split_table(data.table, 0)
            metric = {"zero-one": "error", "logloss": "logloss"}[goal]
            model.fit(*split.train, eval_set=[split.valid], eval_metric=metric)
            assert model.best_score_ == searched.best(3).score
            X, y = split.test
            if goal == "zero-one":
                losses.append((model.predict(X) != y).astype(float))
            else:
                losses.append(-np.log(model.predict_proba(X)[np.arange(60), y]))
        row = tables_2_3.measure(options, data)
        assert np.allclose(row.test, [loss.mean() for loss in losses])
        if np.ptp(losses[0] - losses[1]):
            assert row.p_value == pytest.approx(stats.ttest_rel(*losses).pvalue)
        line = next(
            line for line in page.read_text().splitlines() if line.startswith(f"| {data.name} ")
        )
        assert f"| {data.published(goal).sgb:g} | {data.published(goal).sglb:g} |" in line
        shown = f"{row.test[0] * 100:.2f}" if goal == "zero-one" else f"{row.test[0]:.4f}"
        assert shown in line
    assert "25,970 of the 11,000,000 rows" in printed
    assert f"here {rival} " in printed
    assert "far from the paper's table" in page.read_text()


def test_a_claim_that_another_process_gives_up_is_run_again(folder, monkeypatch):
    searched, evaluate, fail = higgs(folder), search.evaluate, optuna.trial.TrialState.FAIL

    def taken_for_dead(*arguments):
        result = evaluate(*arguments)
        if len(searched.study().trials) == 1:
            searched.study().tell(0, state=fail)
        return result

    monkeypatch.setattr(search, "evaluate", taken_for_dead)
    assert run_all(searched, 2) == [0, 0, 1]
    untouched = higgs(folder / "untouched")
    run_all(untouched, 2)
    assert facts(searched.finished(2)) == facts(untouched.finished(2))


def test_two_processes_give_what_one_gives(folder):
    alone, together = make_options(folder / "1"), make_options(folder / "2", n_jobs=2)
    for options in (alone, together):
        tables_2_3.search(options, real_data.get_data_sets(options.data_sets))
    assert measured(alone) == measured(together)
    for data in real_data.get_data_sets(alone.data_sets):
        for method in alone.methods:
            first, second = (
                options.search(data, method).finished(3) for options in (alone, together)
            )
            assert facts(first) == facts(second)


def test_a_table_is_read_again_when_the_folder_is_another(folder, monkeypatch):
    first = search._split("higgs_26k", 0)
    assert search._split("higgs_26k", 0) is first
    other = folder / "other"
    other.mkdir()
    write_table(other, "higgs_26k", seed=5)
    monkeypatch.setenv("SGLB_DATA", str(other))
    assert search._split("higgs_26k", 0).fingerprint != first.fingerprint


def test_more_trials_continue_from_the_finished_ones(folder):
    data = real_data.get_data_sets(["higgs"])
    for n_trials in (1, 3):
        tables_2_3.search(make_options(folder, n_trials=n_trials, data_sets=["higgs"]), data)
    grown = make_options(folder, data_sets=["higgs"]).search(data[0], "SGB")
    assert len(grown.study().trials) == 3
    fresh = make_options(folder / "fresh", data_sets=["higgs"])
    tables_2_3.search(fresh, data)
    assert facts(grown.finished(3)) == facts(fresh.search(data[0], "SGB").finished(3))


def test_a_search_that_is_not_complete_says_so(folder):
    options = make_options(folder, n_trials=5)
    data = real_data.get_data_sets(["higgs"])[0]
    assert tables_2_3.measure(options, data) is None
    for method in options.methods:
        options.search(data, method).run_next(5)
    text = tables_2_3.make_report(options, [tables_2_3.measure(options, data)]).markdown()
    assert "higgs: only 1 of 5 trials so far." in text


def test_both_methods_choose_from_the_same_number_of_trials(folder):
    options = make_options(folder, n_trials=4)
    data = real_data.get_data_sets(["higgs"])[0]
    for method, n_trials in (("SGB", 2), ("SGLB", 4)):
        for _ in range(n_trials):
            options.search(data, method).run_next(4)
    row = tables_2_3.measure(options, data)
    assert row.n_trials == 2
    searched = options.search(data, "SGLB")
    assert row.test[1] == searched.test_losses(searched.best(2)).mean()


def test_a_report_runs_nothing(folder):
    words = ["paper", "zero-one", "--datasets", "higgs", "--max-trees", "2", "--jobs", "1"]
    words += ["--out", str(folder / "out"), "--trials"]
    assert CliRunner().invoke(app, [*words, "1"]).exit_code == 0
    message = CliRunner().invoke(app, [*words, "3", "--only-report"])
    assert message.exit_code == 0, message.stderr
    assert "higgs: only 1 of 3 trials so far." in message.stdout
    data = real_data.get_data_sets(["higgs"])[0]
    searched = make_options(folder, n_trials=3, max_trees=2).search(data, "SGB")
    assert len(searched.study().trials) == 1


def test_a_report_of_nothing_says_so(folder, capsys):
    tables_2_3.run(make_options(folder, rival="SGB-structures"), only_report=True)
    assert "There are no trials of SGB-structures and SGLB in" in capsys.readouterr().out


def test_data_sets_without_a_table_are_left_out_unless_named(folder, monkeypatch):
    monkeypatch.setattr(real_data, "OPENML", {})
    words = ["paper", "logloss", "--max-trees", "2", "--trials", "1", "--jobs", "1"]
    message = CliRunner().invoke(app, [*words, "--out", str(folder / "out")])
    assert message.exit_code == 0, message.stderr
    assert "kick: left out, there is no table kick." in message.stdout
    assert "higgs: left out" not in message.stdout


@pytest.mark.parametrize(
    ("test", "p_value", "cells"),
    [
        ((0.2, 0.1), 0.01, "20.00 | **10.00** | 0.01"),
        ((0.1, 0.2), 0.01, "**10.00** | 20.00 | 0.01"),
        ((0.1, 0.2), 0.06, "10.00 | 20.00 | 0.06"),
    ],
)
def test_what_is_significantly_better_is_bold(folder, test, p_value, cells):
    row = tables_2_3.DataSetResult(real_data.DATA_SETS[3], test, p_value, 3, 60.0)
    assert cells in tables_2_3.make_report(make_options(folder), [row]).markdown()


def rejected(*words):
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="sglb")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--datasets", "iris"], "unknown data set 'iris'"),
        (["--datasets", "kick"], "needs the table kick.parquet"),
        (["--datasets", "churn"], "needs the table kdd09_churn_50k45f.parquet"),
        (["--trials", "0"], "Invalid value for '--trials'"),
        (["--max-trees", "0"], "Invalid value for '--max-trees'"),
        (["--jobs", "0"], "Invalid value for '--jobs'"),
        (["--datasets", "higgs", "--write", "--page", "no.md"], "no.md: no such page"),
    ],
)
def test_bad_options_are_rejected_in_one_line_before_any_work(folder, words, message, monkeypatch):
    monkeypatch.setattr(real_data, "OPENML", {})  # which is not asked
    assert message in rejected("paper", "zero-one", "--out", folder / "out", *words)
    assert not (folder / "out").exists()


def test_the_commands_run_from_the_command_line(folder):
    for goal in ("zero-one", "logloss"):
        words = ["paper", goal, "--trials", 1, "--max-trees", 2, "--datasets", "higgs, epsilon"]
        result = CliRunner().invoke(
            app, [str(w) for w in [*words, "--jobs", 1, "--out", folder / "out"]]
        )
        assert result.exit_code == 0, result.stderr
        assert "higgs" in result.stdout
    assert Path(folder / "out" / "trials.journal").is_file()


@pytest.mark.parametrize("command", ["synthetic", "zero-one", "logloss", "theory"])
def test_every_command_and_option_of_the_paper_has_a_help_text(command):
    from typer.main import get_command

    from sglb.cli.paper import app as paper

    help_command = get_command(paper).commands[command]
    assert help_command.help
    for parameter in help_command.params:
        assert getattr(parameter, "help", "x"), parameter.name
