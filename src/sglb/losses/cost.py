"""The loss of decisions that have costs."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from sglb import _core, sums
from sglb.elementary import log
from sglb.losses.base import Floats, Loss, Refresh, check_positive
from sglb.losses.links import SIGMOID, SOFTMAX, Link, cross_entropy
from sglb.losses.logistic import Logistic
from sglb.losses.softmax import Softmax
from sglb.target import Target


@dataclass(frozen=True)
class Cost(Loss):
    """Cross-entropy to the cheap decisions, weighted by what they save.

    Domain      y in {0, ..., n_classes - 1}, with the costs c_d of each decision d about a row
    Formula     L = -sum over d of u_d log p_d, u_d = (max over e of c_e - c_d) / unit
                of two classes |c_0 - c_1| / unit times the logistic loss of the cheaper decision
    Link        p = softmax of z: the shares of expected savings, E u_d / sum over e of E u_e. The
                largest is that of the decision of least expected cost; not probabilities of classes
    Gradient    U p_d - u_d, U = sum over d of u_d
    Hessian     U p_d (1 - p_d), the diagonal of U (diag(p) - p p')
    Lipschitz   largest U, of more than two classes times sqrt(2)
    Smoothness  largest U / 4, of more than two classes / 2
    Unit        mean over the rows of U: costs in another currency give the same model
    Start       log of the shares of the savings, the minimiser

    Without costs a wrong decision costs 1 and a right one 0: the loss is `logistic` or `softmax`.
    Two classes have one raw score, that of decision 1. The loss is convex, and a fixed function of
    the raw scores: chains have a stationary law as those of `logistic` have.
    """

    n_classes: int
    unit: float = 1.0
    largest: float = 1.0

    name = "cost"
    task = "multiclass"  # of two classes "binary"
    one_output_per_class = True
    uses_costs = True
    proper = False

    def __post_init__(self) -> None:
        if self.n_classes != int(self.n_classes) or self.n_classes < 2:
            raise ValueError(
                f"n_classes of loss 'cost' must be a whole number >= 2, got {self.n_classes!r}"
            )
        check_positive(self, unit=self.unit, largest=self.largest)
        object.__setattr__(self, "n_classes", int(self.n_classes))
        if self.n_classes == 2:
            object.__setattr__(self, "task", "binary")

    def parameters(self) -> dict[str, float]:
        """Return the constructor's arguments."""
        return {name: float(getattr(self, name)) for name in ("n_classes", "unit", "largest")}

    @property
    def n_outputs(self) -> int:
        """One raw score per class, of two classes that of the second."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def lipschitz(self) -> float:
        """Bound of U ||p - u / U||."""
        return self.largest * (1.0 if self.n_classes == 2 else float(np.sqrt(2.0)))

    @property
    def smoothness(self) -> float:
        """Largest eigenvalue of the Hessian."""
        return self.largest * (0.25 if self.n_classes == 2 else 0.5)

    @property
    def trust_radius(self) -> float:
        """That of the logistic loss, whose weights do not matter to a Newton step."""
        return Logistic().trust_radius if self.n_classes == 2 else np.inf

    @property
    def link(self) -> Link:
        """Shares of expected savings."""
        return SIGMOID if self.n_classes == 2 else SOFTMAX

    def check_target(self, target: Target) -> None:
        """Raise ValueError at the first target that is not the index of a class."""
        super().check_target(target)
        y = target.values
        valid = (y >= 0) & (y < self.n_classes) & (y == np.floor(y))
        self._require(valid, y, f"a whole number in 0..{self.n_classes - 1}")

    def adapt(self, target: Target, n_threads: int = 1) -> Self:
        """Return the loss in the unit of the costs."""
        if not len(target.costs):
            return self
        total = _add_up(self._savings(target)) * self.unit
        unit = target.mean(total)
        if not unit > 0.0:
            raise ValueError(
                "costs: all decisions about a row cost the same, in every row, so that there is"
                " nothing to learn; costs[y, d] is the cost of decision d where the class is y"
            )
        if not 1e-100 <= unit <= 1e100:
            raise ValueError(
                f"costs: decisions about a row differ by {unit:.3g} on average; use a unit"
                " in which that lies between 1e-100 and 1e100"
            )
        return replace(self, unit=unit, largest=float(total.max()) / unit)

    def _savings(self, target: Target) -> Floats:
        """Return u of each row, (n_rows, n_classes)."""
        if not len(target.costs):
            return np.asarray(target.values[:, None] == np.arange(self.n_classes), dtype=np.float64)
        costs = target.realised_costs
        savings: Floats = (costs.max(axis=1, keepdims=True, initial=-np.inf) - costs) / self.unit
        return savings

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """Return the loss of each row where a wrong decision costs 1."""
        return self.losses(Target.of(y), raw)

    def losses(self, target: Target, raw: Floats) -> Floats:
        """-sum over d of u_d log p_d."""
        savings = self._savings(target)
        losses = np.zeros(len(target))
        for decision in range(self.n_classes):
            chosen = np.full(len(target), float(decision))
            part = savings[:, decision] * cross_entropy(chosen, raw)
            # A decision that saves nothing does not count, however unlikely it is.
            losses += np.where((savings[:, decision] > 0.0) | np.isnan(part), part, 0.0)
        return losses

    def derivatives(self, y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian where a wrong decision costs 1."""
        return self._derivatives(Target.of(y), raw)

    def gradients(self, target: Target, raw: Floats) -> Floats:
        """U p_d - u_d."""
        return self._derivatives(target, raw)[0]

    def curvatures(self, target: Target, raw: Floats, length: float) -> Floats:
        """U p_d (1 - p_d)."""
        return self._derivatives(target, raw)[1]

    def hessian_parts(self, y: Floats, raw: Floats) -> tuple[Floats, Floats | None]:
        """diag(p) - p p' where a wrong decision costs 1."""
        return (Logistic() if self.n_classes == 2 else Softmax(self.n_classes)).hessian_parts(
            y, raw
        )

    def _derivatives(self, target: Target, raw: Floats) -> tuple[Floats, Floats]:
        raw = np.asarray(raw, dtype=np.float64)
        chain = np.ascontiguousarray(np.atleast_2d(raw.T))
        gradient, hessian = np.empty_like(chain), np.empty_like(chain)
        self._fill(self._savings(target), chain, gradient, hessian, 1)
        return gradient.T.reshape(raw.shape), hessian.T.reshape(raw.shape)

    def fill(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None, n_threads: int
    ) -> float:
        """Fill gradient and hessian where a wrong decision costs 1."""
        return self._fill(self._savings(Target.of(y)), raw, gradient, hessian, n_threads)

    def _fill(
        self,
        savings: Floats,
        raw: Floats,
        gradient: Floats,
        hessian: Floats | None,
        n_threads: int,
    ) -> float:
        """Fill gradient and hessian (n_outputs, n_rows) by the kernels of the unweighted losses."""
        total = _add_up(savings)
        if self.n_classes == 2:
            cheaper = (savings[:, 1] > 0.0).astype(np.float64)
            _core.gradient("logistic", (0.0, 0.0), cheaper, raw, gradient, hessian, n_threads)
            gradient *= total
            if hessian is not None:
                hessian *= total
        else:
            p = self.link.columns(raw, self.n_classes).T
            np.subtract(total * p, savings.T, out=gradient)
            if hessian is not None:
                np.multiply(total * p, 1.0 - p, out=hessian)
        if not np.isfinite(raw).all():
            return float("inf")
        return float(np.abs(gradient).max(initial=0.0))

    def slopes(self, target: Target, raw: Floats, *, newton: bool) -> None:
        """Return None: kernels do not know of costs, so that gradients are stored."""
        return

    def stored_slopes(
        self, target: Target, raw: Floats, gradient: Floats, hessian: Floats | None
    ) -> tuple[_core.Slopes, Refresh]:
        """Return slopes stored in arrays, and a function that fills the arrays."""
        savings, bound = self._savings(target), 0.0 if hessian is None else self.smoothness

        def refresh(n_threads: int, draws: _core.Draws) -> tuple[float, float]:
            return self._fill(savings, raw, gradient, hessian, n_threads), bound

        return _core.Slopes(gradient, hessian), refresh

    def init(self, target: Target) -> Floats:
        """Log of the shares of the savings; a decision that never saves counts half a row."""
        savings = self._savings(target)
        totals = np.array([sums.total(column, target.weight) for column in savings.T])
        n_rows = np.count_nonzero(target.weight)
        totals[totals == 0.0] = sums.total(totals) / (2 * n_rows)
        shares = log(totals / sums.total(totals))
        return shares[1:] - shares[:1] if self.n_classes == 2 else shares


def _add_up(savings: Floats) -> Floats:
    """Return U, the sum of each row, in the order of the classes."""
    total = np.zeros(len(savings))
    for column in savings.T:
        total += column
    return total
