"""Predictive distributions of rows. A new member is a file here."""

from sglb.distributions.base import Distribution
from sglb.distributions.gamma import Gamma
from sglb.distributions.normal import Normal
from sglb.distributions.poisson import Poisson
from sglb.distributions.quantiles import Quantiles
from sglb.distributions.student import StudentT
from sglb.distributions.tweedie import Tweedie

__all__ = [
    "Distribution",
    "Gamma",
    "Normal",
    "Poisson",
    "Quantiles",
    "StudentT",
    "Tweedie",
]
