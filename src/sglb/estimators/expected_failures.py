"""Which of scikit-learn's checks an estimator fails by design, and why."""

from typing import Any

from sglb.losses import LOSSES, Loss
from sglb.samplers import SAMPLERS
from sglb.schedules import extremes_of, read_schedule
from sglb.settings import check_parameters

# scikit-learn has no tag for these: an estimator cannot carry them itself.
WEIGHTS_CHECK = "check_sample_weight_equivalence_on_dense_data"
CLASS_WEIGHTS_CHECK = "check_class_weight_classifiers"

NOISE = (
    "noise and samples are drawn by row number: a row of weight 2 and two equal rows give models "
    "that are equal in distribution only; with sampler='plain' they are the same"
)
EVEN_ODDS = (
    "a chain that starts at even odds, or has much noise, does not follow a class of nearly no "
    "weight within a few steps; from the log-odds (init='mean') and without noise it does"
)

# From here on noise is more than a correction: the automatic value of losses that are not convex.
MUCH_NOISE = 1e-3


def sklearn_expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the checks of scikit-learn that an estimator may fail by design, with reasons.

    For `sklearn.utils.estimator_checks`:

        check_estimator(model, expected_failed_checks=sglb.sklearn_expected_failed_checks(model))
        parametrize_with_checks(models, expected_failed_checks=sglb.sklearn_expected_failed_checks)
    """
    check_parameters(estimator.get_params(deep=False))
    expected = {}
    if _draws_by_row(estimator):
        expected[WEIGHTS_CHECK] = NOISE
    if hasattr(estimator, "class_weight") and (_starts_at_zero(estimator) or _is_hot(estimator)):
        expected[CLASS_WEIGHTS_CHECK] = EVEN_ODDS
    return expected


def _draws_by_row(estimator: Any) -> bool:
    """Whether the model depends on the order of its rows."""
    sampler, subsample = estimator.sampler, estimator.subsample
    if isinstance(sampler, str):
        is_noisy = SAMPLERS[sampler].is_noisy and estimator.temperature != 0
    else:
        move = sampler.move(0)
        is_noisy, subsample = move.noise > 0.0, move.subsample
    whole_structure = estimator.structure_sample == "auto" or (
        isinstance(estimator.structure_sample, float) and estimator.structure_sample == 1.0
    )
    # "auto" adds noise to the scores only of a chain that is noisy anyway.
    noisy_scores = estimator.random_strength not in ("auto", 0)
    return is_noisy or subsample < 1.0 or not whole_structure or noisy_scores


def _loss_of(estimator: Any) -> Any:
    """Return the loss object or, of a loss by name, its class; "auto" is like any other."""
    spec = estimator.loss
    return LOSSES.get(spec, Loss) if isinstance(spec, str) else spec


def _starts_at_zero(estimator: Any) -> bool:
    """Whether the first score of a classifier is 0 whatever the classes weigh."""
    loss = _loss_of(estimator)
    at_zero = getattr(loss, "starts_at_zero", not hasattr(loss, "init"))
    return estimator.init == "zero" or at_zero


def _is_hot(estimator: Any) -> bool:
    """Whether there is so much noise that it carries the chain over barriers."""
    if not isinstance(estimator.sampler, str):
        return True
    if not SAMPLERS[estimator.sampler].is_noisy:
        return False
    if estimator.temperature != "auto":
        return extremes_of(read_schedule(estimator.temperature, "temperature"))[1] >= MUCH_NOISE
    return not getattr(_loss_of(estimator), "convex", False)
