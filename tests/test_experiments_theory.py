"""The theorems' measurements: their exact sides against other ways to compute them, and small runs.

Measured values are compared at five standard errors (batch means with 19 degrees of freedom:
a chance of 8e-5 each, some dozen comparisons, seeds fixed).
"""

import numpy as np
import pytest

from sglb.experiments import small_chains
from sglb.experiments.theory import (
    concentration,
    convergence,
    generalisation,
    gibbs_line,
    modes,
    momentum,
    page,
    preconditioner,
    problem,
    regularisation,
    spectral_gap,
    weak_convergence,
)
from sglb.experiments.theory.problem import SQUARE, SQUARE_Y, TWELVE, StudySize
from sglb.losses import Squared
from sglb.samplers import Hamiltonian, Langevin

SMALL = StudySize(0.05, seed=1)


def test_the_exact_covariance_of_one_structure_is_the_autoregressions():
    # A leaf of n rows: (T / n) / ((1 + gamma) (1 - eps (1 + gamma) / 2)).
    P = small_chains.projector_of([[0, 0, 0, 1, 1]], 0)
    for eps in (0.5, 0.05):
        pull = 1.0 + problem.GAMMA
        variance = problem.TEMPERATURE / np.array([3, 3, 3, 2, 2]) / (pull * (1 - eps * pull / 2))
        result = weak_convergence.exact_covariance([P], np.arange(5.0), eps)
        assert np.allclose(np.diag(result), variance)


def test_the_exact_covariance_goes_to_the_diffusions_linearly():
    projectors = [small_chains.projector_of(SQUARE, f) for f in (0, 1)]
    limit = weak_convergence.limit_covariance(projectors)
    slopes = [
        (weak_convergence.exact_covariance(projectors, SQUARE_Y, eps) - limit) / eps
        for eps in (1e-3, 5e-4)
    ]
    assert np.abs(slopes[1]).max() > 0.1
    assert np.allclose(slopes[0], slopes[1], rtol=5e-3, atol=1e-4)


def test_chances_of_a_split_from_pure_noise_are_those_of_simulated_noise():
    exact = preconditioner.choice_probabilities(TWELVE)
    assert exact.sum() == pytest.approx(1.0, abs=1e-4)
    z = np.random.default_rng(0).standard_normal((400_000, TWELVE.shape[1]))
    scores = [
        sum(z[:, feature == side].sum(axis=1) ** 2 / (feature == side).sum() for side in (0, 1))
        for feature in TWELVE
    ]
    share = np.bincount(np.argmax(scores, axis=0), minlength=4) / len(z)
    assert np.abs(share - exact).max() < 5 * np.sqrt(0.25 * 0.75 / len(z))


def test_two_balanced_features_are_equally_likely_and_span_three_dimensions():
    assert np.allclose(preconditioner.choice_probabilities(SQUARE), 0.5, atol=1e-9)
    assert concentration._basis().shape == (8, 3)


def test_the_gibbs_law_does_not_depend_on_its_grid():
    optimum = concentration.global_optimum()
    for beta in (8.0, 128.0):
        coarse, fine = (concentration.gibbs_excess(beta, optimum, n) for n in (81, 101))
        assert coarse == pytest.approx(fine, rel=0.02)
        assert fine > 0


def test_chains_have_the_covariance_of_the_formula():
    result = weak_convergence.weak_convergence(SMALL)
    assert (np.abs(result.random - result.exact) < 5 * result.random_error).all()
    assert (result.random_error < 0.1 * (1 + result.exact)).all()
    assert (np.diff(result.greedy) < 0).all()
    assert result.greedy[-1] < 0.1


def test_the_excess_loss_is_that_of_gibbs_and_below_what_plain_boosting_keeps():
    # Sixteen independent chains, five standard errors: a chance of 2e-4 for each of six betas.
    result = concentration.concentration(StudySize(0.15, seed=1))
    assert (np.diff(result.measured[1:]) < 0).all()
    assert (np.abs(result.measured - result.gibbs) < 5 * result.error).all()
    assert (result.error < 0.2 * result.gibbs).all()
    assert (result.measured[1:] < result.rate[1:]).all()
    assert result.gibbs[-1] < result.plain


def test_structures_of_a_slow_chain_tell_the_preconditioner():
    result = preconditioner.preconditioner(SMALL)
    assert result.distance[-1] < result.distance[0]
    n_steps = SMALL.steps(200_000)
    # Structures of a chain are nearly independent draws at this learning rate.
    deviation = np.sqrt(result.exact * (1 - result.exact) / n_steps)
    assert (np.abs(result.measured[-1] - result.exact) < 6 * deviation).all()


