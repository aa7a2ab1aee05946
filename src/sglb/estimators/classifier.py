"""Classes to predict."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.utils import Tags

from sglb.callbacks import Callback
from sglb.estimators.absent import Absent
from sglb.estimators.base import Array, ChainEstimator, Floats
from sglb.estimators.calibrated import CalibratedClassifier
from sglb.estimators.classes import number_labels, numbers_of, weigh_classes
from sglb.estimators.conformal import ConformalClassifier
from sglb.estimators.constructor import keep
from sglb.estimators.cross_conformal import CrossConformalClassifier
from sglb.estimators.deciding import DecisionMixin, at_threshold, tune_out_of_fold
from sglb.estimators.evaluation import EvalSets, StatedSet, list_sets, with_eval_costs
from sglb.frame import read_labels
from sglb.losses import LOSSES, Loss, get_loss
from sglb.metrics import MetricSpec
from sglb.samplers import Sampler
from sglb.schedules import Scheduled
from sglb.settings import check_parameters
from sglb.target import Target
from sglb.uncertainty import Uncertainty, of_probabilities


class SGLBClassifier(ClassifierMixin, ChainEstimator, DecisionMixin):  # type: ignore[misc]
    """Stochastic gradient Langevin boosting for two or more classes.

    Parameters
    ----------
    loss : "auto" (logistic for two classes, softmax for more), "logistic", "softmax", "sla" (the
        0-1 loss, smoothed), "savage", "cost" (decisions by their costs, see `fit`), an object of
        `sglb.losses`, or any object with loss(y, raw) and gradient(y, raw).
    n_estimators : steps of the chain, one tree each. "auto" is 1,000, but of up to 10,000 rows,
        without evaluation set and callbacks, at the automatic temperature and for convex losses, as
        many as are best in a cross-validation of five folds, which may take three times as long.
    learning_rate : the paper's epsilon; "auto" follows from rows, steps and loss. It, temperature
        and shrink_rate may be schedules: "cosine(0.1, 0.01)" changes from the first number to the
        second within the chain, "cosine(0.1, 0.01, 300)" within 300 steps; shapes are linear,
        geometric, cosine and jump, functions of the step `sglb.schedules.StepFunction`.
    max_depth : splits of a tree, 1 to 16; "auto" is 4, 6 or 8, by task, loss and size.
    max_bins : bins of a number, 2 to 255; a missing value has its own besides. "auto" is
        254 for numbers, 128 for two classes, 64 for more.
    sampler : "plain" (gradient boosting), "stochastic" (on samples of the rows, set subsample),
        "langevin" (SGLB), "annealed" (SGLB whose temperature and shrink rate fall; what "langevin"
        becomes for losses of numbers that are not convex), "hamiltonian" (SGLB with momentum),
        "cyclical" (long steps and short ones in turn), "tempering" (four chains that exchange
        temperatures), or an object of `sglb.samplers` that brings its own rates.
    temperature : 0 is no noise, 1 the Bayesian posterior; "auto" follows from the loss.
    shrink_rate : the paper's gamma, which pulls the model to its start; "auto" by the loss.
    friction : share of its velocity that a step of sampler="hamiltonian" loses, in (0, 1]; "auto"
        is .1, and 1 is "langevin".
    structure_noise : factor of the noise in the search of structures; the paper's is 1. Leaves keep
        theirs.
    subsample : probability that a row's gradient is used in a step.
    structure_sample : rows a tree's structure is searched on, a number or a fraction; "auto" takes
        some of many rows, and some of many classes.
    random_strength : noise on split scores, in units of a row's gradient; it fades as the chain
        goes on. "auto" is 1 for two classes where n_estimators is found by cross-validation and the
        temperature is automatic, else 0.
    leaf_method : "gradient" (the paper), "newton", or "auto" (newton for convex losses).
    leaf_steps : Newton steps in the leaves of each tree, for losses of one output and all rows;
        they bring the leaves close to their optimum, so that a short chain is better. From 300,000
        rows on those before the last look at some of the rows: "auto" takes 3 there, else 1.
    l2_regularization : added to the weight of each leaf; "auto" is 0, for Newton leaves 3, or 1 for
        fewer than 1,000 numbers, in units of a row's curvature.
    init : "mean", the best constant, never shrunk, or "zero" (the paper).
    categorical_features : "from_dtype" (columns of text or of a categorical type), or a list of
        column names or places, or a mask over the columns; None takes every column for numbers.
        Few levels are split one against the others, many become means of the target
        (docs/categories.md).
    class_weight : None, "balanced", or a dict from label to weight. What counts is their ratio:
        they are divided by their mean over the rows, then multiplied with sample_weight. Then
        probabilities are not frequencies of the rows; those of `cross_calibrate(X, y)` are.
    n_chains : chains that differ in their noise alone; the model is the mean of their raw scores
        (of logits, not of probabilities). Training and prediction take n_chains times as long, but
        chains run side by side in the threads. Early stopping ends each chain by itself. The first
        chain is that of n_chains=1; without noise all chains are the same.
    uncertainty : whether fit adds error bars, which leave predictions as they are: 64 draws of the
        model from a posterior (`predict_uncertainty`) and, for numbers, the distribution of y about
        its prediction (`predict_distribution`, `predict_interval`). Numbers take about twice as
        long where the length is cross-validated, whose chains are used again, and five to six times
        as long elsewhere (docs/uncertainty.md). The draws make a model file larger: 128 bytes for
        each leaf of each tree.
    early_stopping_rounds : steps without improvement on the last evaluation set before stopping.
    warm_start : whether the next fit continues this one up to n_estimators steps, as `init_model`
        of fit does (docs/callbacks.md).
    random_state : seed; the same seed gives the same model for any n_jobs.
    n_jobs : threads; None or -1 is all available cores, by the affinity and OMP_NUM_THREADS of the
        moment and the CPU quota of the last second.
    verbose : 1 shows progress, a bar in a terminal or notebook and a line every 5 seconds in a
        log; n > 1 is a line every n steps (docs/callbacks.md).

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, feature_importances_ (share in the gain)
    n_iter_ : steps in the model, of several chains those of the longest. best_iteration_,
        best_score_ : by the first metric on the last evaluation set; with early stopping the model
        is that iterate, else the last one.
    evals_result_ : evaluation set -> metric -> one value a step. Of several chains these are scores
        of their mean after that step of each, where a chain that has ended stays in its last
        state, with early stopping its best: there best_score_ is the last score.
    best_iterations_, chain_evals_results_ : the same of each chain by itself, lists. traces_ : what
        each chain has left behind; trace_ is the first.
    learning_rate_, temperature_, shrink_rate_, leaf_method_, loss_ : what "auto" became; of
        schedules the first learning rate, and the last temperature and shrink rate.
    inverse_temperature_ : the paper's beta, sum of weights / temperature_. trace_.temperatures :
        the temperature of each step.
    swap_rates_ : of sampler="tempering", how often neighbours exchanged their temperatures.
    is_categorical_ : mask of the categorical columns. is_text_ : of those whose levels are text.

    Notes
    -----
    scikit-learn's `check_estimator` passes but for the checks of
    `sglb.sklearn_expected_failed_checks(model)`, which gives the reasons: with noise, weight 2 and
    two equal rows are the same in distribution only. With sampler="plain" they are the same.
    """

    _kind = "classifier"
    class_weight: Mapping[Any, float] | str | None

    def __init__(
        self,
        *,
        loss: Any = "auto",
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
        class_weight: Mapping[Any, float] | str | None = None,
        n_chains: int = 1,
        uncertainty: bool = False,
        early_stopping_rounds: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if isinstance(self.loss, str):
            kind = LOSSES.get(self.loss)
            binary = self.loss != "logistic" and kind is not None and kind.task == "binary"
        else:
            binary = getattr(self.loss, "n_outputs", 1) == 1
        tags.classifier_tags.multi_class = not binary
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        costs: Any = None,
        eval_set: EvalSets = None,
        eval_costs: Sequence[Any] | None = None,
        X_val: Any = None,
        y_val: Any = None,
        costs_val: Any = None,
        eval_metric: MetricSpec | Sequence[MetricSpec] | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
        resume_from: str | Path | None = None,
        init_model: Any = None,
        check_gradient: bool = True,
    ) -> Self:
        """Train a chain on X (n_rows, n_features) and y.

        `costs` are for loss="cost": costs[y, d] is the cost of decision d where the class is y,
        classes in sorted order, or there is such a matrix for each row (`sglb.costs.action_costs`).
        Other losses do not look at them. `eval_costs` are those of each evaluation set, for the
        loss and the metrics "expected_cost" and "profit@k"; a matrix in `costs` is that of all
        sets. X_val, y_val, costs_val is one more set. The rest is as in `SGLBRegressor.fit`.
        """
        check_parameters(self.get_params(deep=False))
        sets, has_val = list_sets(eval_set, X_val, y_val), X_val is not None
        return self._train(
            StatedSet(X, y, sample_weight, costs=costs),
            with_eval_costs(sets, costs, eval_costs, costs_val, last_is_val=has_val),
            eval_metric,
            callbacks,
            resume_from=resume_from,
            init_model=init_model,
            check_gradient=check_gradient,
        )

    def _read_target(self, y: Any, weight: Floats, training: Target | None = None) -> Target:
        labels = read_labels(self, y, len(weight))
        if training is not None:
            return Target.of(numbers_of(labels, training.classes), weight, classes=training.classes)
        values, classes = number_labels(labels)
        return Target.of(values, weigh_classes(self.class_weight, labels, weight), classes=classes)

    def _training_weight(self, y: Any, weight: Floats) -> Floats:
        return weigh_classes(self.class_weight, read_labels(self, y, len(weight)), weight)

    def _choose_loss(self, classes: Array) -> Loss:
        n_classes = len(classes)
        by_classes = isinstance(self.loss, str) and self.loss in ("auto", "logistic")
        spec = ("logistic" if n_classes <= 2 else "softmax") if by_classes else self.loss
        loss = get_loss(spec, n_classes=n_classes)
        if loss.task in ("regression", "ranking"):
            other = "SGLBRegressor" if loss.task == "regression" else "SGLBRanker"
            raise ValueError(f"loss={loss.name!r} is for {loss.task}; use {other}")
        if loss.n_outputs == 1 and n_classes > 2:
            raise ValueError(
                f"Only binary classification is supported. loss={loss.name!r} has one output and y "
                f"has {n_classes} classes; use loss='softmax'"
            )
        if loss.n_outputs > 1 and loss.n_outputs != max(n_classes, 2):
            raise ValueError(
                f"loss={loss.name!r} has {loss.n_outputs} outputs, but y has {n_classes} classes; "
                "it needs one output for each class"
            )
        return loss

    def _label(self, raw: Floats) -> Array:
        """Return the class that raw scores choose."""
        if len(self.classes_) == 1:
            index = np.zeros(len(raw), dtype=np.intp)
        else:
            index = (raw > 0.0).astype(np.intp) if raw.ndim == 1 else raw.argmax(axis=1)
        labels: Array = self.classes_[index]
        return labels

    def _predict_from(self, raw: Floats) -> Floats:
        """Return the probability of each class, (n_rows, n_classes)."""
        if len(self.classes_) == 1:
            return np.ones((len(raw), 1))
        if self.loss_ is None:
            raise ValueError(
                "this model was read from a file, which does not store a user-defined loss, so it"
                " has no probabilities; use decision_function for the raw scores"
            )
        link = self._core_link()
        if link is not None:
            return link.columns(raw[None] if raw.ndim == 1 else raw.T, self._n_columns())
        probability = self.loss_.link(raw)
        if probability.ndim == 1:
            probability = np.column_stack([1.0 - probability, probability])
        return probability

    def _decision(self, raw: Floats) -> Floats:
        return raw[:, 1] - raw[:, 0] if raw.ndim == 2 and raw.shape[1] == 2 else raw

    def predict(self, X: Any, n_estimators: int | None = None) -> Array:
        """Return the most likely class of each row, with `n_estimators` after so many steps."""
        return self._label(self.predict_raw(X, n_estimators))

    def predict_proba(self, X: Any, n_estimators: int | None = None) -> Floats:
        """Return the probability of each class, (n_rows, n_classes)."""
        return self._after(n_estimators)._predictions(X)

    def decision_function(self, X: Any, n_estimators: int | None = None) -> Floats:
        """Return raw scores, one a class; with two classes (n_rows,), above 0 for the second."""
        return self._decision(self.predict_raw(X, n_estimators))

    predict_interval = predict_quantiles = predict_distribution = Absent(
        "the distribution of a class is predict_proba(X); sets of guaranteed coverage are"
        " conformalize(X_calibration, y_calibration).predict_set(X), intervals of the probabilities"
        " posterior(X_train, y_train).interval(X)"
    )

    def conformalize(self, X: Any, y: Any) -> ConformalClassifier:
        """Return sets of classes of guaranteed coverage, by calibration rows this model has not
        seen.

            sets = model.conformalize(X_calibration, y_calibration).predict_set(X, .9)

        The set of a row contains its class with the stated probability, within each class.
        """
        self._fitted()
        return ConformalClassifier(self, X, y)

    def cross_conformalize(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> CrossConformalClassifier:
        """Return sets of classes of guaranteed coverage without rows set aside.

            sets = model.cross_conformalize(X, y).predict_set(X_new, .9)

        Five clones of this estimator, fitted or not, are each fitted without a fold of the rows,
        which takes five times as long as a fit. Weights count in the fits; in the calibration all
        rows count alike, because the guarantee is for rows like these.
        """
        return CrossConformalClassifier(self, X, y, sample_weight)

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> CalibratedClassifier:
        """Return this classifier with calibrated probabilities, by rows it was not trained on.

            calibrated = model.calibrate(X_calibration, y_calibration)
            calibrated.predict_proba(X)

        The model stays as it is. Log odds are stretched and, of two classes, moved, so that the log
        loss of the calibration rows is lowest (Platt scaling; of several classes temperature
        scaling). Training rows do harm: the model is right on them too often, and would become more
        sure of itself. `cross_calibrate` is the way to use them.

        It helps after class_weight, after more trees than are best, and for losses other than the
        log loss; a model with default settings has little to gain.
        """
        return CalibratedClassifier(self).fit(X, y, sample_weight)

    def cross_calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> CalibratedClassifier:
        """Return this classifier with calibrated probabilities, by its own training rows X, y.

        Each row is scored by a clone that was fitted without it and the other rows of its fold.
        There are five, so that this takes five times as long as fit.
        """
        return CalibratedClassifier(self)._fit_out_of_fold(X, y, sample_weight)

    def _check_probabilities(self) -> None:
        loss = self._fitted().recipe.loss
        by_loss = loss is not None and not loss.proper
        if self.class_weight is None and not by_loss:
            return
        reason = (
            f"loss={loss.name!r}" if loss and by_loss else f"class_weight={self.class_weight!r}"
        )
        raise ValueError(
            f"with {reason} predict_proba has no probabilities of classes, by which costs could be"
            " expected; use calibrate(X, y).decide(X, costs) with rows that the model has not seen"
            " (a model of loss='cost' has decided already: predict)"
        )

    def cross_tune_threshold(
        self, X: Any, y: Any, metric: Any = "f1", sample_weight: Any = None, *, costs: Any = None
    ) -> FixedThresholdClassifier:
        """Return this model with the best threshold, by its own training rows X, y.

        Each row is scored by a clone that was fitted without it and the other rows of its fold.
        There are five, so that this takes five times as long as fit. Metrics are those of
        `tune_threshold`.
        """
        self._fitted()
        return at_threshold(
            self._twin(), tune_out_of_fold(self, (X, y, sample_weight), metric, costs)
        )

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the classes that the model chooses after each step."""
        for raw in self.staged_predict_raw(X):
            yield self._label(raw)

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Yield the probabilities after each step."""
        for raw in self.staged_predict_raw(X):
            yield self._predict_from(raw)

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """Yield the decision function after each step."""
        for raw in self.staged_predict_raw(X):
            yield self._decision(raw)

    def predict_uncertainty(self, X: Any, n_states: int = 10) -> Uncertainty:
        """Return mean probabilities, and knowledge, data and total uncertainty of each row.

        Entropies in nats: total of the mean probability, data the mean entropy, knowledge the
        difference. `total` ranks rows by how open their outcome is, `knowledge` by how little the
        model knows of their kind. They are over the draws of the posterior if fit had
        uncertainty=True. Else they are over up to `n_states` states of the second half of the
        chain, which are draws only of a chain at temperature 1, leaf_method="gradient", that lasts
        many times 1 / (learning_rate * shrink_rate) steps; a warning says where they cannot be.
        """
        if self._fitted().posterior is not None:
            return self._fitted_posterior().uncertainty(X)
        states, link = self._several_states(n_states), self._core_link()
        if link is None:
            return of_probabilities(self._draws(X, states))
        name, parameter, n_classes = link.name, link.parameter, self._n_columns()
        parts = self._compute(
            X, lambda values, threads: states.entropies(values, name, parameter, n_classes, threads)
        )
        return Uncertainty(*parts)
