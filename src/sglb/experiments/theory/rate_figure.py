"""Draw the third figure: spectral gaps, rates of convergence and the Hamiltonian limit."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sglb import plots
from sglb.experiments.theory import convergence, momentum
from sglb.experiments.theory.convergence import Convergence
from sglb.experiments.theory.momentum import Momentum
from sglb.experiments.theory.spectral_gap import RATE, Autocorrelation, WellGaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY, ORANGE, GREEN, BLUE, RED = plots.PALETTE[:5]


def draw(
    path: Path, slow: Autocorrelation, wells: WellGaps, near: Convergence, moved: Momentum
) -> None:
    """Draw panels 9 to 14."""
    figure, axes = plots.panels(
        11.0,
        11.4,
        (
            "9. Autocorrelations fall at the rates γ + λ of P̄",
            "10. Two wells: the gap is exponentially small in β",
            "11. Distance to the Gibbs law against time",
            "12. Steps until the law is near: 1/ε, with momentum 1/√ε",
            "13. Position and velocity go to their limits as ε falls",
            "14. The mean orbit goes to the damped oscillation",
        ),
    )
    _draw_autocorrelation(axes[0], slow)
    _draw_wells(axes[1], wells)
    _draw_distance(axes[2], near)
    _draw_steps(axes[3], near)
    _draw_momentum(axes[4], moved)
    _draw_orbit(axes[5], moved)
    plots.save(figure, path)


def _draw_autocorrelation(axes: "Axes", result: Autocorrelation) -> None:
    directions = (0, 1, 3, 4)  # two have the same eigenvalue
    time = RATE * result.lags
    for direction, colour in zip(directions, (RED, ORANGE, GREEN, BLUE), strict=True):
        exact, measured = result.exact[direction], result.measured[direction]
        axes.plot(
            time, exact, color=colour, linewidth=1.4,
            label=f"λ = {result.eigenvalues[direction]:.3g}",
        )  # fmt: skip
        shown = exact > 0.02
        axes.errorbar(
            time[shown], measured[shown], yerr=2 * result.error[direction][shown],
            fmt="o", markersize=3.5, color=colour,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(0.015, 1.2)
    axes.set_xlabel("lag × ε")
    axes.set_ylabel("autocorrelation")
    axes.legend(
        frameon=False,
        fontsize=8.5,
        title="dots: chain",
        title_fontsize=8.5,
        ncols=2,
        loc="upper right",
    )


def _draw_wells(axes: "Axes", result: WellGaps) -> None:
    betas = np.array(result.betas)
    axes.set_yscale("log")
    axes.plot(betas, result.kramers, color=GREY, linewidth=1, linestyle=":", label="Kramers")
    axes.plot(betas, result.exact, color=GREY, linewidth=1.4, label="transition operator")
    axes.errorbar(
        betas, result.measured, yerr=2 * result.error, fmt="o", markersize=4, color=BLUE,
        label="chain",
    )  # fmt: skip
    axes.set_xlabel("inverse temperature β of the leaf")
    axes.set_ylabel("spectral gap")
    axes.legend(frameon=False, fontsize=8.5)


def _draw_distance(axes: "Axes", result: Convergence) -> None:
    axes.set_yscale("log")
    colours = iter((ORANGE, RED, GREEN, BLUE))
    for curve in result.curves:
        colour = next(colours)
        time = curve.rate * np.arange(1, len(curve.exact) + 1)
        name = f"{curve.method}, ε = {curve.rate:g}"
        axes.plot(time, curve.exact, color=colour, linewidth=1.4, label=name)
        every = max(1, len(time) // 15)
        axes.plot(time[::every], curve.measured[::every], "o", markersize=3.5, color=colour)
    # The error of mean and standard deviation of so many leaves.
    noise = np.sqrt(1.5 / (1 << convergence.LEAF_BITS))
    axes.axhline(noise, color=GREY, linewidth=1, linestyle=":", label="noise of the dots")
    axes.set_ylim(0.005, None)
    axes.set_xlabel("time ετ")
    axes.set_ylabel("W₂ / standard deviation")
    axes.legend(frameon=False, fontsize=8.5, title="dots: chain", title_fontsize=8.5)


def _draw_steps(axes: "Axes", result: Convergence) -> None:
    rates = np.array(result.rates)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for method, colour, power in zip(convergence.METHODS, (RED, BLUE), (-1.0, -0.5), strict=True):
        exact = np.array(result.exact_steps[method])
        axes.plot(rates, exact, color=colour, linewidth=1.4, label=method)
        axes.plot(rates, result.measured_steps[method], "o", markersize=4, color=colour)
        line = 0.75 * exact[-1] * (rates / rates[-1]) ** power
        axes.plot(rates, line, color=GREY, linewidth=1, linestyle=":")
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("learning rate ε")
    axes.set_ylabel(f"steps until W₂ < {convergence.NEAR:g} standard deviations")
    axes.legend(frameon=False, fontsize=8.5, title="dots: chain; dotted: 1/ε, 1/√ε",
                title_fontsize=8.5)  # fmt: skip


def _draw_momentum(axes: "Axes", result: Momentum) -> None:
    rates = np.array(result.rates)
    names = ("Var F / limit − 1", "Var V / (ε limit) − 1", "correlation of F and V")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for part, (name, colour) in enumerate(zip(names, (BLUE, ORANGE, GREEN), strict=True)):
        axes.plot(rates, result.exact[:, part], color=colour, linewidth=1.4, label=name)
        axes.errorbar(
            rates, result.measured[:, part], yerr=2 * result.error[:, part], fmt="o",
            markersize=4, color=colour,
        )  # fmt: skip
    axes.set_ylim(1e-3, 1.0)
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("learning rate ε")
    axes.set_ylabel("distance from the limit")
    axes.legend(frameon=False, fontsize=8.5, title="dots: chain", title_fontsize=8.5)


def _draw_orbit(axes: "Axes", result: Momentum) -> None:
    axes.plot(*result.limit.T, color=GREY, linewidth=1.4, label="limit")
    for orbit, rate, colour in zip(
        result.orbits, momentum.ORBIT_RATES, (ORANGE, BLUE), strict=True
    ):
        every = max(1, len(orbit) // 60)
        axes.plot(
            *orbit[::every].T, "o", markersize=3.5, color=colour, label=f"chain, ε = {rate:g}"
        )
    axes.set_xlabel("mean of F")
    axes.set_ylabel("mean of V / √ε")
    axes.legend(frameon=False, fontsize=8.5, loc="upper right")
