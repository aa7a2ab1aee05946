"""Is this a good loss, and what does theory promise for it?

Where a loss is Lipschitz continuous, smooth and bounded below, the law of the chain converges to
exp(-beta * regularised mean loss), however many valleys the loss has (the paper's convergence
theorem). Whether it is, is not proved here but looked at: see `probe.py`.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from sglb.losses import trial
from sglb.losses.base import Floats, Loss
from sglb.losses.minimisers import quantile, spread
from sglb.losses.probe import Finding, Probe, follow, lines
from sglb.losses.registry import LOSSES, get_loss

TOLERANCE = 1e-4  # of a derivative against finite differences; exact ones come within 2e-5
N_ROWS = 32


@dataclass(frozen=True)
class LossReport:
    """What `check_loss` found. `print` it.

    Where rows are not `independent` only the gradient of their sum can be checked: `lipschitz`,
    `smoothness`, `bounded_below` and `convex`, properties of the loss of one row, are None.
    """

    name: str
    independent: bool  # whether the numbers of a row depend on nothing but its own y and raw
    gradient_error: float  # largest relative difference to finite differences of the loss
    hessian_error: float | None  # the same for the second derivative, None if there is none
    lipschitz: float | None  # largest norm of the gradient seen, None if it keeps growing
    smoothness: float | None  # steepest change of the gradient seen, None if it keeps growing
    bounded_below: bool | None
    convex: bool | None  # no violation seen
    problems: tuple[str, ...]  # what went wrong, in words

    @property
    def gradient_matches(self) -> bool:
        """Whether the gradient is the derivative of the loss."""
        return self.gradient_error <= TOLERANCE

    @property
    def hessian_matches(self) -> bool | None:
        """Whether the second derivative is that of the loss, None if there is none."""
        return None if self.hessian_error is None else self.hessian_error <= TOLERANCE

    @property
    def guaranteed(self) -> bool:
        """Whether the loss looks as the convergence theorem of SGLB demands."""
        bounded = self.lipschitz is not None and self.smoothness is not None
        return self.gradient_matches and bounded and bool(self.bounded_below)

    @property
    def conclusion(self) -> str:
        """What follows for the guarantees."""
        if np.isnan(self.gradient_error):
            return "The loss could not be evaluated."
        if not self.gradient_matches:
            return (
                "The gradient is not that of the loss: nothing can be promised. Correct it first."
            )
        if not self.independent:
            return (
                "Rows belong together: the gradient is that of the sum of the loss over all rows."
                " Bounds, smoothness and convexity, which the convergence theorem asks for, cannot"
                " be checked, nor can a chain be run on some of the rows."
            )
        if not self.bounded_below:
            return "The loss has no lower bound: there is no optimum, and a chain may run away."
        if not self.guaranteed:
            return self._excuse()
        promise = (
            "SGLB converges to its stationary law, hence to the global optimum as temperature and "
            "shrink_rate go to 0"
        )
        if self.convex:
            return f"{promise}. The loss looks convex, so plain boosting gets there too."
        return f"{promise}; plain boosting may stop in a local optimum, as the loss is not convex."

    def _excuse(self) -> str:
        lacks = []
        if self.lipschitz is None:
            lacks.append("a bounded gradient")
        if self.smoothness is None:
            lacks.append("a gradient whose slope is bounded")
        text = f"SGLB's convergence theorem asks for {' and '.join(lacks)}: not covered."
        if self.smoothness is None:
            return f"{text} A chain may still work, without a promise."
        return (
            f"{text} A chain with gradient leaves is stable while learning_rate * "
            f"({self.smoothness:.4g} + shrink_rate) < 2."
        )

    def __str__(self) -> str:
        failed = bool(np.isnan(self.gradient_error))
        rows: list[tuple[str, bool | None, str, float | None]] = [
            ("rows independent", self.independent, "", None),
            ("gradient matches loss", self.gradient_matches, "relative error", self.gradient_error),
            ("hessian matches", self.hessian_matches, "relative error", self.hessian_error),
        ]
        if self.independent:
            lipschitz, smooth = self.lipschitz is not None, self.smoothness is not None
            rows += [
                ("Lipschitz continuous", lipschitz, "|gradient| to", self.lipschitz),
                ("smooth", smooth, "slope of gradient to", self.smoothness),
                ("bounded below", self.bounded_below, "", None),
                ("convex", self.convex, "", None),
            ]
        words = {None: "none", True: "yes", False: "no"}
        table = [
            f"  {what:24}{'?' if failed else words[answer]:6}"
            + ("" if failed or number is None else f"{unit} {number:.4g}")
            for what, answer, unit, number in rows
        ]
        notes = [f"  note: {problem}" for problem in self.problems]
        return "\n".join(
            [f"loss '{self.name}'", *(line.rstrip() for line in table), *notes, self.conclusion]
        )


def check_loss(loss: object, y: Floats) -> LossReport:
    """Examine a loss (a name, a Loss or any object with `loss` and `gradient`) at targets y.

    First it looks whether the numbers of a row change with the rows that come with it. If they do
    not, up to 32 rows are drawn from y, in equal steps of its order, and followed far in both
    directions. If they do, or the loss can be evaluated on all of y only, the gradient of the sum
    over all rows is compared along random directions. Raises TypeError for an object that is not a
    loss and ValueError for targets outside its domain; whatever else is wrong with the loss is in
    the report.
    """
    y = np.array(y, dtype=np.float64).reshape(-1)
    if not len(y):
        raise ValueError("check_loss needs at least one target")
    per_class = isinstance(loss, str) and loss in LOSSES and LOSSES[loss].one_output_per_class
    loss = get_loss(loss, n_classes=int(np.nanmax(y)) + 1 if per_class else None)
    loss.check_target(y)
    loss = loss.adapt(y, None)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        start = np.full(loss.n_outputs, quantile(y, None, 0.5))
        if not trial.independent_rows(loss, y, start, spread(y, None)):
            return _coupled(loss, y, start)
        chosen = np.sort(y)[np.linspace(0, len(y) - 1, min(N_ROWS, len(y))).astype(int)]
        probe = Probe(loss, chosen)
        findings = [follow(probe, line) for line in lines(loss, chosen)]
    return _summary(probe, findings)


def _coupled(loss: Loss, y: Floats, start: Floats) -> LossReport:
    """Report of a loss whose rows belong together."""
    error, problems = np.nan, []
    try:
        exact, slope = trial.directional(loss, y, start, spread(y, None))
        size = np.maximum(np.abs(exact), np.abs(slope)).max()
        error = float(np.max(np.abs(exact - slope)) / size) if size > 0.0 else 0.0
    except Exception as failure:
        problems = [f"failed on {len(y)} rows: {type(failure).__name__}: {failure}"]
    return LossReport(
        name=loss.name,
        independent=False,
        gradient_error=error,
        hessian_error=None,
        lipschitz=None,
        smoothness=None,
        bounded_below=None,
        convex=None,
        problems=tuple(problems),
    )


def _summary(probe: Probe, findings: list[Finding]) -> LossReport:
    """The worst of all lines."""
    hessian_errors = [one.hessian_error for one in findings if one.hessian_error is not None]
    return LossReport(
        name=probe.loss.name,
        independent=True,
        gradient_error=float(np.max([one.gradient_error for one in findings])),
        hessian_error=float(np.max(hessian_errors)) if hessian_errors else None,
        lipschitz=_largest([one.lipschitz for one in findings]),
        smoothness=_largest([one.smoothness for one in findings]),
        bounded_below=all(one.bounded_below for one in findings),
        convex=all(one.convex for one in findings),
        problems=tuple(probe.problems),
    )


def _largest(bounds: list[float | None]) -> float | None:
    known = [bound for bound in bounds if bound is not None]
    return max(known) if len(known) == len(bounds) else None
