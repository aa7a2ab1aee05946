"""Print and draw the measurements of `theory` for `sglb paper theory`."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sglb import plots
from sglb.experiments import theory
from sglb.experiments.page import PageReport, bar, check_page, console, write_section

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY, ORANGE, GREEN, BLUE = plots.PALETTE[:4]
# Share of the full chains that --quick runs.
QUICK = 0.1


def run(folder: Path, *, quick: bool = False, seed: int = 0, write: Path | None = None) -> None:
    """Run the four measurements, print the tables, save the figure."""
    if write is not None:
        check_page(write, "theory")
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    size = theory.StudySize(QUICK if quick else 1.0, seed)
    out = console()
    with bar("theorems", 4) as progress:
        weak = theory.weak_convergence(size)
        progress(1)
        concentration = theory.concentration(size)
        progress(2)
        preconditioner = theory.preconditioner(size)
        progress(3)
        modes = theory.modes(size)
        progress(4)
    figure, axes = plots.panels(
        11.0,
        7.6,
        (
            "1. Covariance goes to the diffusion's, linearly in ε",
            "2. Excess loss falls as β rises; plain boosting is stuck",
            "3. Structures of the chain show P∞",
            "4. Both modes are visited by their Gibbs weights",
        ),
    )
    _draw_weak(axes[0], weak)
    _draw_concentration(axes[1], concentration)
    _draw_preconditioner(axes[2], preconditioner)
    _draw_modes(axes[3], modes)
    plots.save(figure, folder / "theory.png")
    report = PageReport()
    _report_weak(report, weak)
    _report_concentration(report, concentration)
    _report_preconditioner(report, preconditioner)
    _report_modes(report, modes)
    flag = " (--quick)" if quick else ""
    report.text(f"All of this took {time.perf_counter() - started:.0f} s{flag}, seed {seed}.")
    report.print(out)
    out.print(f"\nThe figure is {folder / 'theory.png'}.")
    if write is not None:
        write_section(write, "theory", report.markdown())
        out.print(f"The tables are in {write}.")


def _draw_weak(axes: "Axes", result: theory.WeakConvergence) -> None:
    rates = np.array(result.rates)
    axes.loglog(rates, result.exact, color=GREY, linewidth=1.4, label="formula, structures drawn")
    slope = result.exact[-1] / rates[-1]
    axes.loglog(rates, slope * rates, color=GREY, linewidth=1, linestyle=":", label="linear in ε")
    for values, error, colour, name in (
        (result.random, result.random_error, BLUE, "chain, structures drawn"),
        (result.greedy, result.greedy_error, ORANGE, "chain, greedy search"),
    ):
        axes.errorbar(
            rates, values, yerr=2 * error, fmt="o", markersize=4, color=colour, label=name
        )
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("learning rate ε")
    axes.set_ylabel("tr S / tr S of the diffusion − 1")
    axes.legend(frameon=False, fontsize=8.5)


def _draw_concentration(axes: "Axes", result: theory.Concentration) -> None:
    betas = np.array(result.betas)
    axes.loglog(betas, result.rate, color=GREY, linewidth=1, linestyle=":", label="(d/β) log(β/d)")
    axes.loglog(betas, result.gibbs, color=GREY, linewidth=1.4, label="Gibbs law")
    axes.errorbar(
        betas,
        result.measured,
        yerr=2 * result.error,
        fmt="o",
        markersize=4,
        color=BLUE,
        label="SGLB",
    )
    axes.axhline(result.plain, color=ORANGE, linewidth=1.2, linestyle=(0, (5, 3)), label="plain GB")
    axes.set_xticks(betas, [f"{beta:g}" for beta in betas])
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="y", which="minor", labelleft=False)
    axes.set_xlabel("inverse temperature β")
    axes.set_ylabel("mean loss above the global optimum")
    axes.legend(frameon=False, fontsize=8.5)


def _draw_preconditioner(axes: "Axes", result: theory.Preconditioner) -> None:
    positions = np.arange(len(result.exact))
    axes.bar(positions, result.exact, color="#E3E3E3", width=0.7, label="exact, pure noise")
    for rate, share, colour, shift in zip(
        result.rates, result.measured, (ORANGE, GREEN, BLUE), (-0.18, 0.0, 0.18), strict=True
    ):
        axes.plot(
            positions + shift, share, "o", color=colour, markersize=5, label=f"chain, ε = {rate:g}"
        )
    axes.set_xticks(positions, [f"feature {position + 1}" for position in positions])
    axes.set_ylabel("share of the splits")
    axes.set_ylim(0, 1.45 * float(result.measured.max()))
    axes.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper left")


def _draw_modes(axes: "Axes", result: theory.Modes) -> None:
    axes.hist(result.visited, bins=90, range=(-6, 6), density=True, color="#A9CCE3", label="chain")
    axes.plot(result.grid, result.density, color=GREY, linewidth=1.4, label="Gibbs density")
    axes.set_xlim(-6, 6)
    axes.set_xlabel("raw score of the leaf")
    axes.set_ylabel("density")
    axes.legend(frameon=False, fontsize=8.5)


def _report_weak(report: PageReport, result: theory.WeakConvergence) -> None:
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


def _report_concentration(report: PageReport, result: theory.Concentration) -> None:
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
        f" {theory.CHAIN_RATE:g}, γ = {theory.CHAIN_GAMMA:g}. The optimum, {result.optimum:.4f},"
        " is the best of descents from 125 starts over the span. Plain boosting ends"
        f" {result.plain:.4f} above it. {theory.N_CHAINS} chains, each through all β."
    )


def _report_preconditioner(report: PageReport, result: theory.Preconditioner) -> None:
    report.heading("P∞ from the structures of the chain")
    names = [f"feature {feature + 1}" for feature in range(len(result.exact))]
    rows = [["pure noise, exact", *(f"{value:.4f}" for value in result.exact), "0"]]
    for rate, share, distance in zip(result.rates, result.measured, result.distance, strict=True):
        cells = [f"{value:.4f}" for value in share]
        rows.append([f"chain, ε = {rate:g}", *cells, f"{distance:.4f}"])
    report.table(["share of the splits", *names, "distance of P∞"], rows)
    report.text("Distance: Frobenius norm of the difference over that of the exact P∞.")


def _report_modes(report: PageReport, result: theory.Modes) -> None:
    report.heading("A double well")
    sampler = theory.WELL_SAMPLER
    report.text(
        f"Mass of the smaller well: Gibbs {result.gibbs_mass:.4f}, chain {result.mass:.4f} ±"
        f" {result.mass_error:.4f} (Welsch's loss of the targets {theory.WELL_Y}, ε ="
        f" {sampler.learning_rate:g}, temperature {sampler.temperature:g}, γ ="
        f" {sampler.shrink_rate:g})."
    )
