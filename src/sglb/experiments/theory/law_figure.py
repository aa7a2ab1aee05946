"""Draw the first figure: the law of the chain, its optimum, its structures and its modes."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sglb import plots
from sglb.experiments.theory.concentration import Concentration
from sglb.experiments.theory.modes import Modes
from sglb.experiments.theory.preconditioner import Preconditioner
from sglb.experiments.theory.weak_convergence import WeakConvergence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY, ORANGE, GREEN, BLUE = plots.PALETTE[:4]


def draw(
    path: Path,
    weak: WeakConvergence,
    concentration: Concentration,
    preconditioner: Preconditioner,
    modes: Modes,
) -> None:
    """Draw panels 1 to 4."""
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
    plots.save(figure, path)


def _draw_weak(axes: "Axes", result: WeakConvergence) -> None:
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


def _draw_concentration(axes: "Axes", result: Concentration) -> None:
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


def _draw_preconditioner(axes: "Axes", result: Preconditioner) -> None:
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


def _draw_modes(axes: "Axes", result: Modes) -> None:
    axes.hist(result.visited, bins=90, range=(-6, 6), density=True, color="#A9CCE3", label="chain")
    axes.plot(result.grid, result.density, color=GREY, linewidth=1.4, label="Gibbs density")
    axes.set_xlim(-6, 6)
    axes.set_xlabel("raw score of the leaf")
    axes.set_ylabel("density")
    axes.legend(frameon=False, fontsize=8.5)