def test_both_wells_are_visited_by_their_weights():
    result = modes.modes(StudySize(0.1, seed=2))
    assert 0.05 < result.gibbs_mass < 0.2
    assert abs(result.mass - result.gibbs_mass) < 5 * result.mass_error
    assert result.mass_error < 0.02
    assert np.sum(result.density) * (result.grid[1] - result.grid[0]) == pytest.approx(1.0)


def test_a_recorder_has_the_states_after_the_burn_in():
    rows = small_chains.binary_rows([[0, 0, 1]], [1.0, 3.0, 5.0])
    rule = small_chains.FixedStructure(small_chains.splits(0))
    recorder = small_chains.Recorder(3, 1, np.array([0, 2]))
    small_chains.run_chain(rows, Squared(), Langevin(0.5, 0.0, 0.0), rule, recorder, seed=0)
    # From zero half of the way at each step: to 2 in the left leaf, to 5 in the right.
    assert np.allclose(recorder.raw, [[1.5, 3.75], [1.75, 4.375]])
    assert recorder.features.tolist() == [0, 0]


def test_the_error_of_batches_is_that_of_independent_values():
    values = np.random.default_rng(0).standard_normal(200_000)
    assert small_chains.batch_error(values, 200) == pytest.approx(1 / np.sqrt(200_000), rel=0.25)


def test_the_spectral_gap_of_a_normal_law_is_its_precision():
    grid = np.linspace(-8.0, 8.0, 2001)
    for precision in (0.5, 3.0):
        law = gibbs_line.GibbsLine(grid * precision**-0.5, 0.5 * grid**2)
        assert law.spectral_gap() == pytest.approx(precision, rel=1e-3)
        assert law.mean(law.grid**2) == pytest.approx(1 / precision, rel=1e-6)
        assert law.density().max() == pytest.approx(np.sqrt(precision / (2 * np.pi)), rel=1e-4)


# Theorem 3.


def test_the_mean_gap_is_that_of_simulated_data_sets():
    # 20,000 data sets, five standard errors: a chance of 6e-7 each.
    n_rows, beta = 16, 32.0
    sets = generalisation.DataSets.draw(n_rows, 20_000, 0)
    cells = generalisation.cells_at(n_rows, beta)
    losses = sets.exact_losses(cells)
    exact = generalisation.exact_point(n_rows, beta)
    optimum = np.mean([cell.optimum[1] for cell in cells])
    for values, mean in (
        (sets.gaps(cells, *losses), exact.gap),
        (losses[0].mean(axis=1) - optimum, exact.excess),
    ):
        assert abs(values.mean() - mean) < 5 * values.std() / np.sqrt(len(values))
    assert sum(cell.chance.sum() for cell in cells) == pytest.approx(4.0, abs=1e-8)


def test_losses_of_a_cell_are_integrals_over_its_gibbs_law():
    cell = generalisation.CellLosses(16, 32.0, 0.4)
    n, k = 5, 2
    grid = np.linspace(-25.0, 25.0, 50_001)
    loss = (
        k * gibbs_line.bounded_loss(grid, generalisation.SIDE)
        + (n - k) * gibbs_line.bounded_loss(grid, -generalisation.SIDE)
    ) / n
    energy = 32.0 * n / 16 * (loss + 0.5 * generalisation.GAMMA * grid**2)
    law = gibbs_line.GibbsLine(grid, energy)
    new, old = cell.tables
    assert old[n, k] == pytest.approx(law.mean(loss), rel=1e-5)
    assert new[n, k] == pytest.approx(law.mean(generalisation.expected_loss(grid, 0.4)), rel=1e-5)


def test_the_gap_falls_like_one_over_n_and_its_spread_like_one_over_the_root():
    exact = [generalisation.exact_point(n, 16.0) for n in (32, 128)]
    assert exact[0].gap / exact[1].gap == pytest.approx(4.0, rel=0.03)
    assert exact[0].rate / exact[1].rate == pytest.approx(4.0)
    # 4,000 data sets: a standard error of 1.1 % each.
    ratio = generalisation.spread(32, 0) / generalisation.spread(128, 0)
    assert ratio == pytest.approx(2.0, rel=0.2)
    assert all(point.gap < point.rate for point in exact)


