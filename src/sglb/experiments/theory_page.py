"""What `sglb paper theory` prints and draws of the measurements in `theory`."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sglb import plots
from sglb.experiments import theory
from sglb.experiments.page import Report, bar, check_page, console, put

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY, ORANGE, GREEN, BLUE = plots.PALETTE[:4]
# Share of the full chains that --quick runs.
QUICK = 0.1


def run(folder: Path, *, quick: bool = False, seed: int = 0, write: Path | None = None) -> None:
    """Measure all four, print the table, save the figure."""
    if write is not None:
        check_page(write, "theory")
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    size = theory.Size(QUICK if quick else 1.0, seed)
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
    report = Report()
    _tell_weak(report, weak)
    _tell_concentration(report, concentration)
    _tell_preconditioner(report, preconditioner)
    _tell_modes(report, modes)
    how = " (--quick)" if quick else ""
    report.text(f"All of this took {time.perf_counter() - started:.0f} s{how}, seed {seed}.")
    report.print(out)
    out.print(f"\nThe figure is {folder / 'theory.png'}.")
    if write is not None:
        put(write, "theory", report.markdown())
        out.print(f"The tables are in {write}.")


def _draw_weak(axes: "Axes", found: theory.WeakConvergence) -> None:
    rates = np.array(found.rates)
    axes.loglog(rates, found.exact, color=GREY, linewidth=1.4, label="formula, structures drawn")
    slope = found.exact[-1] / rates[-1]
    axes.loglog(rates, slope * rates, color=GREY, linewidth=1, linestyle=":", label="linear in ε")
    for values, error, colour, name in (
        (found.drawn, found.drawn_error, BLUE, "chain, structures drawn"),
        (found.greedy, found.greedy_error, ORANGE, "chain, greedy search"),
    ):
        axes.errorbar(
            rates, values, yerr=2 * error, fmt="o", markersize=4, color=colour, label=name
        )
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("learning rate ε")
    axes.set_ylabel("tr S / tr S of the diffusion − 1")
    axes.legend(frameon=False, fontsize=8.5)


def _draw_concentration(axes: "Axes", found: theory.Concentration) -> None:
    betas = np.array(found.betas)
    axes.loglog(betas, found.rate, color=GREY, linewidth=1, linestyle=":", label="(d/β) log(β/d)")
    axes.loglog(betas, found.gibbs, color=GREY, linewidth=1.4, label="Gibbs law")
    axes.errorbar(
        betas, found.measured, yerr=2 * found.error, fmt="o", markersize=4, color=BLUE, label="SGLB"
    )
    axes.axhline(found.plain, color=ORANGE, linewidth=1.2, linestyle=(0, (5, 3)), label="plain GB")
    axes.set_xticks(betas, [f"{beta:g}" for beta in betas])
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="y", which="minor", labelleft=False)
    axes.set_xlabel("inverse temperature β")
    axes.set_ylabel("mean loss above the global optimum")
    axes.legend(frameon=False, fontsize=8.5)


def _draw_preconditioner(axes: "Axes", found: theory.Preconditioner) -> None:
    places = np.arange(len(found.exact))
    axes.bar(places, found.exact, color="#E3E3E3", width=0.7, label="exact, pure noise")
    for rate, share, colour, shift in zip(
        found.rates, found.measured, (ORANGE, GREEN, BLUE), (-0.18, 0.0, 0.18), strict=True
    ):
        axes.plot(
            places + shift, share, "o", color=colour, markersize=5, label=f"chain, ε = {rate:g}"
        )
    axes.set_xticks(places, [f"feature {place + 1}" for place in places])
    axes.set_ylabel("share of the splits")
    axes.set_ylim(0, 1.45 * float(found.measured.max()))
    axes.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper left")


def _draw_modes(axes: "Axes", found: theory.Modes) -> None:
    axes.hist(found.visited, bins=90, range=(-6, 6), density=True, color="#A9CCE3", label="chain")
    axes.plot(found.grid, found.density, color=GREY, linewidth=1.4, label="Gibbs density")
    axes.set_xlim(-6, 6)
    axes.set_xlabel("raw score of the leaf")
    axes.set_ylabel("density")
    axes.legend(frameon=False, fontsize=8.5)


def _tell_weak(report: Report, found: theory.WeakConvergence) -> None:
    report.heading("Theorem 1: the stationary covariance as the learning rate falls")
    report.table(
        ["ε", "formula", "structures drawn", "± s.e.", "greedy search", "± s.e.", "greedy / ε"],
        [
            [f"{eps:g}", *(f"{value:.4f}" for value in values), f"{values[3] / eps:.2f}"]
            for eps, *values in zip(
                found.rates, found.exact, found.drawn, found.drawn_error, found.greedy,
                found.greedy_error, strict=True,
            )
        ],
    )  # fmt: skip
    report.text(
        "tr S / tr S of the diffusion − 1, squared loss on eight rows with two binary features."
        " The formula is exact for structures drawn without a look at f."
    )


def _tell_concentration(report: Report, found: theory.Concentration) -> None:
    report.heading("Theorem 2: the loss above the global optimum as beta rises")
    report.table(
        ["β", "SGLB", "± s.e.", "Gibbs law", "(d/β) log(β/d)"],
        [
            [f"{beta:g}", *(f"{value:.4f}" for value in values)]
            for beta, *values in zip(
                found.betas, found.measured, found.error, found.gibbs, found.rate, strict=True
            )
        ],
    )
    report.text(
        f"Welsch's loss, eight rows, greedy stumps, d = {found.dimension}, ε ="
        f" {theory.CHAIN_RATE:g}, γ = {theory.CHAIN_GAMMA:g}. The optimum, {found.optimum:.4f},"
        " is the best of descents from 125 starts over the span. Plain boosting ends"
        f" {found.plain:.4f} above it. {theory.N_CHAINS} chains, each through all β."
    )


def _tell_preconditioner(report: Report, found: theory.Preconditioner) -> None:
    report.heading("P∞ from the structures of the chain")
    names = [f"feature {place + 1}" for place in range(len(found.exact))]
    rows = [["pure noise, exact", *(f"{value:.4f}" for value in found.exact), "0"]]
    for rate, share, distance in zip(found.rates, found.measured, found.distance, strict=True):
        cells = [f"{value:.4f}" for value in share]
        rows.append([f"chain, ε = {rate:g}", *cells, f"{distance:.4f}"])
    report.table(["share of the splits", *names, "distance of P∞"], rows)
    report.text("Distance: Frobenius norm of the difference over that of the exact P∞.")


def _tell_modes(report: Report, found: theory.Modes) -> None:
    report.heading("A double well")
    sampler = theory.WELL_SAMPLER
    report.text(
        f"Mass of the smaller well: Gibbs {found.gibbs_mass:.4f}, chain {found.mass:.4f} ±"
        f" {found.mass_error:.4f} (Welsch's loss of the targets {theory.WELL_Y}, ε ="
        f" {sampler.learning_rate:g}, temperature {sampler.temperature:g}, γ ="
        f" {sampler.shrink_rate:g})."
    )
