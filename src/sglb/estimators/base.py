"""What all estimators share: parameters and fit.

`fit` walks the rooms in the data's order, frame -> settings -> bins -> training set -> loop, and
keeps a `Model`, which `fitted` reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from sglb import archive
from sglb.archive.arguments import is_lost
from sglb.callbacks import Callback, check_callbacks
from sglb.checkpoints import (
    Fingerprint,
    Journal,
    describe_data,
    describe_parameters,
    open_journal,
    take_checkpoint,
)
from sglb.estimators.constructor import check_names, known_names
from sglb.estimators.continuing import Origin, find_origin
from sglb.estimators.drawn import draw_for_plan
from sglb.estimators.error_bars import automatic_temperature, check_two_rows
from sglb.estimators.evaluation import EvalSets, StatedSet, check_watched, list_sets
from sglb.estimators.posterior import Posterior
from sglb.estimators.rows import RowReader, evaluation_sets
from sglb.estimators.sources import ChainSource
from sglb.estimators.training import Scoring, Training
from sglb.losses import Loss
from sglb.metrics import Metric, MetricSpec, get_metrics
from sglb.model import Model
from sglb.noise import chain_seed
from sglb.posterior import AUTO_STEPS, PosteriorKind, PosteriorPlan, check_kind
from sglb.prepare import Request, prepare
from sglb.recipe import Kind
from sglb.settings import check_parameters, n_threads
from sglb.target import Target

Array = NDArray[Any]
Floats = NDArray[np.float64]


class ChainEstimator(RowReader):
    """An estimator whose fit runs a chain."""

    _kind: ClassVar[Kind]
    # Parameters that fit looks at itself; the constructors list them all.
    loss: Any
    random_strength: str | float
    init: str
    uncertainty: bool
    early_stopping_rounds: int | None
    warm_start: bool
    verbose: int

    def __new__(cls, *arguments: Any, **parameters: Any) -> Self:
        """Reject an unknown parameter, with the nearest name there is."""
        check_names(cls, parameters)
        new: Self = super().__new__(cls)
        return new

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the parameters, sorted; scikit-learn reads the signature anew at each call."""
        names = known_names(cls)
        return list(super()._get_param_names() if names is None else sorted(names))

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
        resume_from: str | Path | None = None,
        init_model: Any = None,
        check_gradient: bool = True,
    ) -> Self:
        """Train a chain on X (n_rows, n_features) and y.

        `sample_weight` are multiplicities: weight 2 means that the row occurs twice (exactly so
        without noise; with it in distribution, since each row has noise of its own). Weights with a
        mean below 1 are divided by it, so that weights which sum to 1 work as well. `eval_set` is
        (X, y) or (X, y, weight), or a list of such; X_val, y_val is one more. `eval_metric` is one
        metric or several, a name or a function of (y, prediction); without it, the mean loss. A
        function is the better the smaller unless it has an attribute `greater_is_better` that is
        true; it sees classes as 0, 1, ... and their probabilities, and no weights. Early stopping
        watches the first metric on the last set. `callbacks`, several or one, are called after each
        step and may end the chain (`sglb.BaseCallback`, `sglb.StepInfo`); of several chains they
        see the first, and end all. `resume_from` is the path of a checkpoint of this fit, which was
        interrupted: the model becomes what it would have become (`sglb.Checkpoint`). `init_model`,
        a fitted estimator or the path of its file, is continued by n_estimators steps on these
        rows, with its bins, categories and settings. `check_gradient` compares the gradient of your
        own loss with finite differences of it on a few rows first.
        """
        check_parameters(self.get_params(deep=False))
        return self._train(
            StatedSet(X, y, sample_weight),
            list_sets(eval_set, X_val, y_val),
            eval_metric,
            callbacks,
            resume_from=resume_from,
            init_model=init_model,
            check_gradient=check_gradient,
        )

    def _train(
        self,
        stated: StatedSet,
        stated_sets: Sequence[StatedSet],
        eval_metric: MetricSpec | Sequence[MetricSpec] | None,
        callbacks: Sequence[Callback] | Callback | None,
        *,
        resume_from: str | Path | None = None,
        init_model: Any = None,
        check_gradient: bool = True,
    ) -> Self:
        """Train a chain on stated rows, and score stated sets."""
        checkpoint, listed_callbacks = take_checkpoint(check_callbacks(callbacks))
        check_watched(stated_sets, self.early_stopping_rounds, eval_metric)
        origin = find_origin(self, init_model)
        described = {"parameters": describe_parameters(self._kind, self.get_params(deep=False))}
        traces = None if origin is None else origin.traces
        with open_journal(checkpoint, resume_from, described, traces) as journal:
            model = self._run(
                [stated, *stated_sets],
                eval_metric,
                listed_callbacks,
                origin,
                journal,
                described,
                check_gradient=check_gradient,
            )
        return self._adopt(model)

    def _run(
        self,
        stated_sets: Sequence[StatedSet],
        eval_metric: MetricSpec | Sequence[MetricSpec] | None,
        callbacks: list[Callback],
        origin: Origin | None,
        journal: Journal,
        described: Fingerprint,
        *,
        check_gradient: bool,
    ) -> Model:
        """Read the training rows, the first of the sets, and train from an origin, if any."""
        parameters, (stated, *stated_sets) = self.get_params(deep=False), stated_sets
        reader = self if origin is None else origin.reader
        rows = self._read_rows(stated) if origin is None else reader._read_known_rows(*stated)
        loss, threads = self._choose_loss(rows.target.classes), n_threads(self.n_jobs)
        if self.uncertainty:
            check_error_bars(loss, rows.target)
        sets = reader._read_evaluation(stated_sets, rows, loss)
        metrics = get_metrics(eval_metric, rows.target.task, loss.n_outputs)
        check_costs(loss, rows.target, [each.target for each in sets], metrics)
        names = getattr(reader, "feature_names_in_", None)
        request = Request(
            self._kind,
            parameters,
            None if names is None else list(names),
            alone=not stated_sets and not callbacks,
            check_gradient=check_gradient,
            seed=journal.seed if parameters["random_state"] is None else None,
        )
        prepare_rows = prepare if origin is None else origin.prepare
        prepared = prepare_rows(rows, loss, request, threads)
        del rows  # they may be a copy of the table
        scoring = Scoring(
            evaluation_sets(sets, prepared.encoded, threads), metrics, self.early_stopping_rounds
        )
        recipe, data = prepared.recipe, prepared.data
        if journal.is_kept:
            before = None if origin is None else origin.model
            content = describe_data(data, scoring.sets, metrics, recipe, before)
            journal.begin(recipe, described | {"data": content})
        training = Training(recipe, data, threads, self.verbose, journal)
        return training.run(scoring, callbacks, uncertainty=self.uncertainty)

    def _choose_loss(self, classes: Array) -> Loss:
        """Return the loss that the parameters ask for; there are no classes in regression."""
        raise NotImplementedError

    def posterior(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        n_draws: int = 100,
        kind: str = "laplace",
        prior_variance: float | str = "auto",
        temperature: float | str = "auto",
        n_steps: int | str = "auto",
    ) -> Posterior:
        """Draw models from the posterior of this one, given its training rows X, y.

        kind : "laplace" keeps this model as the mean, and draws around it; "full" draws from the
            posterior itself, of a Gaussian process whose kernel is the trees; "paper" runs the
            chain of the paper four times, with noise and trees of its own, and draws states of the
            second halves (`sglb.posterior.long_chains`).
        prior_variance : variance of a raw score before any data, at temperature 1; more is more
            spread. "auto" is .3 / curvature of the loss for numbers, at most .3 for logarithms, so
            that 90 % intervals of the mean held known functions in about 90 % of the rows. For
            classes it is the largest of 3, 1.7, 1, ... .01 at which the mean of the draws should
            cost at most 0.1 % of the log loss on new rows, even with the model's log odds 10 % too
            small. Intervals that hold the true probabilities need more, .3 to 1.
        temperature : 1 for a loss that is minus a log likelihood; for the squared loss the variance
            of the noise. "auto" is 1 for classes, and in regression what fit with uncertainty=True
            has learned. Else it is learned here, by chains without a fold of X, y: five up to 2,000
            rows, one from 8,000 on, each of which takes about as long as fit did.
        n_steps : steps of the chain of each draw; "auto" is 150 to 2,400, as many as it takes that
            the variance of the draws no longer changes. Of a chain of kind "paper"
            "auto" is what it takes that draws are nearly independent, about 4 n_draws * curvature
            of the loss * rows * prior_variance / leaves of a tree, but 20,000 at most; `summary()`
            tells whether that was enough.
        """
        check_parameters({"n_draws": n_draws, "kind": kind, "n_steps": n_steps})
        check_parameters({"prior_variance": prior_variance, "posterior_temperature": temperature})
        model = self._fitted()
        loss = model.recipe.loss
        if loss is None:
            raise ValueError(
                "this model was read from a file, which does not store a user-defined loss, so it"
                " has no posterior; pickle keeps the loss"
            )
        reject_costs(loss)
        check_kind(loss, cast(PosteriorKind, kind))
        rows, threads = self._read_known_rows(X, y, sample_weight), n_threads(self.n_jobs)
        columns = model.recipe.encode_training(rows.features, rows.target, threads)
        if temperature == "auto":
            temperature = automatic_temperature(model, columns, rows.target, threads)
        plan = PosteriorPlan(
            cast(PosteriorKind, kind),
            n_draws,
            None if prior_variance == "auto" else float(prior_variance),
            float(temperature),
            AUTO_STEPS if n_steps == "auto" else int(n_steps),
            chain_seed(model.recipe.settings.seed),
        )
        source = ChainSource(self._twin(), fitted=plan.kind == "laplace")
        return Posterior(source, draw_for_plan(model, columns, rows.target, plan, threads))

    def _twin(self) -> Self:
        """Return another estimator of the same model, which the next fit does not change."""
        return self._of(self._fitted())

    def _fitted_posterior(self) -> Posterior:
        """Return the posterior that fit has drawn."""
        drawn = self._fitted().posterior
        assert drawn is not None
        return Posterior(ChainSource(self, fitted=drawn.plan.kind == "laplace"), drawn)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        model = state.pop("_model", None)
        if model is None:
            return state
        # Fitted attributes follow from the model, and the model travels as a model file does.
        attributes = {name: value for name, value in state.items() if not name.endswith("_")}
        # A pickle, unlike a file, brings everything back: objects among the parameters too.
        recipe = model.recipe
        lost = {name: value for name, value in recipe.parameters.items() if is_lost(value)}
        sampler = recipe.settings.sampler
        attributes |= {"_sampler": sampler} if is_lost(sampler) else {}
        return attributes | {"_bytes": archive.dumps(model), "_lost": lost}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        attributes = dict(state)
        data, lost = attributes.pop("_bytes", None), attributes.pop("_lost", {})
        sampler = attributes.pop("_sampler", None)
        super().__setstate__(attributes)
        if data is None:
            return
        model = archive.loads(data)
        recipe = replace(model.recipe, parameters=model.recipe.parameters | lost)
        if sampler is not None:
            recipe = replace(recipe, settings=replace(recipe.settings, sampler=sampler))
        if recipe.loss is None and attributes.get("loss") is not None:
            recipe = replace(recipe, loss=self._choose_loss(recipe.classes))
        model = replace(model, recipe=recipe)
        self._adopt(model)