def test_chains_generalise_like_their_gibbs_laws(monkeypatch):
    # Data sets are independent; the chain's step of 0.05 adds some 1 % to the excess loss.
    monkeypatch.setattr(generalisation, "TOTAL_BITS", 11)
    exact = generalisation.exact_point(32, 16.0)
    point = generalisation.measure(exact, StudySize(0.3, seed=1))
    assert abs(point.gap - exact.gap) < 5 * point.gap_error
    assert point.gap_error < 0.15 * exact.gap
    assert point.excess == pytest.approx(exact.excess, abs=5 * point.excess_error)
    assert point.excess_error < 0.03 * exact.excess


# The error of gamma.


def test_the_error_of_gamma_is_linear_and_that_of_the_loss_quadratic():
    optimum = regularisation.stationary_mean(0.0)
    off = [np.linalg.norm(regularisation.stationary_mean(g) - optimum) for g in (1e-4, 1e-5)]
    assert off[0] / off[1] == pytest.approx(10.0, rel=1e-2)
    # The fit is the projection on the span: what is left is orthogonal to every stump.
    for feature in (0, 1):
        left = small_chains.projector_of(SQUARE, feature) @ (SQUARE_Y - optimum)
        assert np.allclose(left, 0.0, atol=1e-12)


def test_a_leaf_of_one_class_solves_its_equation():
    for gamma in (1.0, 0.01):
        law = regularisation.one_class_law(gamma)
        score = law.mean(law.grid)
        assert 1 / (1 + np.exp(score)) == pytest.approx(gamma * score, rel=1e-2)


def test_chains_have_the_error_of_gamma(monkeypatch):
    monkeypatch.setattr(regularisation, "GAMMAS", (0.3, 0.03))
    result = regularisation.regularisation(StudySize(0.5, seed=1))
    assert (np.abs(result.bias_measured - result.bias) < 5 * result.bias_error).all()
    assert (result.bias_error < 0.04 * result.bias).all()
    difference = np.abs(result.one_class_measured - result.one_class)
    assert (difference < 5 * result.one_class_error).all()
    assert (result.one_class_error < 1e-3 * result.one_class).all()


# Spectral gaps.


def test_directions_are_forgotten_at_the_rates_of_the_mean_projector():
    result = spectral_gap.drawn(StudySize(0.2, seed=2))
    late = result.exact[:, 1:] > 0.05
    z = ((result.measured - result.exact)[:, 1:] / result.error[:, 1:])[late]
    assert np.abs(z).max() < 5
    assert result.error[0, -1] < 0.1
    for direction in (0, 4):
        rate, error = result.rate(direction)
        assert abs(rate - result.exact_rate(direction)) < 5 * error
        assert error < 0.15 * rate


def test_the_operator_of_a_well_has_the_law_and_the_gap_of_the_diffusion(monkeypatch):
    coarse = spectral_gap.WellOperator.of(20.0, 151)
    assert coarse.gap == pytest.approx(spectral_gap.WellOperator.of(20.0).gap, rel=1e-6)
    monkeypatch.setattr(spectral_gap, "WELL_RATE", 0.05)
    slow = spectral_gap.WellOperator.of(20.0, 251)
    law = gibbs_line.GibbsLine(slow.grid, 20.0 * spectral_gap._potential(slow.grid))
    assert np.abs(slow.law - law.mass()).sum() < 0.02
    fine = np.linspace(slow.grid[0], slow.grid[-1], 4001)
    law = gibbs_line.GibbsLine(fine, 20.0 * spectral_gap._potential(fine))
    assert slow.gap == pytest.approx(law.spectral_gap() / 20.0, rel=0.01)


def test_the_gap_of_a_well_goes_to_that_of_kramers():
    """The first correction is of order 1 / beta."""
    line = np.linspace(-6.0, 6.0, 8001)
    ratios = []
    for beta in (30.0, 60.0):
        law = gibbs_line.GibbsLine(line, beta * spectral_gap._potential(line))
        ratios.append(law.spectral_gap() / beta / spectral_gap.kramers_rate(beta))
    assert abs(ratios[1] - 1) < 0.6 * abs(ratios[0] - 1) < 0.2


def test_leaves_cross_at_the_rate_of_the_operator(monkeypatch):
    monkeypatch.setattr(spectral_gap, "WELL_BETAS", (10.0, 20.0))
    result = spectral_gap.well_gaps(StudySize(0.5, seed=1))
    assert (np.abs(result.measured - result.exact) < 5 * result.error).all()
    assert (result.error < 0.08 * result.exact).all()


