"""The distribution of outcomes, given predictions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sglb.distributions import Distribution, Gamma, Poisson, StudentT, Tweedie
from sglb.elementary import exp
from sglb.model import Model

Floats = NDArray[np.float64]

# law -> distribution of the rows, by predictions (n_rows,), scales (n_rows,) and numbers that hold
# for all rows.
LAWS: dict[str, Callable[[Floats, Floats, Mapping[str, float]], Distribution]] = {
    "student": lambda mean, scale, p: StudentT(mean, p["factor"] * scale, p["df"]),
    "poisson": lambda mean, scale, p: Poisson(mean),
    "gamma": lambda mean, scale, p: Gamma(mean, p["dispersion"]),
    "tweedie": lambda mean, scale, p: Tweedie(mean, p["dispersion"], p["power"]),
}


# The numbers of each law that hold for all rows.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "student": ("factor", "df"),
    "poisson": (),
    "gamma": ("dispersion",),
    "tweedie": ("dispersion", "power"),
}


@dataclass(frozen=True)
class OutcomeModel:
    """A law of outcomes with its numbers and, for laws with a scale, a chain that predicts it.

    `scale` predicts the log of the scale of a row, in units of `unit`.
    """

    law: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    scale: Model | None = None
    unit: float = 1.0

    @property
    def holds_error(self) -> bool:
        """Whether the law is that of y about a prediction, whose error it was learned with.

        A law without numbers of its own is that of y about the true mean.
        """
        return bool(self.parameters)

    def distribution(self, prediction: Floats, log_scale: Floats) -> Distribution:
        """Return the distribution of the outcomes of rows; log_scale is 0 for laws without."""
        return LAWS[self.law](prediction, self.unit * exp(log_scale), self.parameters)
