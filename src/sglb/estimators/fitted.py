"""A fitted estimator: every prediction is a way to read its model."""

from collections.abc import Callable, Iterator
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sglb import archive
from sglb.diagnostics import LEAST_DRAWS, rhat
from sglb.errors import warn
from sglb.frame import Features, read_features
from sglb.held import HeldNumbers
from sglb.losses import UserLoss
from sglb.losses.links import IDENTITY, Link
from sglb.losses.shapes import user_shape
from sglb.model import Model, Scores
from sglb.posterior import AnyPosterior, chains_of_draws, drawn_states, warn_if_not_draws
from sglb.settings import check_parameters, n_threads
from sglb.trace import States, Trace, mean_raw

Array = NDArray[Any]
Floats = NDArray[np.float64]


class FittedChain(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What an estimator does with its model: raw scores, predictions, states, storage."""

    _model: Model
    n_jobs: int | None

    def _adopt(self, model: Model) -> Self:
        """Become the fitted estimator of a model."""
        self._model = model
        recipe, settings = model.recipe, model.recipe.settings
        self.trace_ = model.traces[0]
        self.loss_ = recipe.loss
        self.n_features_in_ = recipe.encoding.n_columns
        if recipe.feature_names is not None:
            self.feature_names_in_ = np.array(recipe.feature_names, dtype=object)
        if len(recipe.classes):
            self.classes_ = recipe.classes
        self.n_iter_ = model.n_steps
        self.best_iteration_ = model.record.best_iteration
        self.best_score_ = model.record.best_score
        self.evals_result_ = model.record.evals_result
        self.learning_rate_ = settings.learning_rate
        self.temperature_ = settings.temperature
        self.shrink_rate_ = settings.shrink_rate
        self.leaf_method_ = settings.leaves.method
        self.inverse_temperature_ = recipe.inverse_temperature
        self.feature_importances_ = model.feature_importances
        return self

    def __getitem__(self, steps: slice) -> Self:
        """Return the model after its first k steps, `model[:k]`: exactly the iterate it was then.

        Of sampler="tempering", the chain that was the coldest after step k, as in `evals_result_`;
        `swap_rates_` stay those of the whole run.
        Error bars of a fit with uncertainty=True belong to the last step and are left out.
        """
        if not isinstance(steps, slice) or steps.start or steps.step not in (None, 1):
            raise TypeError("a model can only be sliced from its first step: model[:k]")
        model = self._fitted()
        n_steps = slice(steps.stop).indices(model.n_steps)[1]
        if n_steps < 1:
            raise ValueError(f"model[:{steps.stop}] has no steps; the model has {model.n_steps}")
        return self._of(model.first(n_steps))

    def _of(self, model: Model) -> Self:
        """Return an estimator with the same parameters of another model."""
        return type(self)(**self.get_params(deep=False))._adopt(model)

    def _after(self, n_estimators: int | None) -> Self:
        """Return the model after its first steps, the model itself for None."""
        if n_estimators is None:
            return self
        n_steps = self._fitted().n_steps
        is_count = isinstance(n_estimators, Integral) and not isinstance(n_estimators, bool)
        if not (is_count and 1 <= n_estimators <= n_steps):
            raise ValueError(
                f"n_estimators={n_estimators!r} is not allowed; use 1 to {n_steps}, the steps of"
                " the model"
            )
        return self[:n_estimators]

    def _fitted(self) -> Model:
        """Return the model, or raise scikit-learn's error if there is none."""
        if "_model" not in self.__dict__:  # the check takes as long as a row's prediction
            check_is_fitted(self)
        return self._model

    @property
    def traces_(self) -> tuple[Trace, ...]:
        """The trace of each chain; `trace_` is the first."""
        return self._fitted().traces

    @property
    def best_iterations_(self) -> list[int | None]:
        """Best iteration of each chain by its own scores, as `best_iteration_` of a single one."""
        return [record.best_iteration for record in self._fitted().chain_records]

    @property
    def chain_evals_results_(self) -> list[Scores]:
        """Scores of each chain after all its steps, in the form of `evals_result_`."""
        return [record.evals_result for record in self._fitted().chain_records]

    @property
    def swap_rates_(self) -> list[float] | None:
        """Of sampler="tempering", how often neighbours exchanged their temperatures.

        Shares of the exchanges that were tried, the coldest pair first; None of other samplers.
        """
        exchange = self._fitted().exchange
        return None if exchange is None else list(exchange.swap_rates)

    @property
    def is_categorical_(self) -> NDArray[np.bool_]:
        """Mask of the columns that are categorical, (n_features_in_,)."""
        return self._fitted().recipe.encoding.is_categorical.copy()

    @property
    def is_text_(self) -> NDArray[np.bool_]:
        """Mask of the categorical columns whose levels are text and not all numbers."""
        return self._fitted().recipe.encoding.is_text

    def _read(self, X: Any, threads: int) -> Features:
        """Read rows to predict."""
        model = self._fitted()
        mask = None if model.recipe.encoding.is_numeric else model.recipe.encoding.is_categorical
        return read_features(
            self, X, reset=False, categorical=mask, n_threads=threads, layout=model.layout
        )

    def _compute(
        self, X: Any, kernel: Callable[[Array, int], tuple[Floats, ...]]
    ) -> tuple[Floats, ...]:
        """Return what a kernel of (values, threads) makes of X: arrays of one row for each of X.

        Rows with categorical columns are encoded, and computed, block by block.
        """
        threads = n_threads(self.n_jobs)
        features, encoding = self._read(X, threads), self._model.recipe.encoding
        values = features.values
        if encoding.is_numeric and not isinstance(values, HeldNumbers):
            return kernel(features.matrix(), threads)  # blocks take a seventh of a row's prediction
        blocks = encoding.blocks(features, threads)
        parts = [kernel(values, threads) for _, values in blocks]
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))

    def predict_raw(self, X: Any, n_estimators: int | None = None) -> Floats:
        """Return raw scores, (n_rows,) or with several outputs (n_rows, n_outputs).

        Of several chains, the mean of their raw scores. With `n_estimators`, here and in other
        predictions, those after so many steps, where a chain that has fewer stays at its end.
        """
        final = self._after(n_estimators)._fitted().final
        return self._compute(X, lambda values, threads: (raw_of(final, values, threads),))[0]

    def predict_raw_chains(self, X: Any) -> Floats:
        """Return the raw scores of each chain, (n_chains, n_rows) or (n_chains, n_rows, n_outputs).

        Their mean is `predict_raw`, up to rounding.
        """
        finals = self._fitted().finals

        def raw_scores(values: Array, threads: int) -> tuple[Floats, ...]:
            return tuple(user_shape(raw) for raw in finals.predict(values, threads))

        return np.stack(self._compute(X, raw_scores))

    def chain_rhat(self, X: Any, n_states: int = 50) -> Floats:
        """Return R-hat of the raw scores over the chains, (n_rows,) or (n_rows, n_outputs).

        Chains are compared by up to `n_states` states of the second half of each, and halves of
        that with one another: near 1 where chains differ by no more than their own states do, which
        samples of a law must. Chains that are trained to an optimum have no law; there a large
        value says that the mean of several chains is another model than each of them. NaN where all
        scores are equal.
        """
        check_parameters({"n_states": n_states})
        model = self._fitted()
        n_chains = len(model.traces)
        numbers = [steps.tolist() for steps in drawn_states(model, n_states)]
        if model.exchange is None:
            n_each = min(map(len, numbers))
            numbers = [steps[-n_each:] for steps in numbers]
        else:
            n_each = sum(map(len, numbers))
        if n_each < LEAST_DRAWS:
            raise ValueError(
                f"R-hat needs {LEAST_DRAWS} states of each chain, and one has {n_each} in its"
                " second half: use more n_states, or longer chains"
            )
        states = States.of(chains_of_draws(model), numbers)
        # Draws of chains that exchange temperatures are a single series, in the order of time.
        order = np.argsort(np.concatenate(numbers)) if model.exchange else slice(None)

        def rhat_of(values: Array, threads: int) -> tuple[Floats, ...]:
            raw = states.predict(values, threads)[order]
            values_by_output = rhat(raw.reshape(n_chains, n_each, -1))
            return (user_shape(values_by_output.reshape(raw.shape[1:])),)

        return self._compute(X, rhat_of)[0]

    def _predictions(self, X: Any) -> Floats:
        """Return predictions of rows, in one go where the core has the link."""
        link = self._core_link()
        if link is None:
            return self._predict_from(self.predict_raw(X))
        final, name, parameter, n = (
            self._fitted().final,
            link.name,
            link.parameter,
            self._n_columns(),
        )
        predictions = self._compute(
            X, lambda values, threads: (final.linked(values, name, parameter, n, threads),)
        )
        return in_shape(predictions[0])

    def _core_link(self) -> Link | None:
        """Return the link from raw scores to predictions, None where the core does not have it.

        A single class is certain whatever its raw score. Without a loss, which a file may lack,
        numbers are predicted by their raw scores and classes have no probabilities.
        """
        recipe = self._fitted().recipe
        if len(recipe.classes) == 1:
            return None
        if recipe.loss is None:
            return None if len(recipe.classes) else IDENTITY
        link = recipe.loss.link
        return link if isinstance(link, Link) else None

    def row_predictor(self) -> Callable[[Any], Any]:
        """Return a function of one row for low latency.

        The row is a vector or a list of n_features_in_ numbers; for a model with categorical
        columns, of numbers and levels. The function returns what `predict_proba` (a regressor:
        `predict`) returns for that row in a few microseconds, less for a vector than for a list:
        the model is prepared once, one thread is used, and of the row only length and type are
        checked, so that infinity is taken for a very large number.
        """
        model = self._fitted()
        final = model.final
        encode = model.recipe.encoding.row_encoder()
        link, n_columns = self._core_link(), self._n_columns()
        if link is None:
            return lambda row: self._predict_from(user_shape(final.predict(encode(row))[0]))[0]
        name, parameter = link.name, link.parameter

        def predict_row(row: Any) -> Any:
            return in_shape(final.linked(encode(row), name, parameter, n_columns))[0]

        return predict_row

    def _predict_from(self, raw: Floats) -> Floats:
        """Turn raw scores into probabilities or, in regression, predictions."""
        raise NotImplementedError

    def _n_columns(self) -> int:
        """Predictions of a row: probabilities of classes, or numbers."""
        model = self._fitted()
        return len(model.recipe.classes) or len(model.recipe.offset)

    def _codes(self, X: Any) -> tuple[NDArray[np.uint8], int]:
        """Return the codes of rows, (n_features, n_rows), and the number of threads."""
        threads = n_threads(self.n_jobs)
        features, recipe = self._read(X, threads), self._model.recipe
        return recipe.encoding.codes(features, recipe.bins, threads), threads

    def staged_predict_raw(self, X: Any) -> Iterator[Floats]:
        """Yield the raw scores of the chain after each step.

        Of several chains, the mean after the same number of steps of each; one that has ended stays
        where it is. Of sampler="tempering", those of the chain that was the coldest after the step.
        """
        (columns, threads), model = self._codes(X), self._fitted()
        chains = chains_of_draws(model)
        states = [chain.start(columns.shape[1]) for chain in chains]
        for step in range(model.n_steps):
            for chain, state in zip(chains, states, strict=True):
                if step < len(chain):
                    chain.advance(columns, state, step, threads)
            shown = states
            if model.exchange is not None:
                shown = [states[int(np.argmin([chain.temperatures[step] for chain in chains]))]]
            yield user_shape(mean_raw(shown))

    def _several_states(self, n_states: int) -> States:
        """Return the states of the chains that serve as their draws."""
        model = self._fitted()
        check_parameters({"n_states": n_states})
        warn_if_not_draws(model)
        numbers = [steps.tolist() for steps in drawn_states(model, n_states)]
        return States.of(chains_of_draws(model), numbers)

    def _draws(self, X: Any, states: States) -> Floats:
        """Return the predictions of several states, one traversal for all."""

        def predictions(values: Array, threads: int) -> tuple[Floats, ...]:
            return tuple(
                self._predict_from(user_shape(raw)) for raw in states.predict(values, threads)
            )

        return np.stack(self._compute(X, predictions))

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, whole or not at all; `sglb.load` reads it.

        A loss of your own is code and not in the file: a classifier then has `decision_function`
        and `predict`, but no probabilities. Pickle keeps it, where the loss can be imported.
        """
        write_model(self._fitted(), path)


def in_shape(predictions: Floats) -> Floats:
    """Return predictions (n_rows, n_columns) as users see them: a single number as (n_rows,)."""
    return predictions[:, 0] if predictions.shape[1] == 1 else predictions


def write_model(model: Model, path: str | Path, draws: AnyPosterior | None = None) -> None:
    """Write a model, with draws or without, to a file; warn of what the file cannot hold."""
    loss = model.recipe.loss
    if isinstance(loss, UserLoss) and callable(getattr(loss.user, "link", None)):
        warn(
            f"the link of loss '{loss.name}' is code and not in the file: predictions of the"
            " loaded model are raw scores; pickle keeps it",
        )
    archive.write(model, path, draws)


def raw_of(states: States, values: Array, threads: int) -> Floats:
    """Return the raw scores of a single state as users see them."""
    return user_shape(states.predict(values, threads)[0])
