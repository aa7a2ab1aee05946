"""Rows as `fit` and `posterior` take them: the user's tables, targets, weights and costs, read.

The first room on the data's way; `base` trains on what comes out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.callbacks import EvaluationSet
from sglb.costs import read_costs
from sglb.estimators.evaluation import NO_GROUPS, StatedSet
from sglb.estimators.fitted import FittedChain
from sglb.frame import read_features, read_weight
from sglb.losses import Loss
from sglb.prepare import EncodedRows, LabelledRows, warn_of_repeats
from sglb.settings import n_threads
from sglb.target import Target

Floats = NDArray[np.float64]


class RowReader(FittedChain):
    """An estimator that reads rows to learn from or to score, each kind of estimator its target."""

    categorical_features: Any

    def _read_rows(self, stated: StatedSet) -> LabelledRows:
        """Read the training rows; rows of weight zero are dropped."""
        features = read_features(
            self,
            stated.X,
            reset=True,
            categorical=self.categorical_features,
            n_threads=n_threads(self.n_jobs),
        )
        weight = read_weight(stated.weight, features)
        warn_of_repeats(weight)
        target = self._read_target(stated.y, weight).in_groups(stated.groups)
        return LabelledRows(features, _with_costs(target, stated.costs)).with_weight()

    def _read_target(self, y: Any, weight: Floats, training: Target | None = None) -> Target:
        """Read a target, that of training or of rows to score beside a training target."""
        raise NotImplementedError

    def _training_weight(self, y: Any, weight: Floats) -> Floats:
        """Return the weights that training gives to rows of stated weights."""
        return weight

    def _read_evaluation(
        self, stated_sets: Sequence[StatedSet], rows: LabelledRows, loss: Loss
    ) -> list[LabelledRows]:
        """Read the evaluation sets; reject targets outside the domain of the loss."""
        sets = []
        mask, threads = rows.features.is_categorical, n_threads(self.n_jobs)
        for number, stated in enumerate(stated_sets):
            try:
                features = read_features(
                    self, stated.X, reset=False, categorical=mask, n_threads=threads
                )
                if not len(features):
                    raise ValueError("X has no rows")
                weight = read_weight(stated.weight, features, f"weight of validation_{number}")
                target = self._read_target(stated.y, weight, rows.target)
                target = _with_costs(target.in_groups(stated.groups), stated.costs)
                loss.check_target(target)
            except ValueError as error:
                raise ValueError(f"eval_set[{number}]: {error}") from error
            sets.append(LabelledRows(features, target))
        return sets

    def _read_known_rows(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: NDArray[np.int64] = NO_GROUPS,
        costs: Any = None,
    ) -> LabelledRows:
        """Read the training rows of the fitted model once more, or others for it to learn from."""
        classes = self._fitted().recipe.classes
        features = self._read(X, n_threads(self.n_jobs))
        weight = self._training_weight(y, read_weight(sample_weight, features))
        template = Target.of([], classes=classes) if len(classes) else None
        target = self._read_target(y, weight, template).in_groups(groups)
        return LabelledRows(features, _with_costs(target, costs)).with_weight()


def evaluation_sets(
    sets: Sequence[LabelledRows], encoded: EncodedRows, n_threads: int
) -> list[EvaluationSet]:
    """Return the evaluation sets as codes, by the names that scores have."""
    return [
        EvaluationSet(f"validation_{number}", encoded.encode(rows.features, n_threads), rows.target)
        for number, rows in enumerate(sets)
    ]


def _with_costs(target: Target, costs: Any) -> Target:
    """Return a target with the stated costs, if there are any."""
    if costs is None:
        return target
    return target.with_costs(read_costs(costs, len(target), target.classes))
