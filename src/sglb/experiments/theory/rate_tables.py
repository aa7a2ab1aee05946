"""Report the other measurements: new rows, gamma, spectral gaps, convergence, momentum."""

from sglb.experiments.page import PageReport
from sglb.experiments.theory import convergence, generalisation, momentum, regularisation
from sglb.experiments.theory import spectral_gap as gaps
from sglb.experiments.theory.convergence import Convergence
from sglb.experiments.theory.generalisation import Generalisation
from sglb.experiments.theory.momentum import Momentum
from sglb.experiments.theory.regularisation import Regularisation
from sglb.experiments.theory.spectral_gap import Autocorrelation, WellGaps


def report_generalisation(report: PageReport, result: Generalisation) -> None:
    """Report Theorem 3 and the corollary."""
    report.heading("Theorem 3 and the corollary: losses on new rows")
    report.table(
        ["N", "β", "gap, Gibbs law", "chain", "± s.e.", "N × gap", "λ", "(β + d)² / (λ N)",
         "loss above the infimum", "chain", "± s.e."],
        [
            [
                f"{chain.exact.n_rows}",
                f"{chain.exact.beta:g}",
                *(f"{v:.4f}" for v in (chain.exact.gap, chain.gap, chain.gap_error)),
                f"{chain.exact.gap * chain.exact.n_rows:.2f}",
                f"{chain.exact.spectral_gap:.3f}",
                f"{chain.exact.rate:.3g}",
                *(f"{v:.4f}" for v in (chain.exact.excess, chain.excess, chain.excess_error)),
            ]
            for chain in result.chains
        ],
    )  # fmt: skip
    spreads = ", ".join(
        f"{n}: {value:.4f}" for n, value in zip(generalisation.ROWS, result.spreads, strict=True)
    )
    report.text(
        f"Welsch's loss, one tree of depth 2 on two independent binary features, d = 4, γ ="
        f" {generalisation.GAMMA:g}, ε = {generalisation.RATE:g}; means over data sets, exact for"
        " the Gibbs law. λ is the spectral gap of the Gibbs law of the expected loss; the"
        " theorem's λ* is the smallest over data sets, which makes its rate larger still. Standard"
        f" deviation of the gap of a single data set at β = {generalisation.SPREAD_BETA:g}, by N:"
        f" {spreads}."
    )


def report_regularisation(report: PageReport, result: Regularisation) -> None:
    """Report the error of gamma."""
    report.heading("The error of γ")
    columns = ["γ", "bias of the mean", "chain", "± s.e.", "excess loss", "chain"]
    rows = zip(
        result.gammas, result.bias, result.bias_measured, result.bias_error, result.excess,
        result.excess_measured, result.one_class, result.one_class_measured, strict=True,
    )  # fmt: skip
    report.table(
        [*columns, "loss of one class", "chain"],
        [[f"{gamma:g}", *(f"{value:.3g}" for value in values)] for gamma, *values in rows],
    )
    report.text(
        "Bias (relative to the least-squares fit) and excess loss: squared loss, eight rows, stumps"
        " drawn without a look at f. Loss of one class: a leaf of one class under the logistic"
        f" loss, whose infimum is 0. Temperature {regularisation.COLD:g}."
    )


def report_autocorrelation(
    report: PageReport, drawn: Autocorrelation, greedy: Autocorrelation
) -> None:
    """Report the rates at which the chain forgets."""
    report.heading("The spectral gap: the slowest autocorrelation")
    rows = []
    for direction in range(len(drawn.eigenvalues)):
        cells = [f"{direction + 1}"]
        for result in (drawn, greedy):
            rate, error = result.rate(direction)
            cells += [f"{result.exact_rate(direction):.4f}", f"{rate:.4f}", f"{error:.4f}"]
        rows.append(cells)
    report.table(
        ["direction", "γ + λ, drawn", "chain", "± s.e.", "γ + λ, greedy, ε → 0", "chain", "± s.e."],
        rows,
    )
    report.text(
        f"Squared loss, twelve rows, four correlated features, ε = {gaps.RATE:g}, γ ="
        f" {gaps.GAMMA:g}; (1 − r^(1/k)) / ε from the autocorrelation r at the lag k where a third"
        " is left. Stumps drawn at random: exact at every ε. Greedy search: λ of P∞ from pure"
        " noise, which it has in the limit of small ε only."
    )


def report_wells(report: PageReport, result: WellGaps) -> None:
    """Report the spectral gaps of a double well."""
    report.heading("The spectral gap of a double well")
    rows = zip(
        result.betas, result.exact, result.measured, result.error, result.kramers, strict=True
    )
    report.table(
        ["β", "transition operator", "chain", "± s.e.", "Kramers"],
        [[f"{beta:g}", *(f"{value:.5f}" for value in values)] for beta, *values in rows],
    )
    report.text(
        f"Welsch's loss of the targets {gaps.WELL_Y}, ε = {gaps.WELL_RATE:g}, γ ="
        f" {gaps.WELL_GAMMA:g}; rate per unit of time ετ."
    )


def report_convergence(report: PageReport, result: Convergence) -> None:
    """Report how many steps it takes to come near the Gibbs law."""
    report.heading("Rates of convergence: steps until the law is near")
    columns = [f"{method}{suffix}" for method in convergence.METHODS for suffix in ("", ", chain")]
    rows = []
    for index, eps in enumerate(result.rates):
        cells = [f"{eps:g}"]
        for method in convergence.METHODS:
            cells.append(f"{result.exact_steps[method][index]}")
            cells.append(f"{result.measured_steps[method][index]}")
        friction = convergence.critical_friction(eps)
        rows.append([*cells, f"{friction:.2f}"])
    report.table(["ε", *columns, "friction"], rows)
    report.text(
        "Squared loss, a leaf that starts"
        f" {convergence.MEAN / convergence.STD:.1f} standard deviations from its mean: the first"
        f" step after which W₂ to the Gibbs law stays below {convergence.NEAR:g} standard"
        f" deviations. Chain: {1 << convergence.LEAF_BITS:,} leaves."
    )


def report_momentum(report: PageReport, result: Momentum) -> None:
    """Report the law of position and velocity."""
    report.heading("The Hamiltonian limit")
    names = ["Var F / limit − 1", "Var V / (ε limit) − 1", "correlation"]
    rows = []
    for eps, exact, measured, error in zip(
        result.rates, result.exact, result.measured, result.error, strict=True
    ):
        cells = [f"{eps:g}"]
        for values in zip(exact, measured, error, strict=True):
            cells += [f"{values[0]:.4f}", f"{values[1]:.4f} ± {values[2]:.4f}"]
        rows.append(cells)
    report.table(["ε", *(cell for name in names for cell in (name, "chain"))], rows)
    report.text(
        f"Squared loss, friction {momentum.FRICTION:g} √ε, γ = {momentum.GAMMA:g},"
        f" {1 << momentum.LEAF_BITS:,} leaves of one row. The limits are T / (1 + γ) and T."
    )
