"""Losses: what a chain minimises. A new loss is a class in this folder and a line in LOSSES."""

from sglb.losses.amounts import Gamma, Tweedie
from sglb.losses.base import Loss
from sglb.losses.cost import Cost
from sglb.losses.counts import Poisson
from sglb.losses.lambdarank import LambdaRank
from sglb.losses.logistic import Logistic
from sglb.losses.own_metric import OwnMetric
from sglb.losses.pairwise_logistic import PairwiseLogistic
from sglb.losses.quantile import Quantile
from sglb.losses.query_squared import QuerySquared
from sglb.losses.ranking import RankingLoss
from sglb.losses.registry import LOSSES, get_loss
from sglb.losses.report import LossReport, check_loss
from sglb.losses.robust import Absolute, Cauchy, Huber, Welsch
from sglb.losses.savage import Savage
from sglb.losses.softmax import Softmax
from sglb.losses.squared import Squared
from sglb.losses.stochastic_rank import StochasticRank
from sglb.losses.user import UserLoss
from sglb.losses.xendcg import XeNdcg
from sglb.losses.yeti import Yeti
from sglb.losses.zero_one import Sla

__all__ = [
    "LOSSES",
    "Absolute",
    "Cauchy",
    "Cost",
    "Gamma",
    "Huber",
    "LambdaRank",
    "Logistic",
    "Loss",
    "LossReport",
    "OwnMetric",
    "PairwiseLogistic",
    "Poisson",
    "Quantile",
    "QuerySquared",
    "RankingLoss",
    "Savage",
    "Sla",
    "Softmax",
    "Squared",
    "StochasticRank",
    "Tweedie",
    "UserLoss",
    "Welsch",
    "XeNdcg",
    "Yeti",
    "check_loss",
    "get_loss",
]
