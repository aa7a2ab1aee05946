"""Is this a good loss, and what does theory promise for it?

Where a loss is Lipschitz continuous, smooth and bounded below, the law of the chain converges to
exp(-beta * regularised mean loss), however many valleys the loss has (the paper's convergence
theorem). Whether it is, is not proved here but looked at: see `probe.py`.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from sglb.losses.base import Floats
from sglb.losses.probe import Finding, Probe, follow, lines
from sglb.losses.registry import get_loss

TOLERANCE = 1e-4  # of a derivative against finite differences; exact ones come within 1e-7
N_ROWS = 32


@dataclass(frozen=True)
class LossReport:
    """What `check_loss` found. `print` it."""

    name: str
    gradient_error: float  # largest relative difference to finite differences of the loss
    hessian_error: float | None  # the same for the second derivative, None if there is none
    lipschitz: float | None  # largest norm of the gradient seen, None if it keeps growing
    smoothness: float | None  # steepest change of the gradient seen, None if it keeps growing
    bounded_below: bool
    convex: bool  # no violation seen
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
        return self.gradient_matches and bounded and self.bounded_below

    @property
    def conclusion(self) -> str:
        """What follows for the guarantees."""
        if np.isnan(self.gradient_error):
            return "The loss could not be evaluated."
        if not self.gradient_matches:
            return (
                "The gradient is not that of the loss: nothing can be promised. Correct it first."
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
            ("gradient matches loss", self.gradient_matches, "relative error", self.gradient_error),
            ("hessian matches", self.hessian_matches, "relative error", self.hessian_error),
            ("Lipschitz continuous", self.lipschitz is not None, "|gradient| to", self.lipschitz),
            ("smooth", self.smoothness is not None, "slope of gradient to", self.smoothness),
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

    Up to 32 rows are drawn from y, in equal steps of its order, and repeated as often as needed:
    the loss must treat rows alike. Raises TypeError for an object that is not a loss and ValueError
    for targets outside its domain; whatever else is wrong with the loss is in the report.
    """
    y = np.array(y, dtype=np.float64).reshape(-1)
    if not len(y):
        raise ValueError("check_loss needs at least one target")
    classes = int(np.nanmax(y)) + 1 if isinstance(loss, str) and loss == "softmax" else None
    loss = get_loss(loss, n_classes=classes)
    loss.check_target(y)
    chosen = np.sort(y)[np.linspace(0, len(y) - 1, min(N_ROWS, len(y))).astype(int)]
    probe = Probe(loss, chosen)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        findings = [follow(probe, line) for line in lines(loss, chosen)]
    return _summary(probe, findings)


def _summary(probe: Probe, findings: list[Finding]) -> LossReport:
    """The worst of all lines."""
    hessian_errors = [one.hessian_error for one in findings if one.hessian_error is not None]
    return LossReport(
        name=probe.loss.name,
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
