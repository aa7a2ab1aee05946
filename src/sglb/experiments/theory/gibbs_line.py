"""One-dimensional Gibbs laws on a grid: expectations and spectral gaps without sampling."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

Floats = NDArray[np.float64]


def bounded_loss(raw: Floats | float, y: float) -> Floats:
    """Return Welsch's loss, (1 - exp(-(raw - y)^2)) / 2."""
    return np.asarray(0.5 * (1.0 - np.exp(-np.square(raw - y))))


@dataclass(frozen=True)
class GibbsLine:
    """The law exp(-energy) on an even grid."""

    grid: Floats
    energy: Floats

    def mass(self) -> Floats:
        """Return the mass of each point."""
        weight = np.exp(-(self.energy - self.energy.min()))
        return np.asarray(weight / weight.sum())

    def density(self) -> Floats:
        """Return the density at each point."""
        return np.asarray(self.mass() / (self.grid[1] - self.grid[0]))

    def mean(self, values: Floats) -> float:
        """Return the expectation of a function of the state."""
        return float(self.mass() @ values)

    def spectral_gap(self) -> float:
        """Return the smallest ratio of E |g'|^2 to Var g, the inverse of Poincare's constant.

        With g = h / sqrt(mass) the ratio is that of a symmetric tridiagonal matrix; the mass
        between two points is their geometric mean, so that its entries are differences of energies.
        """
        step = self.grid[1] - self.grid[0]
        rise = 0.5 * np.diff(self.energy)
        diagonal = np.append(np.exp(-rise), 0.0) + np.insert(np.exp(rise), 0, 0.0)
        aside = np.full(len(rise), -1.0)
        values = eigh_tridiagonal(
            diagonal, aside, select="i", select_range=(0, 1), eigvals_only=True
        )
        return float(values[1] / step**2)