def check_costs(
    loss: Loss, training: Target, sets: Sequence[Target], metrics: Sequence[Metric]
) -> None:
    """Reject rows without costs where a loss or a metric needs them."""
    if loss.uses_costs and not len(training.costs):
        raise ValueError(
            f"loss={loss.name!r} needs the costs of decisions: fit(X, y, costs=costs), a matrix"
            " costs[y, d] of decision d where the class is y, or one for each row"
            " (sglb.costs.action_costs)"
        )
    asking = [f"loss={loss.name!r}"] if loss.uses_costs else []
    asking += [f"eval_metric={metric.name!r}" for metric in metrics if metric.needs_costs]
    for number, target in enumerate(sets):
        if asking and not len(target.costs):
            raise ValueError(
                f"eval_set[{number}] has no costs, which {asking[0]} needs: pass eval_costs, a list"
                " with those of each set; a matrix passed as costs is that of all sets"
            )


def check_error_bars(loss: Loss, target: Target) -> None:
    """Reject rows and losses from which uncertainty=True cannot learn error bars."""
    reject_costs(loss)
    if loss.task == "regression":
        check_two_rows(target, "uncertainty=True")


def reject_costs(loss: Loss) -> None:
    """Reject a posterior of a loss of costs, which is no likelihood."""
    if loss.uses_costs:
        raise ValueError(
            f"loss={loss.name!r} is not minus a log likelihood, so it has no error bars and no"
            " posterior; use loss='logistic' or 'softmax', and decide(X, costs)"
        )
