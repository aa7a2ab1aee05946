"""Report the first four measurements: law, optimum, structures and modes of the chain."""

from sglb.experiments.page import PageReport
from sglb.experiments.theory import concentration, modes
from sglb.experiments.theory.concentration import Concentration
from sglb.experiments.theory.modes import Modes
from sglb.experiments.theory.preconditioner import Preconditioner
from sglb.experiments.theory.problem import WELL_Y
from sglb.experiments.theory.weak_convergence import WeakConvergence


def report_weak(report: PageReport, result: WeakConvergence) -> None:
    """Report Theorem 1."""
    report.heading("Theorem 1: the stationary covariance as the learning rate falls")
    report.table(
        ["ε", "formula", "structures drawn", "± s.e.", "greedy search", "± s.e.", "greedy / ε"],
        [
            [f"{eps:g}", *(f"{value:.4f}" for value in values), f"{values[3] / eps:.2f}"]
            for eps, *values in zip(
                result.rates, result.exact, result.random, result.random_error, result.greedy,
                result.greedy_error, strict=True,
            )
        ],
    )  # fmt: skip
    report.text(
        "tr S / tr S of the diffusion − 1, squared loss on eight rows with two binary features."
        " The formula is exact for structures drawn without a look at f."
    )


def report_concentration(report: PageReport, result: Concentration) -> None:
    """Report Theorem 2."""
    report.heading("Theorem 2: the loss above the global optimum as beta rises")
    report.table(
        ["β", "SGLB", "± s.e.", "Gibbs law", "(d/β) log(β/d)"],
        [
            [f"{beta:g}", *(f"{value:.4f}" for value in values)]
            for beta, *values in zip(
                result.betas, result.measured, result.error, result.gibbs, result.rate, strict=True
            )
        ],
    )
    report.text(
        f"Welsch's loss, eight rows, greedy stumps, d = {result.dimension}, ε ="
        f" {concentration.CHAIN_RATE:g}, γ = {concentration.CHAIN_GAMMA:g}. The optimum,"
        f" {result.optimum:.4f},"
        " is the best of descents from 125 starts over the span. Plain boosting ends"
        f" {result.plain:.4f} above it. {concentration.N_CHAINS} chains, each through all β."
    )


def report_preconditioner(report: PageReport, result: Preconditioner) -> None:
    """Report the structures."""
    report.heading("P∞ from the structures of the chain")
    names = [f"feature {feature + 1}" for feature in range(len(result.exact))]
    rows = [["pure noise, exact", *(f"{value:.4f}" for value in result.exact), "0"]]
    for rate, share, distance in zip(result.rates, result.measured, result.distance, strict=True):
        cells = [f"{value:.4f}" for value in share]
        rows.append([f"chain, ε = {rate:g}", *cells, f"{distance:.4f}"])
    report.table(["share of the splits", *names, "distance of P∞"], rows)
    report.text("Distance: Frobenius norm of the difference over that of the exact P∞.")


def report_modes(report: PageReport, result: Modes) -> None:
    """Report the two wells."""
    report.heading("A double well")
    sampler = modes.WELL_SAMPLER
    report.text(
        f"Mass of the smaller well: Gibbs {result.gibbs_mass:.4f}, chain {result.mass:.4f} ±"
        f" {result.mass_error:.4f} (Welsch's loss of the targets {WELL_Y}, ε ="
        f" {sampler.learning_rate:g}, temperature {sampler.temperature:g}, γ ="
        f" {sampler.shrink_rate:g})."
    )
