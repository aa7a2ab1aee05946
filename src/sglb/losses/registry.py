"""Losses by name: strings for beginners, objects for experts, one resolver."""

from typing import Any

from sglb.losses.amounts import Gamma, Tweedie
from sglb.losses.base import Loss
from sglb.losses.cost import Cost
from sglb.losses.counts import Poisson
from sglb.losses.lambdarank import LambdaRank
from sglb.losses.logistic import Logistic
from sglb.losses.pairwise_logistic import PairwiseLogistic
from sglb.losses.quantile import Quantile
from sglb.losses.query_squared import QuerySquared
from sglb.losses.robust import Absolute, Cauchy, Huber, Welsch
from sglb.losses.savage import Savage
from sglb.losses.softmax import Softmax
from sglb.losses.squared import Squared
from sglb.losses.stochastic_rank import StochasticRank
from sglb.losses.user import UserLoss
from sglb.losses.xendcg import XeNdcg
from sglb.losses.yeti import Yeti
from sglb.losses.zero_one import Sla

LOSSES: dict[str, type[Loss]] = {
    "absolute": Absolute,
    "cauchy": Cauchy,
    "cost": Cost,
    "gamma": Gamma,
    "huber": Huber,
    "lambdarank": LambdaRank,
    "logistic": Logistic,
    "pairwise_logistic": PairwiseLogistic,
    "poisson": Poisson,
    "quantile": Quantile,
    "query_squared": QuerySquared,
    "savage": Savage,
    "sla": Sla,
    "softmax": Softmax,
    "squared": Squared,
    "stochastic_rank": StochasticRank,
    "tweedie": Tweedie,
    "welsch": Welsch,
    "xendcg": XeNdcg,
    "yeti": Yeti,
}


def get_loss(spec: object, *, n_classes: int = 0, **parameters: Any) -> Loss:
    """Turn a name, a Loss, or any object with `loss` and `gradient` methods into a Loss.

    `n_classes` is the number of classes of a classification problem, 0 in regression; it
    matters to "softmax" and users' losses only. `parameters` go with a name:
    `get_loss("quantile", level=0.9)`.
    """
    if isinstance(spec, str):
        if spec not in LOSSES:
            raise ValueError(f"unknown loss {spec!r}; known are {', '.join(LOSSES)}")
        if LOSSES[spec].one_output_per_class:
            if not n_classes:
                raise ValueError(f"loss {spec!r} needs n_classes, the number of classes")
            parameters["n_classes"] = max(n_classes, 2)
        return LOSSES[spec](**parameters)
    if parameters:
        raise ValueError(f"parameters {sorted(parameters)} go with the name of a loss only")
    if isinstance(spec, Loss):
        return spec
    return UserLoss(spec, n_classes)
