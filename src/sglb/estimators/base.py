"""What both estimators share: parameters and fit.

`fit` walks the rooms in the data's order, frame -> settings -> bins -> training set -> loop, and
keeps a `Model`, which `fitted` reads.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from sglb import archive
from sglb.boosting import boost
from sglb.callbacks import (
    Callback,
    EarlyStopping,
    EvaluationSet,
    History,
    Parameters,
    Progress,
    check_callbacks,
    say,
)
from sglb.chain import Chain
from sglb.ensemble import Ensemble
from sglb.estimators.constructor import check_names
from sglb.estimators.evaluation import EvalSets, Given, check_watched, list_sets
from sglb.estimators.fitted import FittedChain
from sglb.estimators.residuals import LastScores, residual_variance
from sglb.estimators.rows import Rows, encode_rows, warn_of_repeats
from sglb.folds import Fold, assign_folds, best_length
from sglb.frame import Features, read_features
from sglb.losses import Loss
from sglb.metrics import MetricSpec, get_metrics
from sglb.model import Kind, Model
from sglb.samplers import Annealed
from sglb.settings import Settings, check_parameters, n_threads, resolve
from sglb.shard import Shard
from sglb.structure import GreedySearch
from sglb.targets import read_numbers, read_weight
from sglb.training_set import TrainingSet

Array = NDArray[Any]
Floats = NDArray[np.float64]


class ChainEstimator(FittedChain):
    """An estimator whose fit runs a chain."""

    _kind: ClassVar[Kind]
    # Parameters that fit looks at itself; the constructors list them all.
    loss: Any
    random_strength: str | float
    init: str
    categorical_features: Any
    early_stopping_rounds: int | None
    verbose: int

    def __new__(cls, *arguments: Any, **parameters: Any) -> Self:
        """Reject an unknown parameter, with the nearest name there is."""
        check_names(cls, parameters)
        new: Self = super().__new__(cls)
        return new

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
        eval_set: EvalSets = None,
        X_val: Any = None,
        y_val: Any = None,
        eval_metric: MetricSpec | Sequence[MetricSpec] | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
        check_gradient: bool = True,
    ) -> Self:
        """Train a chain on X (n_rows, n_features) and y.

        `sample_weight` are multiplicities: weight 2 is a row that is there twice (exactly so
        without noise; with it in distribution, since each row has noise of its own). Weights with a
        mean below 1 are divided by it, so that weights which sum to 1 work as well. `eval_set` is
        (X, y) or (X, y, weight), or a list of such; X_val, y_val is one more. `eval_metric` is one
        metric or several, a name or a function of (y, prediction); without it, the mean loss. A
        function is the better the smaller unless it has an attribute `greater_is_better` that is
        true; it sees classes as 0, 1, ... and their probabilities, and no weights. Early stopping
        watches the first metric on the last set. `callbacks`, several or one, look on after each
        step and may end the chain (`sglb.BaseCallback`, `sglb.StepInfo`). `check_gradient` compares
        the gradient of a loss of your own with finite differences of it on a few rows first.
        """
        parameters = self.get_params(deep=False)
        check_parameters(parameters)
        guests = check_callbacks(callbacks)
        sets_given = list_sets(eval_set, X_val, y_val)
        check_watched(sets_given, self.early_stopping_rounds, eval_metric)
        rows = self._read_rows(X, y, sample_weight)
        loss = self._choose_loss(rows.classes)
        loss.check_target(rows.target)
        loss = loss.adapt(rows.target, rows.weight)
        best = loss.init(rows.target, rows.weight)
        loss = loss.examine(rows.target, best, check=check_gradient)
        alone = not sets_given and not guests
        settings = resolve(parameters, loss, rows.size(loss, best), alone=alone)
        threads = settings.n_threads
        given = self._read_evaluation(sets_given, rows)
        metrics = get_metrics(eval_metric, rows.task)
        coded = encode_rows(rows, settings.max_bins, settings.seed, threads)
        feature_dtype = rows.features.values.dtype.name
        rows = rows.without_features()
        sets = [
            EvaluationSet(f"validation_{place}", coded.encode(features, threads), target, weight)
            for place, (features, target, weight) in enumerate(given)
        ]
        history = History(sets, metrics, threads)
        start = np.zeros_like(best) if self.init == "zero" else best
        size = settings.sampler.move(0).transition.size
        trace = Ensemble(coded.bins, settings.max_depth, start, size=size)
        training_set = coded.training_set(rows, threads)
        last = LastScores()
        n_steps = self._length(training_set, rows, loss, settings, trace)
        if guests:
            guests.insert(0, Parameters(settings.resolved(parameters, loss)))
        if loss.predicts_mean:
            guests.append(last)
        chain = self._chain(training_set, loss, settings, trace, threads)
        ensemble = self._run(chain, settings, n_steps, history, guests)
        best_iteration, best_score = history.best() if sets else (None, None)
        if self.early_stopping_rounds is not None and best_iteration is not None:
            ensemble = ensemble.at(best_iteration)
        names = getattr(self, "feature_names_in_", None)
        model = Model(
            kind=self._kind,
            parameters=parameters,
            loss=loss,
            ensemble=ensemble,
            encoding=coded.encoding,
            classes=rows.classes,
            feature_names=None if names is None else list(names),
            feature_dtype=feature_dtype,
            learning_rate=settings.learning_rate,
            temperature=settings.temperature,
            shrink_rate=settings.shrink_rate,
            leaf_method=settings.leaves.method,
            total_weight=rows.total_weight,
            seed=settings.seed,
            residual_variance=residual_variance(training_set, loss, ensemble, last, threads),
            best_iteration=best_iteration,
            best_score=best_score,
            evals_result=history.result,
        )
        return self._adopt(model)

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Read the training rows; a row of weight zero is not there."""
        features = read_features(
            self,
            X,
            reset=True,
            categorical=self.categorical_features,
            n_threads=n_threads(self.n_jobs),
        )
        target, classes = self._learn_target(y, len(features))
        given = read_weight(sample_weight, features)
        warn_of_repeats(given)
        weight = self._row_weight(given, target, classes)
        if weight is not None and not weight.all():
            there = weight > 0.0
            features, target, weight = features.take(there), target[there], weight[there]
        return Rows(features, target, weight, classes)

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

    def _read_evaluation(
        self, given: Sequence[Given], rows: Rows
    ) -> list[tuple[Features, Floats, Floats | None]]:
        """Read the evaluation sets: features, target and weight of each."""
        sets = []
        mask, threads = rows.features.is_categorical, n_threads(self.n_jobs)
        for place, one in enumerate(given):
            try:
                features = read_features(
                    self, one.X, reset=False, categorical=mask, n_threads=threads
                )
                if not len(features):
                    raise ValueError("X has no rows")
                target = self._same_target(one.y, len(features), rows.classes)
            except ValueError as error:
                raise ValueError(f"eval_set[{place}]: {error}") from error
            weight = read_weight(one.weight, features, f"weight of validation_{place}")
            sets.append((features, target, weight))
        return sets

    def _same_target(self, y: Any, n_rows: int, classes: Array | None) -> Floats:
        """Return the target of an evaluation set in the numbers of the training target."""
        return self._learn_target(y, n_rows)[0]

    def _rule(self, settings: Settings, n_threads: int) -> GreedySearch:
        """Return the rule that chooses structures."""
        return GreedySearch(
            settings.max_depth,
            l2=settings.leaves.l2,
            newton=settings.leaves.method == "newton",
            structure_rows=settings.structure_rows,
            structure_outputs=settings.structure_outputs,
            random_strength=settings.random_strength,
            n_threads=n_threads,
        )

    def _length(
        self, training_set: TrainingSet, rows: Rows, loss: Loss, settings: Settings, start: Ensemble
    ) -> int:
        """Return the number of steps to take: as stated, or by cross-validation."""
        if not settings.search_length:
            return settings.n_steps

        def make_fold(inside: NDArray[np.bool_]) -> Fold:
            everywhere = np.tile(inside, training_set.n_copies)
            trace = Ensemble(start.bins, settings.max_depth, start.offset)
            chain = self._chain(training_set.take(~everywhere), loss, settings, trace, 1)
            return Fold(chain, training_set.first_copy().take(inside))

        if self.verbose:
            say(f"cross-validation of the number of trees, at most {settings.n_steps:,}")
        folds = assign_folds(training_set, settings.seed, classes=rows.classes is not None)
        threads = settings.n_threads if loss.row_wise else 1
        n_steps = best_length(make_fold, folds, settings.n_steps, threads)
        if self.verbose:
            say(f"{n_steps:,} trees are best")
        return n_steps

    def _chain(
        self,
        training_set: TrainingSet,
        loss: Loss,
        settings: Settings,
        trace: Ensemble,
        n_threads: int,
    ) -> Chain:
        """Return the chain that the settings describe."""
        newton = settings.leaves.method == "newton"
        rows = Shard.start(training_set, loss, trace, newton=newton, n_threads=n_threads)
        rule = self._rule(settings, n_threads)
        return Chain(rows, settings.sampler, rule, settings.leaves, trace, seed=settings.seed)

    def _run(
        self,
        chain: Chain,
        settings: Settings,
        n_steps: int,
        history: History,
        callbacks: Sequence[Callback],
    ) -> Ensemble:
        """Run the chain with its callbacks."""
        # The order matters: scores are there before anything looks at them.
        watching: list[Callback] = [history] if history.sets else []
        if self.early_stopping_rounds is not None:
            sampler = settings.sampler
            cooling = sampler.n_steps if isinstance(sampler, Annealed) else 0
            watching.append(EarlyStopping(self.early_stopping_rounds, after=cooling))
        watching.extend(callbacks)
        if self.verbose:
            watching.append(Progress(every=self.verbose if self.verbose > 1 else None))
        with ExitStack() as stack:
            for callback in watching:
                if callable(close := getattr(callback, "close", None)):
                    stack.callback(close)
            return boost(chain, n_steps, watching)

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
