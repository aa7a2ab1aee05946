"""SGLBClassifier and SGLBRegressor: scikit-learn manners around the chain, no algorithm."""

from pathlib import Path

from sglb import archive
from sglb.errors import ModelFormatError
from sglb.estimators.classifier import SGLBClassifier
from sglb.estimators.expected_failures import sklearn_expected_failed_checks
from sglb.estimators.regressor import SGLBRegressor
from sglb.settings import check_parameters

__all__ = ["SGLBClassifier", "SGLBRegressor", "load", "sklearn_expected_failed_checks"]


def load(path: str | Path) -> SGLBClassifier | SGLBRegressor:
    """Read a fitted estimator from a file written by `save`."""
    model = archive.read(path)
    kind = SGLBClassifier if model.recipe.kind == "classifier" else SGLBRegressor
    unknown = set(model.recipe.parameters) - set(kind().get_params(deep=False))
    if unknown:
        raise ModelFormatError("parameters", f"{kind.__name__} has no parameters {sorted(unknown)}")
    try:  # what a file cannot hold, a user's sampler say, comes back as None
        check_parameters({name: v for name, v in model.recipe.parameters.items() if v is not None})
    except ValueError as error:
        raise ModelFormatError("parameters", str(error)) from error
    return kind(**model.recipe.parameters)._adopt(model)
