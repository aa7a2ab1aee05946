"""Validate a user's loss, and report what the theory guarantees for it.

Where a loss is Lipschitz continuous, smooth and bounded below, the law of the chain converges to
exp(-beta * regularised mean loss), however many minima the loss has (the paper's convergence
theorem). These conditions are measured along lines (`probe.py`), not proved.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from sglb.losses import trial
from sglb.losses.base import Floats, Loss
from sglb.losses.minimisers import quantile, spread
from sglb.losses.probe import Finding, Probe, follow, lines
from sglb.losses.registry import LOSSES, get_loss
from sglb.target import Target

TOLERANCE = 1e-4  # of a derivative against finite differences; correct ones are within 2e-5
N_ROWS = 32


@dataclass(frozen=True)
class LossReport:
    """The result of `check_loss`; it prints as a table.

    Where rows are not `independent` only the gradient of their sum can be checked: `lipschitz`,
    `smoothness`, `bounded_below` and `convex`, properties of the loss of a single row, are None.
    """

    name: str
    independent: bool  # whether loss and gradient of a row depend only on its own y and raw
    gradient_error: float  # largest relative difference to finite differences of the loss
    hessian_error: float | None = None  # the same for the hessian, None without one
    lipschitz: float | None = None  # largest norm of the gradient seen, None if growing
    smoothness: float | None = None  # steepest change of the gradient seen, None if growing
    bounded_below: bool | None = None
    convex: bool | None = None  # no violation seen
    problems: tuple[str, ...] = ()  # what went wrong, in words

    @property
    def gradient_matches(self) -> bool:
        """Whether the gradient is the derivative of the loss."""
        return self.gradient_error <= TOLERANCE

    @property
    def hessian_matches(self) -> bool | None:
        """Whether the second derivative is that of the loss, None without a hessian."""
        return None if self.hessian_error is None else self.hessian_error <= TOLERANCE

    @property
    def guaranteed(self) -> bool:
        """Whether the loss seems to satisfy the conditions of SGLB's convergence theorem."""
        bounded = self.lipschitz is not None and self.smoothness is not None
        return self.gradient_matches and bounded and bool(self.bounded_below)

    @property
    def conclusion(self) -> str:
        """A sentence on what the theory guarantees for this loss."""
        if np.isnan(self.gradient_error):
            return "The loss could not be evaluated."
        if not self.gradient_matches:
            return "The gradient is not that of the loss: nothing is guaranteed. Correct it first."
        if not self.independent:
            return (
                "Rows depend on one another: the gradient is that of the sum of the loss over all"
                " rows. Bounds, smoothness and convexity, which the convergence theorem asks for,"
                " cannot be checked, and a chain cannot be run on some of the rows."
            )
        if not self.bounded_below:
            return "The loss has no lower bound: there is no optimum, and a chain may diverge."
        if not self.guaranteed:
            return self._missing_conditions()
        guarantee = (
            "SGLB converges to its stationary law, hence to the global optimum as temperature and "
            "shrink_rate go to 0"
        )
        if self.convex:
            return f"{guarantee}. The loss looks convex, so plain boosting gets there too."
        return (
            f"{guarantee}; plain boosting may stop in a local optimum, because the loss is not"
            " convex."
        )

    def _missing_conditions(self) -> str:
        conditions = []
        if self.lipschitz is None:
            conditions.append("a bounded gradient")
        if self.smoothness is None:
            conditions.append("a gradient whose slope is bounded")
        text = f"SGLB's convergence theorem asks for {' and '.join(conditions)}: not covered."
        if self.smoothness is None:
            return f"{text} A chain may still work, without a guarantee."
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
            f"  {label:24}{'?' if failed else words[holds]:6}"
            + ("" if failed or number is None else f"{unit} {number:.4g}")
            for label, holds, unit, number in rows
        ]
        notes = [f"  note: {problem}" for problem in self.problems]
        return "\n".join(
            [f"loss '{self.name}'", *(line.rstrip() for line in table), *notes, self.conclusion]
        )


def check_loss(loss: object, y: Floats) -> LossReport:
    """Examine a loss (a name, a Loss or any object with `loss` and `gradient`) at targets y.

    If loss and gradient of a row do not depend on other rows, up to 32 quantiles of y are followed
    far in both directions. If they do, or if the loss can be evaluated on all of y only, the
    gradient of the sum over all rows is compared with differences along random directions. Raises
    TypeError for an object that is not a loss and ValueError for targets outside its domain; all
    other faults of the loss are in the report.
    """
    y = np.array(y, dtype=np.float64).reshape(-1)
    if not len(y):
        raise ValueError("check_loss needs at least one target")
    per_class = isinstance(loss, str) and loss in LOSSES and LOSSES[loss].one_output_per_class
    loss = get_loss(loss, n_classes=int(np.nanmax(y)) + 1 if per_class else 0)
    target = Target.of(y)
    loss.check_target(target)
    loss = loss.adapt(target)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        start = np.full(loss.n_outputs, quantile(target, 0.5))
        if not trial.independent_rows(loss, y, start, spread(target)):
            return _report_of_sum(loss, y, start)
        targets = np.sort(y)[np.linspace(0, len(y) - 1, min(N_ROWS, len(y))).astype(int)]
        probe = Probe(loss, targets)
        findings = [follow(probe, line) for line in lines(loss, targets)]
    return _report_of_lines(probe, findings)


def _report_of_sum(loss: Loss, y: Floats, start: Floats) -> LossReport:
    """Report on a loss whose rows depend on one another."""
    error, problems = np.nan, tuple[str, ...]()
    try:
        exact, slope = trial.directional(loss, y, start, spread(Target.of(y)))
        size = np.maximum(np.abs(exact), np.abs(slope)).max()
        error = float(np.max(np.abs(exact - slope)) / size) if size > 0.0 else 0.0
    except Exception as failure:
        problems = (f"failed on {len(y)} rows: {type(failure).__name__}: {failure}",)
    return LossReport(loss.name, independent=False, gradient_error=error, problems=problems)


def _report_of_lines(probe: Probe, findings: list[Finding]) -> LossReport:
    """Report on the worst of all lines."""
    hessian_errors = [line.hessian_error for line in findings if line.hessian_error is not None]
    return LossReport(
        name=probe.loss.name,
        independent=True,
        gradient_error=float(np.max([line.gradient_error for line in findings])),
        hessian_error=float(np.max(hessian_errors)) if hessian_errors else None,
        lipschitz=_largest([line.lipschitz for line in findings]),
        smoothness=_largest([line.smoothness for line in findings]),
        bounded_below=all(line.bounded_below for line in findings),
        convex=all(line.convex for line in findings),
        problems=tuple(probe.problems),
    )


def _largest(bounds: list[float | None]) -> float | None:
    numbers = [bound for bound in bounds if bound is not None]
    return max(numbers) if len(numbers) == len(bounds) else None
