"""Draw the second figure: losses on new rows, and the error of gamma."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sglb import plots
from sglb.experiments.theory import generalisation
from sglb.experiments.theory.generalisation import Generalisation
from sglb.experiments.theory.regularisation import Regularisation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY, ORANGE, GREEN, BLUE, RED = plots.PALETTE[:5]
COLOURS = (GREEN, BLUE, ORANGE)
N_ROWS = 64  # of the panel over beta


def draw(path: Path, result: Generalisation, regularisation: Regularisation) -> None:
    """Draw panels 5 to 8."""
    figure, axes = plots.panels(
        11.0,
        7.6,
        (
            "5. The mean gap falls like 1/N, its spread like 1/√N",
            "6. The gap levels off in β; Theorem 3's rate does not",
            "7. The loss on new rows falls to what N rows can tell",
            "8. The error of γ: linear, or slower without an optimum",
        ),
    )
    _draw_rows(axes[0], result)
    _draw_betas(axes[1], result)
    _draw_excess(axes[2], result)
    _draw_gamma(axes[3], regularisation)
    plots.save(figure, path)


def _ticks(axes: "Axes", values: "tuple[float, ...]") -> None:
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)


def _dots(axes: "Axes", x: list[float], y: list[float], error: list[float], colour: str) -> None:
    axes.errorbar(
        x, y, yerr=2 * np.array(error), fmt="o", markersize=4, color=colour, label="chain"
    )


def _draw_rows(axes: "Axes", result: Generalisation) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for beta, colour in zip((4.0, 8.0, 32.0), COLOURS, strict=True):
        points = result.of_beta(beta)
        rows = [point.n_rows for point in points]
        label = f"Gibbs law, β = {beta:g}"
        axes.plot(rows, [p.gap for p in points], color=colour, linewidth=1.4, label=label)
    axes.plot(
        generalisation.ROWS,
        result.spreads,
        color=RED,
        linewidth=1.2,
        linestyle=(0, (5, 3)),
        label=f"spread over data sets, β = {generalisation.SPREAD_BETA:g}",
    )
    first = result.of_beta(32.0)[0]
    numbers = np.array(generalisation.ROWS)
    axes.plot(rows, 1.25 * first.gap * numbers[0] / numbers, color=GREY, linewidth=1, linestyle=":",
              label="1/N")  # fmt: skip
    chains = [point for point in result.chains if point.exact.beta == 32.0]
    _dots(
        axes,
        [point.exact.n_rows for point in chains],
        [point.gap for point in chains],
        [point.gap_error for point in chains],
        ORANGE,
    )
    _ticks(axes, generalisation.ROWS)
    axes.set_ylim(3e-4, 0.4)
    axes.set_xlabel("rows N")
    axes.set_ylabel("loss on new rows − on training rows")
    axes.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper right")


def _draw_betas(axes: "Axes", result: Generalisation) -> None:
    points = result.of_rows(N_ROWS)
    betas = [point.beta for point in points]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(betas, [p.rate for p in points], color=GREY, linewidth=1, linestyle=":",
              label="(β + d)² / (λ N)")  # fmt: skip
    axes.plot(betas, [p.gap for p in points], color=BLUE, linewidth=1.4, label="Gibbs law")
    chains = [point for point in result.chains if point.exact.n_rows == N_ROWS]
    _dots(
        axes,
        [point.exact.beta for point in chains],
        [point.gap for point in chains],
        [point.gap_error for point in chains],
        BLUE,
    )
    _ticks(axes, generalisation.BETAS)
    axes.set_xlabel("inverse temperature β")
    axes.set_ylabel(f"generalisation gap, N = {N_ROWS}")
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")


def _draw_excess(axes: "Axes", result: Generalisation) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for n_rows, colour in zip((16, 64, 256), COLOURS, strict=True):
        points = result.of_rows(n_rows)
        betas = [point.beta for point in points]
        label = f"Gibbs law, N = {n_rows}"
        axes.plot(betas, [p.excess for p in points], color=colour, linewidth=1.4, label=label)
        chains = [point for point in result.chains if point.exact.n_rows == n_rows]
        axes.errorbar(
            [point.exact.beta for point in chains],
            [point.excess for point in chains],
            yerr=[2 * point.excess_error for point in chains],
            fmt="o",
            markersize=4,
            color=colour,
        )
    d, cold = generalisation.N_CELLS, np.array([b for b in generalisation.BETAS if b >= 16])
    axes.plot(cold, d / cold * np.log(cold / d), color=GREY, linewidth=1, linestyle=":",
              label="(d/β) log(β/d)")  # fmt: skip
    _ticks(axes, generalisation.BETAS)
    axes.set_xlabel("inverse temperature β")
    axes.set_ylabel("loss on new rows above the infimum")
    heights = (0.02, 0.05, 0.1, 0.2, 0.5)
    axes.set_yticks(heights, [f"{height:g}" for height in heights])
    axes.tick_params(axis="y", which="minor", labelleft=False)
    axes.legend(
        frameon=False, fontsize=8.5, loc="lower left", title="dots: chain", title_fontsize=8.5
    )


def _draw_gamma(axes: "Axes", result: Regularisation) -> None:
    gammas = np.array(result.gammas)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for exact, measured, error, colour, label in (
        (result.one_class, result.one_class_measured, result.one_class_error, ORANGE,
         "loss of a leaf of one class, logistic"),
        (result.bias, result.bias_measured, result.bias_error, BLUE,
         "relative bias of the mean, squared"),
        (result.excess, result.excess_measured, None, GREEN, "excess loss, squared"),
    ):  # fmt: skip
        axes.plot(gammas, exact, color=colour, linewidth=1.4, label=label)
        bars = None if error is None else 2 * error
        axes.errorbar(gammas, measured, yerr=bars, fmt="o", markersize=4, color=colour)
    axes.plot(gammas, result.bias[-1] * gammas / gammas[-1] * 0.6, color=GREY, linewidth=1,
              linestyle=":", label="linear in γ")  # fmt: skip
    _ticks(axes, result.gammas)
    axes.set_xlabel("γ")
    axes.set_ylabel("error of the regularised optimum")
    axes.legend(
        frameon=False, fontsize=8.5, loc="lower right", title="dots: chain", title_fontsize=8.5
    )
