"""Conformal prediction: intervals and sets whose coverage is guaranteed for finite samples.

A model of any quality is compared with rows that it was not trained on. If those rows and a new row
are exchangeable, the set of the new row contains its outcome with at least the stated probability,
whatever the law of the data. The guarantee is marginal: an average over calibration rows and new
rows, not a promise for each row. A scale or quantiles that depend on the row, or sets by class,
bring it closer to such a promise.

    ConformalResiduals      |y - mean| / scale of calibration rows -> intervals
    ConformalQuantiles      two quantiles that need not be right (CQR) -> intervals
    ConformalClasses        probabilities -> sets of classes, guaranteed within each class
    CrossConformal          out-of-fold predictions of all rows (CV+) -> intervals
    CrossConformalClasses   out-of-fold probabilities of all rows -> sets of classes

Out of fold, all rows train and all calibrate: none is set aside.
"""

from sglb.conformal.classes import ConformalClasses, PredictionSets
from sglb.conformal.cross import CrossConformal
from sglb.conformal.cross_classes import CrossConformalClasses
from sglb.conformal.intervals import ConformalQuantiles, ConformalResiduals
from sglb.conformal.ranks import Intervals, rows_needed

__all__ = [
    "ConformalClasses",
    "ConformalQuantiles",
    "ConformalResiduals",
    "CrossConformal",
    "CrossConformalClasses",
    "Intervals",
    "PredictionSets",
    "rows_needed",
]
