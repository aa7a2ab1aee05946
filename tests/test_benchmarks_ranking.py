"""The benchmark of rankings: its parts on a tiny set, its comparisons by hand, without peers."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich")
pytest.importorskip("pandas")

REPOSITORY = Path(__file__).parent.parent
PACE = {"learning_rate": 0.3, "max_depth": 2}


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def tiny(n_queries, seed):
    from benchmarks.ranking.sets import Rows

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8 * n_queries, 3)).astype(np.float32)
    y = np.digitize(X[:, 0] + rng.normal(size=len(X)), [0.0, 1.0, 2.0])
    return Rows(X, y, np.repeat(np.arange(n_queries), 8))


def test_every_query_is_in_one_part_and_official_parts_are_kept():
    from benchmarks.ranking.sets import CHOOSE, LEARN, TEST, part_of

    measured = part_of("mq2008", list("abcde"), ["S5", "S1", "S4", "S2", "S3"])
    assert measured.tolist() == [TEST, LEARN, CHOOSE, LEARN, LEARN]
    split = ["test", "train"] * 8
    ids = np.array([f"q{number:02}" for number in range(16)])
    measured = part_of("yandex_relevance", ids, split)
    assert (measured[::2] == TEST).all()
    assert measured[1::2].tolist() == [LEARN, LEARN, LEARN, CHOOSE] * 2
    order = np.random.default_rng(0).permutation(16)  # the order of the table does not matter
    again = part_of("yandex_relevance", ids[order], np.array(split)[order])
    assert (again == measured[order]).all()
    counts = np.bincount(part_of("bio_kdd04", np.arange(20), None))
    assert counts.tolist() == [2, 2, 16]


def test_scores_are_those_of_queries_with_a_relevant_row():
    from benchmarks.ranking.sets import Rows, both

    query = np.array([0, 0, 1, 1, 2, 2])
    rows = Rows(np.zeros((6, 1), np.float32), np.array([1, 0, 0, 0, 0, 2]), query)
    raw = np.array([0.0, 1.0, 5.0, 4.0, 1.0, 2.0])
    assert rows.score(raw) == pytest.approx([1.0 / np.log2(3.0), 1.0])
    assert rows.score(raw, "mrr") == pytest.approx([0.5, 1.0])
    kept = rows.take([0, 2])
    assert kept.query.tolist() == [0, 0, 1, 1]
    assert kept.y.tolist() == [1, 0, 0, 2]
    assert both(kept, rows).query.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_a_trial_is_the_same_point_for_all_libraries():
    from benchmarks.ranking.methods import DIMENSIONS, TRIALS, get_method, variants
    from benchmarks.ranking.tuning import points

    cube = points("mq2008")
    # One trial in each of TRIALS parts of each dimension.
    assert (np.sort(np.floor(TRIALS * cube), axis=0) == np.arange(TRIALS)[:, None]).all()
    assert (points("mq2008") == cube).all()
    for corner in (np.zeros(DIMENSIONS), np.full(DIMENSIONS, 1.0 - 1e-12), *cube):
        measured = [get_method(name).settings(variant, corner) for name, variant in variants()]
        assert len({settings["learning_rate"] for settings in measured}) == 1
        leaves = [settings["num_leaves"] for settings in measured if "num_leaves" in settings]
        assert all(7 <= count <= 31 for count in leaves)
        shares = [settings["structure_sample"] for settings in measured[:4]]
        assert all(0.3 <= share <= 1.0 for share in shares)
    modes = [get_method("catboost").settings("catboost YetiRank", point) for point in cube]
    assert sum("Classic" in mode["loss_function"] for mode in modes) == TRIALS // 2


def test_differences_are_those_of_the_paired_t_test():
    from benchmarks.ranking.comparison import difference
    from scipy import stats

    rng = np.random.default_rng(2)
    first, second = rng.uniform(size=(2, 40))
    measured = difference(first, second)
    expected = stats.ttest_rel(first, second)
    assert measured.mean == pytest.approx((first - second).mean())
    assert measured.p == pytest.approx(expected.pvalue)
    above = stats.ttest_rel(first, second, alternative="greater")
    assert measured.bound == pytest.approx(above.confidence_interval(0.95).low)
    assert difference(first, first).p == 1.0


def test_a_tiny_set_runs_through_all_parts_and_the_report(tmp_path, monkeypatch):
    from benchmarks.ranking import chains, report, times, tuning
    from benchmarks.uncertainty.results import Job, Results

    monkeypatch.setattr(chains, "LENGTHS", (5, 10))
    learn, choose, test = tiny(30, 0), tiny(10, 1), tiny(20, 2)
    results = Results.resume(tmp_path / "ranking.jsonl")
    results.begin("a command")
    ours = "sglb query_squared"
    # Test queries are not even passed to what must not see them.
    chosen = tuning.tune("mq2008", ours, (learn, choose, None), max_trees=20)
    assert chosen["ndcg"] == max(trial["ndcg"] for trial in chosen["trials"])
    results.add(Job("tune", "mq2008", 0, ours), chosen)
    parts = (learn, choose, test)
    scored = tuning.score(ours, parts, chosen)
    assert len(scored["queries"]) == tuning.SEEDS
    assert len(scored["mean_of_5"]) == len(scored["queries"][0])
    for name, lag in ((ours, 0.0), ("lightgbm lambdarank", 0.1), ("catboost QueryRMSE", 0.2)):
        shifted = {key: (np.array(values) - lag).tolist() for key, values in scored.items()}
        results.add(Job("test", "mq2008", 0, name), shifted)
    for rule, row in chains.length((learn, choose, None), 0).items():
        results.add(Job("length", "mq2008", 0, rule), row)
    frozen = {"settings": PACE | {"shrink_rate": 1e-3}, "trees": 10}
    for seed in range(2):
        for sampler, row in chains.langevin(parts, frozen, seed).items():
            results.add(Job("langevin", "mq2008", seed, sampler), row)
    for metric in chains.METRICS:
        row = chains.matching(parts, {"settings": PACE}, metric, n_seeds=1, max_trees=20)
        results.add(Job("matching", "mq2008", 0, metric), row)
    row = times.measure(ours, (learn, choose, None), 0, n_trees=5)
    results.add(Job("times", "yandex_relevance", 0, ours), row)
    results.add(Job("times", "yandex_relevance", 0, "catboost StochasticRank"), row)
    results.add(Job("defaults", "mq2008", 0, ours), tuning.default(ours, parts, 0))

    text = report.markdown(Results.read(results.path))
    assert "| above `lightgbm lambdarank`, p < 0.01 | +0.1000 ± 0.0000 |" in text
    assert "not below CatBoost's best, `catboost QueryRMSE` in hindsight" in text
    for part in ("held-out training queries", "Twice the tuned", "trained by err", "of the proc"):
        assert part in text
    assert "is 1.0 times as fast as `catboost StochasticRank`; the goal was 10: **not" in text


def test_only_tuned_rankers_are_tested(tmp_path):
    from benchmarks.ranking.comparison import frozen
    from benchmarks.uncertainty.results import Job, Results

    results = Results()
    results.add(Job("tune", "mq2008", 0, "a"), {"error": "no"})
    results.add(Job("tune", "mq2008", 0, "b"), {"settings": {}, "trees": 10})
    assert frozen(results, "mq2008", "a") is None
    assert frozen(results, "mq2008", "c") is None
    assert frozen(results, "mq2008", "b")["trees"] == 10


def test_unknown_names_are_rejected(capsys):
    from benchmarks.ranking.runner import parse

    with pytest.raises(SystemExit):
        parse(["--sets", "mq2009"])
    assert "'mq2009' is not one of" in capsys.readouterr().err
