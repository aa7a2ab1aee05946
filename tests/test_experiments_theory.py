"""The theorems' measurements: their exact sides against other ways to compute them, and small runs.

Measured values are compared at five standard errors (batch means with 19 degrees of freedom:
a chance of 8e-5 each, some dozen comparisons, seeds fixed).
"""

import numpy as np
import pytest

from sglb.experiments import small_chains, theory, theory_page
from sglb.losses import Squared
from sglb.samplers import Langevin

SMALL = theory.StudySize(0.05, seed=1)


def test_the_exact_covariance_of_one_structure_is_the_autoregressions():
    # A leaf of n rows: (T / n) / ((1 + gamma) (1 - eps (1 + gamma) / 2)).
    P = small_chains.projector([[0, 0, 0, 1, 1]], 0)
    for eps in (0.5, 0.05):
        pull = 1.0 + theory.GAMMA
        variance = theory.TEMPERATURE / np.array([3, 3, 3, 2, 2]) / (pull * (1 - eps * pull / 2))
        result = theory.exact_covariance([P], np.arange(5.0), eps)
        assert np.allclose(np.diag(result), variance)


def test_the_exact_covariance_goes_to_the_diffusions_linearly():
    projectors = [small_chains.projector(theory.SQUARE, f) for f in (0, 1)]
    limit = theory.limit_covariance(projectors)
    slopes = [
        (theory.exact_covariance(projectors, theory.SQUARE_Y, eps) - limit) / eps
        for eps in (1e-3, 5e-4)
    ]
    assert np.abs(slopes[1]).max() > 0.1
    assert np.allclose(slopes[0], slopes[1], rtol=5e-3, atol=1e-4)


def test_chances_of_a_split_from_pure_noise_are_those_of_simulated_noise():
    exact = theory.choice_probabilities(theory.TWELVE)
    assert exact.sum() == pytest.approx(1.0, abs=1e-4)
    z = np.random.default_rng(0).standard_normal((400_000, theory.TWELVE.shape[1]))
    scores = [
        sum(z[:, feature == side].sum(axis=1) ** 2 / (feature == side).sum() for side in (0, 1))
        for feature in theory.TWELVE
    ]
    share = np.bincount(np.argmax(scores, axis=0), minlength=4) / len(z)
    assert np.abs(share - exact).max() < 5 * np.sqrt(0.25 * 0.75 / len(z))


def test_two_balanced_features_are_equally_likely_and_span_three_dimensions():
    assert np.allclose(theory.choice_probabilities(theory.SQUARE), 0.5, atol=1e-9)
    assert theory._basis().shape == (8, 3)


def test_the_gibbs_law_does_not_depend_on_its_grid():
    optimum = theory.global_optimum()
    for beta in (8.0, 128.0):
        coarse, fine = (theory.gibbs_excess(beta, optimum, n) for n in (81, 101))
        assert coarse == pytest.approx(fine, rel=0.02)
        assert fine > 0


def test_chains_have_the_covariance_of_the_formula():
    result = theory.weak_convergence(SMALL)
    assert (np.abs(result.random - result.exact) < 5 * result.random_error).all()
    assert (result.random_error < 0.1 * (1 + result.exact)).all()
    assert (np.diff(result.greedy) < 0).all()
    assert result.greedy[-1] < 0.1


def test_the_excess_loss_is_that_of_gibbs_and_below_what_plain_boosting_keeps():
    # Sixteen independent chains, five standard errors: a chance of 2e-4 for each of six betas.
    result = theory.concentration(theory.StudySize(0.15, seed=1))
    assert (np.diff(result.measured[1:]) < 0).all()
    assert (np.abs(result.measured - result.gibbs) < 5 * result.error).all()
    assert (result.error < 0.2 * result.gibbs).all()
    assert (result.measured[1:] < result.rate[1:]).all()
    assert result.gibbs[-1] < result.plain


def test_structures_of_a_slow_chain_tell_the_preconditioner():
    result = theory.preconditioner(SMALL)
    assert result.distance[-1] < result.distance[0]
    n_steps = SMALL.steps(200_000)
    # Structures of a chain are nearly independent draws at this learning rate.
    deviation = np.sqrt(result.exact * (1 - result.exact) / n_steps)
    assert (np.abs(result.measured[-1] - result.exact) < 6 * deviation).all()


def test_both_wells_are_visited_by_their_weights():
    result = theory.modes(theory.StudySize(0.1, seed=2))
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


def test_the_command_prints_and_draws_all_four(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(theory_page, "QUICK", 0.004)
    monkeypatch.setattr(theory, "BETAS", (8.0, 64.0))
    monkeypatch.setattr(theory, "N_CHAINS", 3)
    page = tmp_path / "page.md"
    page.write_text("<!-- theory -->\n<!-- end of theory -->\n")
    theory_page.run(tmp_path, quick=True, write=page)
    printed = capsys.readouterr().out
    for words in ("Theorem 1", "Theorem 2", "P∞", "double well", "--quick"):
        assert words in printed
        assert words in page.read_text()
    assert (tmp_path / "theory.png").read_bytes().startswith(b"\x89PNG")