# Convergence.


def test_the_moments_of_langevin_are_those_of_the_autoregression():
    eps, steps = 0.3, np.arange(1, 40)
    a = 1 - eps * convergence.PULL
    mean, std = convergence.moments(convergence.sampler_of("langevin", eps), 39)
    assert np.allclose(mean, convergence.MEAN * (1 - a**steps))
    variance = 2 * eps * convergence.TEMPERATURE * (1 - a ** (2 * steps)) / (1 - a**2)
    assert np.allclose(std, np.sqrt(variance))


@pytest.mark.parametrize("method", convergence.METHODS)
def test_leaves_have_the_moments_of_every_step(method):
    # 4,096 independent leaves, five standard errors of mean and standard deviation.
    sampler = convergence.sampler_of(method, 0.1)
    raw = convergence.leaves(sampler, 60, 1)
    mean, std = convergence.moments(sampler, 60)
    n = raw.shape[1]
    assert (np.abs(raw.mean(axis=1) - mean) < 5 * std / np.sqrt(n)).all()
    assert (np.abs(raw.std(axis=1) - std) < 5 * std / np.sqrt(2 * n)).all()


def test_momentum_needs_fewer_steps_the_smaller_the_learning_rate_is():
    steps = {
        method: [
            convergence.first_below(
                convergence.distance(
                    *convergence.moments(convergence.sampler_of(method, eps), 2000)
                )
            )
            for eps in (0.02, 0.005)
        ]
        for method in convergence.METHODS
    }
    assert steps["langevin"][1] / steps["langevin"][0] == pytest.approx(4.0, rel=0.05)
    assert steps["hamiltonian"][1] / steps["hamiltonian"][0] == pytest.approx(2.0, rel=0.1)
    assert steps["hamiltonian"][0] < steps["langevin"][0] / 3


# Momentum.


def test_the_covariance_of_position_and_velocity_has_the_formula_and_the_limit():
    for eps in momentum.RATES:
        S = momentum.covariance(eps)
        a, pull = momentum.FRICTION * np.sqrt(eps), momentum.PULL
        variance = (2 - a) * 2 * momentum.TEMPERATURE / (pull * (4 - 2 * a - eps * pull))
        assert S[0, 0] == pytest.approx(variance, rel=1e-9)
    S = momentum.covariance(1e-6)
    assert np.diag(S) == pytest.approx(
        [momentum.TEMPERATURE / momentum.PULL, momentum.TEMPERATURE], rel=2e-3
    )
    assert abs(S[0, 1]) < 1e-3 * momentum.TEMPERATURE
    assert isinstance(momentum.sampler_of(0.1), Hamiltonian)


def test_chains_have_the_law_of_position_and_velocity(monkeypatch):
    monkeypatch.setattr(momentum, "RATES", (0.1, 0.025))
    result = momentum.momentum(StudySize(0.5, seed=1))
    assert (np.abs(result.measured - result.exact) < 5 * result.error).all()
    assert (result.error < 0.02).all()
    # The mean of 1,024 leaves is on the exact orbit: a fifth of a deviation is 6 errors.
    eps = momentum.ORBIT_RATES[1]
    steps = np.arange(2, 2 + len(result.orbits[1]))
    nearest = np.interp(
        np.sqrt(eps) * steps, np.linspace(0, momentum.ORBIT_TIME, 400), result.limit[:, 0]
    )
    assert np.abs(result.orbits[1][:, 0] - nearest).max() < 0.2


def test_the_command_prints_and_draws_all_of_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(page, "QUICK", 0.004)
    monkeypatch.setattr(concentration, "BETAS", (8.0, 64.0))
    monkeypatch.setattr(concentration, "N_CHAINS", 3)
    monkeypatch.setattr(generalisation, "TOTAL_BITS", 9)
    monkeypatch.setattr(generalisation, "SPREAD_SETS", 100)
    file = tmp_path / "page.md"
    file.write_text("<!-- theory -->\n<!-- end of theory -->\n")
    page.run(tmp_path, quick=True, write=file)
    printed = capsys.readouterr().out
    for words in (
        "Theorem 1", "Theorem 2", "P∞", "double well", "Theorem 3", "The error of γ",
        "slowest autocorrelation", "steps until the law is near", "Hamiltonian limit", "--quick",
    ):  # fmt: skip
        assert words in printed
        assert words in file.read_text()
    for name in ("theory", "theory_new_rows", "theory_rates"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
