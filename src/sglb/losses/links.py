"""Links: raw scores -> predictions, finite at any score.

A `Link` has a native kernel, so that prediction applies it where the scores are computed. A user's
link is a Python function.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.elementary import exp

Floats = NDArray[np.float64]


class LinkFunction(Protocol):
    """A function from raw scores to predictions."""

    def __call__(self, raw: Floats) -> Floats:
        """Return predictions in the shape of raw, (n_rows,) or (n_rows, n_outputs)."""
        ...


@dataclass(frozen=True)
class Link:
    """A link with a native kernel.

    identity     z
    sigmoid      1 / (1 + exp(-z / parameter)), the probability of class 1
    softmax      exp(z_k) / sum over j of exp(z_j), the probability of class k
    exponential  exp(z), from z = parameter on its tangent there
    sorted       the scores of a row in increasing order
    """

    name: Literal["identity", "sigmoid", "softmax", "exponential", "sorted"]
    parameter: float = 1.0

    @property
    def is_exponential(self) -> bool:
        """Whether raw scores are logarithms of predictions."""
        return self.name == "exponential"

    @property
    def unit(self) -> float:
        """Log-odds are raw scores divided by this, where predictions are probabilities."""
        return self.parameter if self.name == "sigmoid" else 1.0

    def __call__(self, raw: Floats) -> Floats:
        """Return predictions in the shape of raw; rows of several scores are its last axis."""
        raw = np.asarray(raw, dtype=np.float64)
        n_outputs = raw.shape[-1] if self.name in ("softmax", "sorted") else 1
        return self.columns(raw.reshape(-1, n_outputs).T, n_outputs).reshape(raw.shape)

    def columns(self, raw: Floats, n_columns: int) -> Floats:
        """Return predictions (n_rows, n_columns) of raw (n_outputs, n_rows).

        One column per output, or two for a sigmoid: the probabilities of both classes.
        """
        out = np.empty((raw.shape[1], n_columns))
        _core.link(self.name, self.parameter, np.ascontiguousarray(raw), out, 1)
        return out


IDENTITY = Link("identity")
SIGMOID = Link("sigmoid")
SOFTMAX = Link("softmax")
SORTED = Link("sorted")


def cross_entropy(y: Floats, raw: Floats) -> Floats:
    """Return -log P(class y) of each row, raw being log-odds (n_rows,) or (n_rows, n_classes)."""
    out = np.empty(len(raw))
    _core.cross_entropy(y, np.ascontiguousarray(np.atleast_2d(raw.T)), out)
    return out


def sigmoid(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)), clipped at 700, where it differs from 0 and 1 by 1e-304."""
    return 1.0 / (1.0 + exp(-np.clip(z, -700.0, 700.0)))
