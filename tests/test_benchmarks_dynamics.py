"""The comparison of samplers: its laws by other means, its problems by hand, its report."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from sglb import SGLBRanker, SGLBRegressor
from sglb.losses import StochasticRank

pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def small_posterior():
    from benchmarks.dynamics.draws import Posterior

    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=160)
    return Posterior.make(X[:80], y[:80], X[80:], y[80:], n_structures=6, depth=3)


def test_the_exact_posterior_is_that_of_the_gaussian_process():
    posterior = small_posterior()
    # (gamma I + Pbar)^-1 Pbar, from projectors instead of leaf values.
    Z = posterior.Z.toarray()
    Pbar = (Z / Z.sum(axis=0)) @ Z.T / len(posterior.structures)
    inverse = np.linalg.inv(posterior.shrink_rate * np.eye(80) + Pbar)
    y = posterior.data.target.values
    np.testing.assert_allclose(posterior.mean, inverse @ Pbar @ y, rtol=1e-9, atol=1e-9)
    variance = np.diag(inverse @ Pbar)[posterior.watched]
    np.testing.assert_allclose(posterior.variance, variance, rtol=1e-9)
    assert np.trace(Pbar) / (80 * posterior.shrink_rate) == pytest.approx(1.0)  # prior variance


def test_exact_draws_have_the_exact_variance():
    posterior = small_posterior()
    rng = np.random.default_rng(1)
    draws = np.array([posterior.draw(rng)[posterior.watched] for _ in range(4000)])
    # 4,000 independent draws: a ratio of variances has a standard error of .022.
    ratio = draws.var(axis=0) / posterior.variance
    assert abs(ratio - 1.0).max() < 6 * np.sqrt(2.0 / 4000)


def test_a_watched_chain_of_small_steps_has_the_exact_variance():
    from benchmarks.dynamics import draws

    from sglb.samplers import Hamiltonian, Langevin, Tempering

    posterior = small_posterior()
    for sampler in (
        Langevin(0.1, 1.0, posterior.shrink_rate),
        Hamiltonian(0.05, 1.0, posterior.shrink_rate, 0.5),
        Tempering(0.1, 1.0, posterior.shrink_rate, 2.0, n_replicas=2),
    ):
        row = draws.frozen(posterior, sampler, 2000)
        # A bias of at most eps / (2 a) = 5 %, and six standard errors of four chains.
        assert abs(row["bias"]) < 0.05 + 6 * row["error"]
        assert row["bulk"] > 25
        n_chains = 2 if isinstance(sampler, Tempering) else 1
        assert row["n_steps"] == draws.N_CHAINS * n_chains * 2000
    assert 0.0 < row["swap_rates"][0] < 1.0


@pytest.mark.parametrize("friction", [1.0, 0.5, 0.1])
def test_the_formula_of_one_structure_has_the_bias_that_is_asked_for(friction):
    from benchmarks.dynamics.draws import single, single_formula, single_rate

    from sglb.samplers import Hamiltonian

    w = single_rate(friction, 0.05)
    move = Hamiltonian(w, 1.0, 0.0, friction).move(0)  # k = 1
    C = np.array([[1.0, 1.0 - friction], [0.0, 1.0 - friction]])
    A = C - w * np.array([[1.0, 0.0], [1.0, 0.0]])
    covariance = solve_discrete_lyapunov(A, (w * move.noise) ** 2 * np.ones((2, 2)))
    assert covariance[0, 0] == pytest.approx(1.05)
    formula = single_formula(friction)
    # The sum of all autocovariances of F is e' (I + 2 A (I - A)^-1) covariance e.
    tau = ((np.eye(2) + 2.0 * A @ np.linalg.inv(np.eye(2) - A)) @ covariance)[0, 0] / 1.05
    assert formula["mean"] == pytest.approx(1.0 / tau, rel=1e-6)
    measured = single(friction, n_steps=1000)
    # 512 leaves; each has at least 50 effective squares.
    assert measured["bias"] == pytest.approx(0.05, abs=6 * np.sqrt(2.0 / (512 * 50)))


def test_best_losses_are_known_and_lower_than_the_start():
    from benchmarks.dynamics.problems import PROBLEMS, Truncated

    from sglb.samplers import Plain

    for name, make in PROBLEMS.items():
        problem = make(0)
        chain = problem.chain(Plain(0.1), 0)
        start = problem.loss_of(chain)
        assert problem.barrier > 0.0
        assert (problem.best is None) == (name == "paper")
        assert problem.best is None or problem.best < start - 0.05
        y = problem.data.target.values
        if name == "truncated":
            assert start == pytest.approx(Truncated().loss(y, np.median(y)).mean())
        if name == "double well":  # half of the rows in each valley, 2 * tilt apart
            assert problem.barrier == pytest.approx(0.1, rel=0.05)
        if name == "parity":  # the best choice of signs by trying all 254
            X = problem.data.code_columns.T - 1
            cell = X @ [1, 2, 4]
            wrong = np.array([np.bincount(cell, y == side, minlength=8) for side in (0, 1)])
            parity = (np.arange(8)[:, None] >> np.arange(3) & 1).sum(axis=1) % 2
            signs = np.arange(256)[:, None] >> np.arange(8) & 1
            allowed = (signs != parity).any(axis=1) & (signs != 1 - parity).any(axis=1)
            errors = wrong[1 - signs, np.arange(8)].sum(axis=1)
            assert problem.best == pytest.approx(errors[allowed].min() / 400)


def test_no_boosting_beats_the_best_order_of_documents():
    from benchmarks.dynamics.problems import ranking

    from sglb.boosting import boost
    from sglb.samplers import Plain

    problem = ranking(1)
    chain = problem.chain(Plain(0.2), 0)
    boost(chain, 100)
    assert problem.best <= problem.loss_of(chain) < 0.83


def test_gradients_are_those_of_the_losses():
    from benchmarks.dynamics.problems import DoubleWell

    import sglb

    y = np.where(np.arange(50) % 2, 1.0, -1.0)
    assert "gradient" in str(sglb.check_loss(DoubleWell(), y))
    raw = np.linspace(-3.0, 3.0, 50)
    well, h = DoubleWell(), 1e-6
    numerical = (well.loss(y, raw + h) - well.loss(y, raw - h)) / (2 * h)
    np.testing.assert_allclose(well.gradient(y, raw), numerical, atol=1e-5)


def test_a_tiny_run_is_chosen_compared_and_reported(tmp_path, monkeypatch, capsys):
    from benchmarks.dynamics import costs, descent, draws, report, runner

    monkeypatch.setattr(descent, "BUDGET", dict.fromkeys(descent.BUDGET, 40))
    monkeypatch.setattr(descent, "GRIDS", {f: grid[:1] for f, grid in descent.GRIDS.items()})
    monkeypatch.setattr(descent, "N_CHOICE", 1)
    monkeypatch.setattr(descent, "LONG", 2)
    in_turns = costs.in_turns
    monkeypatch.setattr(costs, "in_turns", lambda steppers, n: in_turns(steppers, 8, 2))
    monkeypatch.setattr(draws, "SINGLE_FRICTIONS", (1.0, 0.5))
    monkeypatch.setattr(draws, "SINGLE_STEPS", 400)
    single = draws.single
    monkeypatch.setattr(draws, "single", lambda a: single(a, 400))
    monkeypatch.setattr(runner, "posterior_of", lambda name: small_posterior())
    monkeypatch.setattr(draws, "N_STEPS", dict.fromkeys(draws.TABLES, 400))
    monkeypatch.setattr(draws, "N_GREEDY", dict.fromkeys(draws.TABLES, 300))
    monkeypatch.setattr(draws, "N_FAST", 400)
    monkeypatch.setattr(draws, "DEPTH", 3)
    monkeypatch.setattr(draws, "CYCLE", 100)
    monkeypatch.setattr(draws, "HOT", 5.0)
    monkeypatch.setattr(draws, "FRICTIONS", dict.fromkeys(draws.TABLES, (0.5,)))
    kept = tmp_path / "dynamics.jsonl"
    arguments = ["--results", str(kept), "--seeds", "2"]
    runner.main(arguments)
    text = capsys.readouterr().out
    for words in (
        "| 1 (langevin) |",
        "uci_kin8nm, 5,000 rows, frozen structures",
        "california_housing, 20,000 rows, searched structures",
        "the goal was 2:",
        "parity, 2 seeds",
        "Many valleys, equal time",
        "Many valleys, 10 times as many gradients",
        "annealed or tempering on each of the problems",
    ):
        assert words in text
    monkeypatch.setattr(descent, "run", lambda *_: pytest.fail("done already"))
    runner.main(arguments)
    assert capsys.readouterr().out == text
    page = tmp_path / "page.md"
    monkeypatch.setattr(report, "PAGE", page)
    runner.main(["--read", str(kept), "--write"])
    assert text.strip() in page.read_text()
    assert page.with_suffix(".png").stat().st_size > 10_000


def test_the_share_that_is_left_is_that_of_the_way_to_the_best_known_loss():
    from benchmarks.dynamics import descent
    from benchmarks.uncertainty.results import Job, Results

    results = Results()
    rows = {"a": 0.5, "b": 0.2, "c": 1.0}
    for name, loss in rows.items():
        row = {"start": 1.0, "loss": loss, "best": 0.1}
        results.add(Job("descent", "parity", 3, name), row)
    shares = descent.left(results, "descent", "parity", 3)
    assert shares == pytest.approx({"a": 4 / 9, "b": 1 / 9, "c": 1.0})
    for part in ("timed", "long"):  # the best known loss is that of all runs
        results.add(Job(part, "parity", 3, part), {"loss": 0.0, "best": None})
        assert descent.left(results, "descent", "parity", 3)["a"] == pytest.approx(0.5)
    assert descent.chosen(results) == {}


def test_samplers_have_the_units_of_the_problem():
    from benchmarks.dynamics import descent
    from benchmarks.dynamics.problems import parity

    problem = replace(parity(0), barrier=0.3, curvature=4.0)
    ladder = descent.tempering(problem, 100, 2.0, 0.1, 0.01)
    hot = 2.0 * 0.3 * 100  # 400 rows in 4 leaves
    assert ladder.hot_temperature == pytest.approx(hot)
    assert ladder.temperature == pytest.approx(0.01 * hot)
    assert [rung.shrink_rate for rung in ladder.ladder()][-1] == pytest.approx(0.4)
    cooled = descent.annealed(problem, 100, 2.0, 0.1, 0.01)
    assert cooled.move(90).temperature == pytest.approx(0.01 * hot)
    assert cooled.shrink_rate.at(90) == pytest.approx(0.01 * 0.4)
    assert cooled.learning_rate == pytest.approx(0.05)


@pytest.mark.parametrize("name", ["double well", "truncated", "paper", "ranking"])
def test_the_default_chain_is_that_of_an_estimator(name):
    from benchmarks.dynamics import descent
    from benchmarks.dynamics.problems import PROBLEMS

    problem = PROBLEMS[name](0)
    settings = descent.default(problem, 300)
    falls = {"temperature", "shrink_rate"} if name in ("double well", "truncated") else set()
    assert set(settings.sampler.schedules) == falls
    assert settings.leaves.method == ("newton" if name == "ranking" else "gradient")
    target, seed = problem.data.target, settings.seed
    kept = {"max_depth": problem.depth, "n_estimators": 300, "random_state": 0, "n_jobs": 1}
    if name in ("paper", "truncated"):
        return  # their codes are not those of an estimator
    X = problem.data.code_columns.T.astype(float)
    chain = problem.default_chain(settings, seed)
    for _ in range(300):
        chain.step()
    if name == "ranking":
        group = np.repeat(np.arange(60), 6)
        model = SGLBRanker(loss=StochasticRank("mrr", 6), **kept)
        raw = model.fit(X, target.values, group=group).predict(X)
    else:
        model = SGLBRegressor(loss=double_well_from(-1.0), **kept).fit(X, target.values)
        raw = model.predict(X)
    np.testing.assert_allclose(raw, chain.rows.raw[0], atol=1e-6)


def double_well_from(start):
    from benchmarks.dynamics.problems import DoubleWell

    class Well(DoubleWell):
        def init(self, y, weight):
            return start

    return Well()


def test_steps_are_timed_in_turn_and_the_fastest_turn_counts(monkeypatch):
    from benchmarks.dynamics import costs

    now, seconds, order = [0.0], {"a": [3.0, 1.0, 2.0], "b": [9.0, 7.0, 8.0]}, []
    monkeypatch.setattr(costs.time, "process_time", lambda: now[0])

    def stepper(name):
        def take(n_steps):
            assert n_steps == 10
            order.append(name)
            now[0] += seconds[name][order.count(name) - 1]

        return take

    measured = costs.in_turns({name: stepper(name) for name in seconds}, 10, 3)
    assert order == ["a", "b"] * 3
    assert measured["a"] == pytest.approx({"seconds": 0.1, "spread": 1.0})
    assert measured["b"] == pytest.approx({"seconds": 0.7, "spread": 1 / 7})


def test_equal_time_is_fewer_steps_of_a_slower_sampler(monkeypatch):
    from benchmarks.dynamics import descent, runner
    from benchmarks.uncertainty.results import Job, Results

    results = Results()
    monkeypatch.setattr(descent, "chosen", lambda results: {"plain": "plain", "slow": "slow 1"})
    for name, seconds in (("plain", 1e-5), ("slow", 4e-5)):
        results.add(Job("costs", "parity", 0, name), {"seconds": seconds})
    monkeypatch.setattr(descent, "run", lambda *arguments: arguments)
    options = runner.parse(["--seeds", "1", "--problems", "parity"])
    works = [work() for _, work in runner.timed_work(options, results)]
    assert works == [("parity", "plain", 0, 1.0), ("parity", "slow 1", 0, 0.25)]


def test_no_arrow_stands_beside_numbers_that_are_printed_alike():
    from benchmarks.dynamics.valleys import mark

    lower = np.linspace(0.40, 0.50, 20)
    assert mark(lower, lower + 0.1) == " ▲"
    assert mark(lower + 0.1, lower) == " ▼"
    assert mark(lower, lower + 1e-5) == ""


def test_unknown_names_are_rejected(capsys):
    from benchmarks.dynamics.runner import parse

    with pytest.raises(SystemExit):
        parse(["--problems", "triple well"])
    assert "'triple well' is not one of" in capsys.readouterr().err


def test_ways_of_cooling_are_compared_on_problems_and_tables(tmp_path, monkeypatch, capsys):
    from benchmarks.dynamics import cooling, descent

    monkeypatch.setattr(descent, "BUDGET", dict.fromkeys(descent.BUDGET, 30))
    monkeypatch.setattr(cooling, "N_STEPS", 20)
    monkeypatch.setattr(cooling, "CLASSES", ("adult",))
    monkeypatch.setattr(cooling, "NUMBERS", ("uci_power",))
    rng = np.random.default_rng(0)
    y = {"adult": rng.integers(0, 2, 60), "uci_power": rng.normal(5.0, 3.0, 60)}

    class Table:
        def __init__(self, name):
            pa = pytest.importorskip("pyarrow")
            self.X, self.y = pa.table({"x": rng.normal(size=60)}), y[name]

    monkeypatch.setattr(cooling, "load_table", Table)
    kept = ["--results", str(tmp_path / "cooling.jsonl"), "--ways", "constant;d, 0.3"]
    for part, words in (("problems", "parity"), ("tables", "truncated, test")):
        arguments = [*kept, "--part", part, "--seeds", "0:1"]
        cooling.main(arguments)
        text = capsys.readouterr().out
        assert words in text
        assert "| d, 0.3 |" in text
        cooling.main([*arguments, "--only-report"])
        assert capsys.readouterr().out == text


def test_a_way_of_cooling_is_in_the_units_of_the_data():
    from benchmarks.dynamics.cooling import WAYS

    temperature, shrink_rate = WAYS["0.03 d n, 0.3"].rates(100, 2.0, 50.0, 4.0)
    assert temperature.at(0) == pytest.approx(0.03 * 2.0 * 50.0)
    assert temperature.at(80) == pytest.approx(1e-4 * 0.03 * 2.0 * 50.0)
    assert shrink_rate.at(0) == pytest.approx(0.3 * 4.0)
    constant = WAYS["constant"].rates(100, 2.0, 50.0, 4.0)
    assert constant == pytest.approx((2e-3 * 2.0, 1e-3 * 4.0))
