"""Predictive distributions of rows. A new member is a class here and a line in DISTRIBUTIONS."""

from sglb.distributions.base import Distribution
from sglb.distributions.gamma import Gamma
from sglb.distributions.normal import Normal
from sglb.distributions.poisson import Poisson
from sglb.distributions.quantiles import Quantiles
from sglb.distributions.student import StudentT
from sglb.distributions.tweedie import Tweedie

DISTRIBUTIONS: dict[str, type[Distribution]] = {
    "gamma": Gamma,
    "normal": Normal,
    "poisson": Poisson,
    "quantiles": Quantiles,
    "student": StudentT,
    "tweedie": Tweedie,
}

__all__ = [
    "DISTRIBUTIONS",
    "Distribution",
    "Gamma",
    "Normal",
    "Poisson",
    "Quantiles",
    "StudentT",
    "Tweedie",
]
