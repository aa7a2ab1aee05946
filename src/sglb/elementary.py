"""exp, log and powers that have the same bits on every processor.

Those of NumPy and of the C library differ in their last bits between versions and instruction sets.
A number that is stored in a model file, or on which a model depends, comes from here instead.
Infinity and NaN are treated as in NumPy, without its warnings.
"""

import math
from collections.abc import Callable
from typing import overload

import numpy as np
from numpy.typing import NDArray

from sglb import _core

Floats = NDArray[np.float64]

# Arguments from which Stirling's series of log_gamma is used.
SERIES_FROM = 12.0


@overload
def exp(x: float) -> float: ...
@overload
def exp(x: Floats) -> Floats: ...
def exp(x: float | Floats) -> float | Floats:
    """Return e^x."""
    return _map(_core.exp, x) if isinstance(x, np.ndarray) else _core.exp_of(x)


@overload
def log(x: float) -> float: ...
@overload
def log(x: Floats) -> Floats: ...
def log(x: float | Floats) -> float | Floats:
    """Return the natural logarithm of x."""
    return _map(_core.log, x) if isinstance(x, np.ndarray) else _core.log_of(x)


def log1p(x: Floats) -> Floats:
    """Return log(1 + x), accurate for small x too."""
    return _map(_core.log1p, x)


def expm1(x: Floats) -> Floats:
    """Return e^x - 1, accurate for small x too."""
    return _map(_core.expm1, x)


def power(base: float, exponent: float) -> float:
    """Return base^exponent for a base >= 0, as exp(exponent log base)."""
    if exponent in (0.0, 1.0):
        return base if exponent else 1.0
    return _core.exp_of(exponent * _core.log_of(base))


def log_gamma(x: float) -> float:
    """Return the logarithm of the gamma function of x > 0, within 1e-14 of 1 or of the result."""
    shift = 1.0
    while x < SERIES_FROM:  # gamma(x) = gamma(x + 1) / x
        shift, x = shift * x, x + 1.0
    z = 1.0 / (x * x)
    # Stirling's series; the first term left out, 691 / 360360 x^-11, is below 3e-15 at x = 12.
    series = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188)))) / x
    return (x - 0.5) * log(x) - x + 0.5 * log(2.0 * math.pi) + series - log(shift)


def cosine_turn(turns: float) -> float:
    """Return cos(2 pi turns) for 0 to 1 turn."""
    return _core.cosine_turn_of(turns)


def _map(fill: Callable[[Floats, Floats], None], x: Floats) -> Floats:
    values = np.ascontiguousarray(x, dtype=np.float64)
    out = np.empty_like(values)
    fill(values.reshape(-1), out.reshape(-1))
    return out
