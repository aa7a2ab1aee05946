"""The three estimators: scikit-learn manners around the chain, no algorithm."""

from pathlib import Path

from sglb import archive
from sglb.errors import ModelFormatError
from sglb.estimators.classifier import SGLBClassifier
from sglb.estimators.expected_failures import sklearn_expected_failed_checks
from sglb.estimators.posterior import Posterior
from sglb.estimators.ranker import SGLBRanker
from sglb.estimators.regressor import SGLBRegressor
from sglb.estimators.sources import ChainSource
from sglb.model import Model
from sglb.posterior import AnyPosterior
from sglb.recipe import Kind
from sglb.settings import check_parameters

__all__ = [
    "SGLBClassifier",
    "SGLBRanker",
    "SGLBRegressor",
    "load",
    "sklearn_expected_failed_checks",
]

Estimator = SGLBClassifier | SGLBRegressor | SGLBRanker

KINDS: dict[Kind, type[Estimator]] = {
    "classifier": SGLBClassifier,
    "regressor": SGLBRegressor,
    "ranker": SGLBRanker,
}


def load(path: str | Path, *, sha256: str | None = None) -> Estimator | Posterior:
    """Read what `save` has written: a fitted estimator, or a posterior with its estimator.

    A file is data: no code in it is ever run, and whatever is damaged, forged or of a newer format
    raises `ModelFormatError`. With `sha256`, the digits that `sha256sum model.sglb` prints, only
    that very file is read.
    """
    return estimator_of(*archive.read(path, sha256))


def estimator_of(model: Model, draws: AnyPosterior | None) -> Estimator | Posterior:
    """Return the fitted estimator of a stored model, or the posterior of stored draws."""
    kind = KINDS[model.recipe.kind]
    unknown = set(model.recipe.parameters) - set(kind().get_params(deep=False))
    if unknown:
        raise ModelFormatError("parameters", f"{kind.__name__} has no parameters {sorted(unknown)}")
    try:  # what a file cannot hold, a user's sampler say, comes back as None
        check_parameters({name: v for name, v in model.recipe.parameters.items() if v is not None})
    except ValueError as error:
        raise ModelFormatError("parameters", str(error)) from error
    estimator = kind(**model.recipe.parameters)
    estimator._adopt(model)
    if draws is None:
        return estimator
    return Posterior(ChainSource(estimator, fitted=draws.plan.kind == "laplace"), draws)
