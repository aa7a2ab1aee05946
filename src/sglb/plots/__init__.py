"""Figures of trainings, predictions and draws: the last room on the data's way.

Nothing here uses pyplot or any global state: a figure belongs to the caller, on a machine with or
without a display. A notebook shows a figure that is the last value of a cell.

    error_curves, sweep, importances, training_curves     arrays -> Figure
    fan_chart, reliability, coverage_by_scale,            arrays or objects of this library, and
    rejection_curve, draws_trace, rank_plot,              axes to draw on -> Axes; without axes on
    partial_dependence_posterior                          new ones, whose figure is `axes.figure`
    panels, save                                          empty axes, files
"""

from sglb.plots.calibration import coverage_by_scale, fan_chart, rejection_curve, reliability
from sglb.plots.draws import draws_trace, partial_dependence_posterior, rank_plot
from sglb.plots.style import PALETTE, panels, save
from sglb.plots.training import error_curves, importances, sweep, training_curves

__all__ = [
    "PALETTE",
    "coverage_by_scale",
    "draws_trace",
    "error_curves",
    "fan_chart",
    "importances",
    "panels",
    "partial_dependence_posterior",
    "rank_plot",
    "rejection_curve",
    "reliability",
    "save",
    "sweep",
    "training_curves",
]
