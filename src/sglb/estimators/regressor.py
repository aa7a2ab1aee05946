"""Numbers to predict."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from sglb.distributions import Distribution, Quantiles
from sglb.estimators.base import Array, ChainEstimator, Floats
from sglb.estimators.conformal import ConformalRegressor
from sglb.estimators.constructor import keep
from sglb.estimators.cross_conformal import CrossConformalRegressor
from sglb.estimators.fitted import in_shape, raw_of
from sglb.frame import read_numbers
from sglb.losses import LOSSES, Loss, get_loss
from sglb.model import Model
from sglb.samplers import Sampler
from sglb.schedules import Scheduled
from sglb.target import Target
from sglb.uncertainty import Uncertainty, of_means, of_moments


class SGLBRegressor(RegressorMixin, ChainEstimator):  # type: ignore[misc]
    """Stochastic gradient Langevin boosting for numbers.

    Parameters are those of `SGLBClassifier` without `class_weight`, and

    loss : "squared" (mean), "absolute" (median), "quantile", "huber", "poisson" (counts), "gamma"
        (positive amounts), "tweedie" (amounts many of which are 0), "cauchy" or "welsch" (robust),
        an object of `sglb.losses`, or any object with loss(y, raw) and gradient(y, raw). Widths of
        losses are in spreads of y, unless an object has absolute=True.
    quantile : level of loss="quantile", between 0 and 1; None is .5, the median. A list of
        increasing levels, such as [.05, .5, .95], gives one model of several quantiles that never
        cross: `predict` returns them as (n_rows, n_levels).
    tweedie_power : of loss="tweedie", between 1 (as poisson) and 2 (as gamma): the variance of y is
        proportional to mean^power; None is 1.5.
    """

    _kind = "regressor"
    quantile: float | Sequence[float] | None
    tweedie_power: float | None

    def __init__(
        self,
        *,
        loss: Any = "squared",
        quantile: float | Sequence[float] | None = None,
        tweedie_power: float | None = None,
        n_estimators: int | str = "auto",
        learning_rate: Scheduled = "auto",
        max_depth: int | str = "auto",
        max_bins: int | str = "auto",
        sampler: str | Sampler = "langevin",
        temperature: Scheduled = "auto",
        shrink_rate: Scheduled = "auto",
        friction: float | str = "auto",
        structure_noise: float = 1.0,
        subsample: float = 1.0,
        structure_sample: float | str = "auto",
        random_strength: str | float = "auto",
        leaf_method: str = "auto",
        leaf_steps: int | str = "auto",
        l2_regularization: float | str = "auto",
        init: str = "mean",
        categorical_features: Any = "from_dtype",
        n_chains: int = 1,
        uncertainty: bool = False,
        early_stopping_rounds: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    def _read_target(self, y: Any, weight: Floats, training: Target | None = None) -> Target:
        return Target.of(read_numbers(self, y, len(weight)), weight)

    def _choose_loss(self, classes: Array) -> Loss:
        level = self._parameter_of("quantile", "quantile", "level")
        power = self._parameter_of("tweedie_power", "tweedie", "power")
        is_name = isinstance(self.loss, str) and self.loss in LOSSES
        kind: Loss | type[Loss] = LOSSES[self.loss] if is_name else get_loss(self.loss)
        if kind.task == "ranking":
            raise ValueError(f"loss={kind.name!r} is for rankings; use SGLBRanker")
        if kind.task != "regression":
            raise ValueError(f"loss={kind.name!r} is for classification; use SGLBClassifier")
        return get_loss(self.loss, **level, **power)

    def _parameter_of(self, parameter: str, loss: str, name: str) -> dict[str, Any]:
        """Return a parameter that goes with a single loss by its name there, nothing if None."""
        value = getattr(self, parameter)
        if value is None:
            return {}
        if not (isinstance(self.loss, str) and self.loss == loss):
            raise ValueError(
                f"{parameter}={value!r} is the {name} of loss={loss!r}, and loss is"
                f" {self.loss!r}; leave it at None"
            )
        return {name: value if np.ndim(value) else float(value)}

    def _predict_from(self, raw: Floats) -> Floats:
        return raw if self.loss_ is None else self.loss_.link(raw)

    def predict(self, X: Any, return_std: bool = False, *, n_estimators: int | None = None) -> Any:
        """Return the prediction of each row; of several quantiles (n_rows, n_levels).

        With `n_estimators` the prediction after so many steps.

        With `return_std` also the standard deviation of an outcome about its prediction, which
        needs uncertainty=True.
        """
        if not return_std:
            return self._after(n_estimators)._predictions(X)
        if n_estimators is not None:
            raise ValueError("return_std=True needs the whole model; leave out n_estimators")
        return self._predictions(X), self.predict_distribution(X).std

    def predict_distribution(self, X: Any) -> Distribution:
        """Return the distribution of y in each row: mean, std, ppf, cdf, logpdf, sample, crps.

        Learned from rows that a chain had not seen, so that it covers the error of the prediction
        as well as the noise of y. Needs uncertainty=True at fit and a loss that a law goes with:
        "squared" (Student's, with a scale for each row), "poisson", "gamma", "tweedie". Of several
        quantiles the distribution that has them, linear in between, after any fit.
        """
        model = self._fitted()
        outcomes, loss = model.outcomes, model.recipe.loss
        if loss is not None and len(loss.levels) > 1:
            return Quantiles(loss.levels, self._predictions(X))
        if outcomes is None:
            raise ValueError(reason_without_outcomes(model))
        log_scale = np.zeros(1)
        if outcomes.scale is not None:
            scale = outcomes.scale.final
            log_scale = self._compute(X, lambda values, n: (raw_of(scale, values, n),))[0]
        return outcomes.distribution(self._predictions(X), log_scale)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return an interval of y in each row, (n_rows, 2), that holds it with this probability."""
        return self.predict_distribution(X).interval(coverage)

    def predict_quantiles(self, X: Any, levels: Any) -> Floats:
        """Return quantiles of y in each row, (n_rows, n_levels); they never cross."""
        return self.predict_distribution(X).quantiles(levels)

    def conformalize(
        self, X: Any, y: Any, *, upper: "SGLBRegressor | None" = None
    ) -> ConformalRegressor:
        """Return intervals of guaranteed coverage, by calibration rows this model has not seen.

            intervals = model.conformalize(X_calibration, y_calibration).predict_interval(X, .9)

        They are prediction +- a multiple of the predictive scale after a fit with uncertainty=True,
        of one width otherwise. With `upper`, a model of a higher quantile than that of this one,
        they are conformalised quantiles (CQR), as for one model of several quantiles between its
        lowest and its highest. The guarantee is marginal: on average over rows.
        """
        self._fitted()
        return ConformalRegressor(self, X, y, upper)

    def cross_conformalize(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> CrossConformalRegressor:
        """Return intervals of guaranteed coverage without rows set aside (CV+).

            intervals = model.cross_conformalize(X, y).predict_interval(X_new, .9)

        Five clones of this estimator, fitted or not, are each fitted without a fold of the rows,
        which takes five times as long as a fit. With uncertainty=True the predictive scale of each
        clone makes intervals as wide as y is uncertain in a row. Weights count in the fits; in the
        calibration all rows count alike, because the guarantee is for rows like these.
        """
        return CrossConformalRegressor(self, X, y, sample_weight)

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Yield the predictions after each step."""
        for raw in self.staged_predict_raw(X):
            yield self._predict_from(raw)

    def predict_uncertainty(self, X: Any, n_states: int = 10) -> Uncertainty:
        """Return mean, knowledge, data and total uncertainty (variances) of each row.

        If fit had uncertainty=True, `knowledge` is the variance of the prediction over draws of the
        posterior, `total` the variance of y about its prediction, learned out of fold, and `data`
        the rest of it; for losses without a distribution of y, `data` and `total` are None.

        Else `knowledge` is the variance over up to `n_states` states of the second half of the
        chain, which are draws only of a chain with leaf_method="gradient" at the temperature that
        makes loss / temperature minus a log likelihood, and that lasts many times
        1 / (learning_rate * shrink_rate) steps; a warning says where they cannot be. `data` is then
        one number for all rows, the mean squared residual of the training rows, which is too small
        where the chain has fitted its training rows closely.
        """
        if self._fitted().posterior is not None:
            return self._fitted_posterior().uncertainty(X)
        states, link = self._several_states(n_states), self._core_link()
        noise_variance = self._model.residual_variance
        if link is None:
            return of_means(self._draws(X, states), noise_variance)
        name, parameter = link.name, link.parameter
        mean, knowledge = self._compute(
            X, lambda values, threads: states.moments(values, name, parameter, threads)
        )
        return of_moments(in_shape(mean), in_shape(knowledge), noise_variance)


def reason_without_outcomes(model: Model) -> str:
    """Return why a model does not know how y is distributed, and what to do."""
    loss = model.recipe.loss
    if loss is None or loss.law is None:
        name = "of the user" if loss is None else repr(loss.name)
        laws = [repr(loss_name) for loss_name, kind in LOSSES.items() if isinstance(kind.law, str)]
        return (
            f"loss {name} has no distribution of y, and so no interval: fit with uncertainty=True"
            f" and one of loss={', '.join(laws)}, or with loss='quantile', quantile=[0.05, 0.5,"
            " 0.95]; or use conformalize(X_calibration, y_calibration).predict_interval(X)"
        )
    return (
        "this model does not know how y is distributed about its predictions: fit it with"
        " uncertainty=True, which takes up to five more chains"
    )
