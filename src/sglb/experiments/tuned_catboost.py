"""CatBoost with the smoothed 0-1 loss on a real table, as one trial of the search (`search`).

The paper's own implementation with the paper's settings. Its Langevin noise needs gradient leaves
of one iteration, and its diffusion temperature is 1 / temperature. Categories of up to 255 levels
are one-hot; those of more levels become CatBoost's target statistics.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.experiments.catboost_sla import SmoothedError

NOT_INSTALLED = '--catboost needs CatBoost: pip install "sglb[paper]"'
ONE_HOT_LEVELS = 255
# The validation rows alone are scored: they choose the best iteration, by the share that is right.
ACCURACY = "Accuracy:hints=skip_train~true"
SHARED: Mapping[str, Any] = {
    "leaf_estimation_method": "Gradient",
    "leaf_estimation_iterations": 1,
    "boost_from_average": False,
    "boosting_type": "Plain",
    "random_strength": 0.0,
    "one_hot_max_size": ONE_HOT_LEVELS,
    "eval_metric": ACCURACY,
    "use_best_model": True,
    "thread_count": 1,
    "verbose": False,
    "allow_writing_files": False,
}


def options_of(parameters: Mapping[str, float]) -> dict[str, Any]:
    """Translate parameters of sglb's estimators that a trial has drawn."""
    options: dict[str, Any] = {
        "learning_rate": parameters["learning_rate"],
        "depth": parameters["max_depth"],
        "l2_leaf_reg": parameters.get("l2_regularization", 0.0),
    }
    if "subsample" in parameters:
        options |= {"bootstrap_type": "Bernoulli", "subsample": parameters["subsample"]}
    else:
        options |= {
            "bootstrap_type": "No",
            "langevin": True,
            "model_shrink_rate": parameters["shrink_rate"],
            "diffusion_temperature": 1.0 / parameters["temperature"],
        }
    return options


@dataclass
class TunedCatBoost:
    """A CatBoost model that is fitted and scored like sglb's classifiers."""

    parameters: Mapping[str, float]
    n_estimators: int
    borders: int
    width: float
    seed: int
    classes_: NDArray[Any] = field(init=False, repr=False)
    model_: Any = field(init=False, repr=False)
    best_score_: float | None = field(init=False, default=None)
    best_iteration_: int | None = field(init=False, default=None)

    def fit(
        self,
        X: Any,
        y: NDArray[Any],
        eval_set: Sequence[tuple[Any, NDArray[Any]]],
        eval_metric: str = "error",
    ) -> "TunedCatBoost":
        """Fit all trees; keep those up to the smallest error of the evaluation rows."""
        if eval_metric != "error":
            raise ValueError(f"CatBoost is tuned by the 0-1 error, not by {eval_metric!r}")
        try:
            from catboost import CatBoost
        except ModuleNotFoundError as error:
            raise ImportError(NOT_INSTALLED) from error
        self.classes_ = np.unique(y)
        train, valid = self._pool(X, y), self._pool(*eval_set[0])
        settings = {
            **SHARED,
            **options_of(self.parameters),
            "iterations": self.n_estimators,
            "border_count": self.borders,
            "random_seed": self.seed,
            "loss_function": SmoothedError(self.width),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CatBoost warns that the objective is not compiled
            self.model_ = CatBoost(settings).fit(train, eval_set=valid)
        (accuracy,) = self.model_.get_evals_result()["validation"].values()
        self.best_score_ = 1.0 - float(np.max(accuracy))
        self.best_iteration_ = int(self.model_.tree_count_)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        raw = self.model_.predict(self._pool(X, None))
        return np.asarray(self.classes_[(np.asarray(raw) > 0.0).astype(np.intp)])

    def _pool(self, X: Any, y: NDArray[Any] | None) -> Any:
        """Return rows of an Arrow table for CatBoost, whose categories are text without gaps."""
        from catboost import Pool

        frame = X.to_pandas()
        categories = [name for name, dtype in frame.dtypes.items() if dtype.kind == "O"]
        for name in categories:
            column = frame[name].astype(object)
            frame[name] = column.where(column.notna(), "missing").astype(str)
        label = None if y is None else np.searchsorted(self.classes_, y)
        return Pool(frame, label, cat_features=categories)
