"""What both estimators share: parameters, fit, raw scores, storage.

`fit` walks the rooms in the data's order, frame -> settings -> bins -> training set -> loop, and
keeps a `Model`; every prediction is a way to read that model.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sglb import archive
from sglb.bins import Bins
from sglb.boosting import LeafRule, boost
from sglb.callbacks import Callback, EarlyStopping, EvaluationSet, History, Progress, user_shape
from sglb.ensemble import Ensemble, States
from sglb.frame import read_features, read_numbers, read_weight
from sglb.losses import Loss, UserLoss
from sglb.losses.links import Link
from sglb.losses.minimisers import spread
from sglb.metrics import Metric, MetricSpec, get_metric
from sglb.model import Kind, Model
from sglb.posterior import virtual_states
from sglb.samplers import Sampler
from sglb.settings import Settings, Size, check_parameters, n_threads, resolve
from sglb.structure import GreedySearch
from sglb.training_set import TrainingSet, weight_unit

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Losses whose prediction is the mean of y, so that residuals have a variance about it.
MEAN_LOSSES = ("squared", "poisson")


class Rows(NamedTuple):
    """Training rows as read: features, target as numbers, weights, classes behind the numbers."""

    values: Array
    target: Floats
    weight: Floats | None
    classes: Array | None

    @property
    def total_weight(self) -> float:
        """The N of the theory."""
        return float(len(self.values) if self.weight is None else self.weight.sum())

    @property
    def task(self) -> str:
        """What metrics may be asked for."""
        if self.classes is None:
            return "regression"
        return "binary" if len(self.classes) <= 2 else "multiclass"


class ChainEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """An estimator whose fit runs a chain."""

    _kind: ClassVar[Kind]
    _model: Model

    def __init__(
        self,
        *,
        loss: Any = "squared",
        n_estimators: int = 1000,
        learning_rate: float | str = "auto",
        max_depth: int = 6,
        max_bins: int = 64,
        sampler: str | Sampler = "langevin",
        temperature: float | str = "auto",
        shrink_rate: float | str = "auto",
        subsample: float = 1.0,
        structure_sample: float | str = "auto",
        random_strength: float = 0.0,
        leaf_method: str = "auto",
        l2_regularization: float | str = "auto",
        init: str = "auto",
        categorical_features: str | None = "from_dtype",
        early_stopping_rounds: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.sampler = sampler
        self.temperature = temperature
        self.shrink_rate = shrink_rate
        self.subsample = subsample
        self.structure_sample = structure_sample
        self.random_strength = random_strength
        self.leaf_method = leaf_method
        self.l2_regularization = l2_regularization
        self.init = init
        self.categorical_features = categorical_features
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Sequence[tuple[Any, ...]] | None = None,
        X_val: Any = None,
        y_val: Any = None,
        eval_metric: MetricSpec | Sequence[MetricSpec] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train a chain on X (n_rows, n_features) and y.

        `sample_weight` are multiplicities: weight 2 is a row that is there twice. `eval_set` is a
        list of (X, y) or (X, y, weight); X_val, y_val is one more such set. `eval_metric` is one
        metric or several, a name or a function of (y, prediction); without it, the mean loss.
        Early stopping watches the first metric on the last set. `callbacks` look on after each
        step and may end the chain (`sglb.callbacks`).
        """
        parameters = self.get_params(deep=False)
        check_parameters(parameters)
        rows = self._read_rows(X, y, sample_weight)
        loss = self._choose_loss(rows.classes)
        if isinstance(self.loss, str) and rows.classes is None:  # by name: adapts to the unit of y
            loss = loss.scaled(spread(rows.target, rows.weight))
        loss.check_target(rows.target)
        best = loss.init(rows.target, rows.weight)
        settings = resolve(parameters, loss, _size(rows, loss, best))
        threads = settings.n_threads
        bins = Bins.fit(rows.values, self.max_bins, seed=settings.seed, n_threads=threads)
        sets = self._evaluation_sets(eval_set, X_val, y_val, rows.classes, bins, threads)
        history = History(sets, _metrics(eval_metric, rows.task), threads)
        start = np.zeros_like(best) if self.init == "zero" else best
        chain = Ensemble(bins, self.max_depth, start)
        ensemble = self._run(rows, loss, settings, chain, history, callbacks)
        best_iteration, best_score = history.best() if sets else (None, None)
        if self.early_stopping_rounds is not None and best_iteration is not None:
            ensemble = ensemble.at(best_iteration)
        names = getattr(self, "feature_names_in_", None)
        model = Model(
            kind=self._kind,
            parameters=parameters,
            loss=loss,
            ensemble=ensemble,
            classes=rows.classes,
            feature_names=None if names is None else list(names),
            feature_dtype=rows.values.dtype.name,
            learning_rate=settings.learning_rate,
            temperature=settings.temperature,
            shrink_rate=settings.shrink_rate,
            leaf_method=settings.leaf_method,
            total_weight=rows.total_weight,
            seed=settings.seed,
            residual_variance=_residual_variance(rows, loss, ensemble, threads),
            best_iteration=best_iteration,
            best_score=best_score,
            evals_result=history.result,
        )
        return self._adopt(model)

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Read the training rows; a row of weight zero is not there."""
        values = read_features(self, X, reset=True)
        target, classes = self._learn_target(y, len(values))
        weight = self._row_weight(read_weight(sample_weight, values), target, classes)
        if weight is not None and not weight.all():
            there = weight > 0.0
            values, target, weight = values[there], target[there], weight[there]
        return Rows(values, target, weight, classes)

    def _learn_target(self, y: Any, n_rows: int) -> tuple[Floats, Array | None]:
        """Return the target as numbers and, if there are classes, the classes they stand for."""
        return read_numbers(self, y, n_rows), None

    def _row_weight(
        self, weight: Floats | None, target: Floats, classes: Array | None
    ) -> Floats | None:
        """Return the weight of each row."""
        return weight

    def _choose_loss(self, classes: Array | None) -> Loss:
        raise NotImplementedError

    def _evaluation_sets(
        self,
        eval_set: Sequence[tuple[Any, ...]] | None,
        X_val: Any,
        y_val: Any,
        classes: Array | None,
        bins: Bins,
        threads: int,
    ) -> list[EvaluationSet]:
        """Read the evaluation sets; they are named validation_0, validation_1, ..."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together; one of them is missing")
        given = list(eval_set or ()) + ([] if X_val is None else [(X_val, y_val)])
        sets = []
        for place, one in enumerate(given):
            name = f"validation_{place}"
            if not isinstance(one, tuple | list) or len(one) not in (2, 3):
                raise ValueError(f"eval_set[{place}] must be (X, y) or (X, y, weight)")
            values = read_features(self, one[0], reset=False)
            if not len(values):
                raise ValueError(f"eval_set[{place}] has no rows")
            target = self._same_target(one[1], len(values), classes)
            weight = read_weight(one[2] if len(one) == 3 else None, values, f"weight of {name}")
            sets.append(EvaluationSet(name, bins.encode(values, threads), target, weight))
        if self.early_stopping_rounds is not None and not sets:
            raise ValueError(
                f"early_stopping_rounds={self.early_stopping_rounds} needs rows to watch: give fit "
                "an eval_set=[(X, y)] or X_val= and y_val="
            )
        return sets

    def _same_target(self, y: Any, n_rows: int, classes: Array | None) -> Floats:
        """Return the target of an evaluation set in the numbers of the training target."""
        return self._learn_target(y, n_rows)[0]

    def _run(
        self,
        rows: Rows,
        loss: Loss,
        settings: Settings,
        chain: Ensemble,
        history: History,
        callbacks: Sequence[Callback],
    ) -> Ensemble:
        """Run the chain with its guests."""
        threads, bins = settings.n_threads, chain.bins
        rule = GreedySearch(
            self.max_depth,
            l2=settings.l2,
            newton=settings.leaf_method == "newton",
            structure_rows=settings.structure_rows,
            random_strength=self.random_strength,
            n_threads=threads,
        )
        columns = bins.encode(rows.values, threads)
        guests: list[Callback] = [history] if history.sets else []
        if self.early_stopping_rounds is not None:
            guests.append(EarlyStopping(history, self.early_stopping_rounds))
        guests.extend(_checked(callbacks))
        with ExitStack() as stack:
            if self.verbose:
                guests.append(stack.enter_context(closing(Progress(self.n_estimators, history))))
            return boost(
                TrainingSet.build(columns, bins.n_codes, rows.target, rows.weight, threads),
                loss,
                settings.sampler,
                rule,
                LeafRule(settings.leaf_method, settings.l2),
                chain,
                n_steps=self.n_estimators,
                seed=settings.seed,
                n_threads=threads,
                callbacks=guests,
            )

    def _adopt(self, model: Model) -> Self:
        """Become the fitted estimator of a model."""
        self._model = model
        self.ensemble_ = model.ensemble
        self.loss_ = model.loss
        self.n_features_in_ = model.ensemble.n_features
        if model.feature_names is not None:
            self.feature_names_in_ = np.array(model.feature_names, dtype=object)
        if model.classes is not None:
            self.classes_ = model.classes
        self.n_iter_ = len(model.ensemble)
        self.best_iteration_ = model.best_iteration
        self.best_score_ = model.best_score
        self.evals_result_ = model.evals_result
        self.learning_rate_ = model.learning_rate
        self.temperature_ = model.temperature
        self.shrink_rate_ = model.shrink_rate
        self.leaf_method_ = model.leaf_method
        self.inverse_temperature_ = model.inverse_temperature
        self.feature_importances_ = model.feature_importances
        return self

    def predict_raw(self, X: Any) -> Floats:
        """Return raw scores, (n_rows,) or with several outputs (n_rows, n_outputs)."""
        model = self._fitted()
        values = read_features(self, X, reset=False)
        return user_shape(model.final.predict(values, n_threads(self.n_jobs))[0])

    def _fitted(self) -> Model:
        """Return the model, or raise scikit-learn's error if there is none."""
        if "_model" not in self.__dict__:  # the check takes as long as a row's prediction
            check_is_fitted(self)
        return self._model

    def _predict_answers(self, X: Any) -> Floats:
        """Return what `_answer` makes of the raw scores, in one go where the core knows how."""
        link = self._core_link()
        if link is None:
            return self._answer(self.predict_raw(X))
        model = self._fitted()
        values = read_features(self, X, reset=False)
        return self._in_shape(
            model.final.linked(
                values, link.name, link.parameter, self._n_columns(), n_threads(self.n_jobs)
            )
        )

    def _core_link(self) -> Link | None:
        """Return the link from raw scores to answers, None where Python has to see the scores."""
        model = self._fitted()
        link = None if model.loss is None else model.loss.link
        return link if isinstance(link, Link) else None

    def row_predictor(self) -> Callable[[Array], Any]:
        """Return a function of one row, a vector of n_features_in_ numbers, for low latency.

        It gives what `predict_proba` (a regressor: `predict`) gives for that row in a few
        microseconds: the model is prepared once, the row is not checked, one thread is used.
        """
        final = self._fitted().final
        link, n_columns = self._core_link(), self._n_columns()
        if link is None:
            return lambda row: self._answer(user_shape(final.predict(row.reshape(1, -1))[0]))[0]
        name, parameter, in_shape = link.name, link.parameter, self._in_shape

        def predict_row(row: Array) -> Any:
            return in_shape(final.linked(row.reshape(1, -1), name, parameter, n_columns))[0]

        return predict_row

    def _answer(self, raw: Floats) -> Floats:
        """Turn raw scores into probabilities or, in regression, predictions."""
        raise NotImplementedError

    def _n_columns(self) -> int:
        """Answers a row."""
        raise NotImplementedError

    def _in_shape(self, answers: Floats) -> Floats:
        """Return answers (n_rows, n_columns) as `_answer` would."""
        return answers

    def staged_predict_raw(self, X: Any) -> Iterator[Floats]:
        """Yield the raw scores of the chain after each step."""
        model = self._fitted()
        values = read_features(self, X, reset=False)
        for raw in model.ensemble.staged(values, n_threads(self.n_jobs)):
            yield user_shape(raw)

    def _several_states(self, X: Any, n_states: int) -> tuple[States, Array]:
        """Return the states of the chain that serve as its draws, and X as read."""
        ensemble = self._fitted().ensemble
        check_parameters({"n_states": n_states})
        values = read_features(self, X, reset=False)
        return ensemble.states(virtual_states(len(ensemble), n_states).tolist()), values

    def _draws(self, states: States, values: Array) -> Floats:
        """Return the answers of several states, one traversal for all."""
        raws = states.predict(values, n_threads(self.n_jobs))
        return np.stack([self._answer(user_shape(raw)) for raw in raws])

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, whole or not at all; `sglb.load` reads it."""
        archive.write(self._fitted(), path)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        model = state.pop("_model", None)
        if model is None:
            return state
        # Fitted attributes follow from the model, and the model travels as a model file does.
        kept = {name: value for name, value in state.items() if not name.endswith("_")}
        return kept | {"_bytes": archive.dumps(model)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        kept = dict(state)
        data = kept.pop("_bytes", None)
        super().__setstate__(kept)
        if data is None:
            return
        model = archive.loads(data)
        # A pickle, unlike a file, brings everything back: objects among the parameters too.
        known = {name: kept[name] for name in model.parameters if name in kept}
        model = replace(model, parameters=model.parameters | known)
        if model.loss is None and kept.get("loss") is not None:
            model = replace(model, loss=self._choose_loss(model.classes))
        self._adopt(model)


def _checked(callbacks: Sequence[Callback]) -> Sequence[Callback]:
    """Refuse what cannot be called after a step before the first step is taken."""
    for callback in callbacks:
        if not all(callable(getattr(callback, name, None)) for name in ("start", "step", "finish")):
            raise TypeError(
                f"{callback!r} is not a callback: it needs start, step and finish; derive it from "
                "sglb.BaseCallback to have them"
            )
    return callbacks


def _size(rows: Rows, loss: Loss, best: Floats) -> Size:
    """Return what the rules for "auto" ask of the data; `best` is the best constant raw score."""
    n_rows = len(rows.values)
    size = Size(n_rows, rows.total_weight, weight_unit(rows.weight))
    raw = user_shape(np.repeat(best[:, None], n_rows, axis=1))
    if rows.classes is None:
        square = np.square(loss.gradient(rows.target, raw)).reshape(n_rows, -1).sum(axis=1)
        size = replace(size, square=_average(square, rows.weight))
    if loss.has_hessian or not isinstance(loss, UserLoss):
        bend = np.abs(loss.hessian(rows.target, raw)).reshape(n_rows, -1).mean(axis=1)
        size = replace(size, curvature=_average(bend, rows.weight))
    return size


def _average(values: Floats, weight: Floats | None) -> float:
    return float(np.average(values, weights=weight))


def _metrics(spec: MetricSpec | Sequence[MetricSpec] | None, task: str) -> list[Metric]:
    """Return the metrics that eval_metric stands for; the mean loss without it."""
    if spec is None:
        spec = "loss"
    several = [spec] if isinstance(spec, str | Metric) or callable(spec) else list(spec)
    if not several:
        raise ValueError("eval_metric must name at least one metric")
    return [get_metric(one, task) for one in several]


def _residual_variance(rows: Rows, loss: Loss, ensemble: Ensemble, threads: int) -> float | None:
    """Weighted mean squared residual of the training rows, None if predictions are not means."""
    if loss.name not in MEAN_LOSSES or loss.task != "regression":
        return None
    prediction = loss.link(user_shape(ensemble.predict(rows.values, threads)))
    return _average((rows.target - prediction) ** 2, rows.weight)
