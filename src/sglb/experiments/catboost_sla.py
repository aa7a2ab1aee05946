"""CatBoost on the synthetic experiment, with the smoothed 0-1 loss as a custom objective.

CatBoost has the paper's first implementation. Its diffusion temperature is 1 / temperature here. It
samples rows for structures only, and on a CPU its Langevin noise reaches leaves only.
"""

import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.experiments.synthetic import (
    BORDERS,
    DEPTH,
    RATE,
    SHRINK_RATE,
    WIDTH,
    Curve,
    SyntheticFold,
)

NOT_INSTALLED = 'CatBoost is not installed, its rows are left out: pip install "sglb[paper]"'

# The paper's settings; leaves are one gradient step, and every addition of CatBoost is off.
SHARED: Mapping[str, Any] = {
    "depth": DEPTH,
    "border_count": BORDERS,
    "learning_rate": RATE,
    "l2_leaf_reg": 0.0,
    "leaf_estimation_method": "Gradient",
    "leaf_estimation_iterations": 1,
    "boost_from_average": False,
    "boosting_type": "Plain",
    "bootstrap_type": "No",
    "random_strength": 0.0,
    "eval_metric": "Logloss",
    "thread_count": 1,
    "verbose": False,
    "allow_writing_files": False,
}
_LANGEVIN = {"langevin": True, "model_shrink_rate": SHRINK_RATE}
METHODS: Mapping[str, Mapping[str, Any]] = {
    "CatBoost GB": {},
    "CatBoost SGB": {"bootstrap_type": "Bernoulli", "subsample": 0.5},
    "CatBoost SGLB, temperature 1e-3": {**_LANGEVIN, "diffusion_temperature": 1000},
    "CatBoost SGLB, temperature 1": {**_LANGEVIN, "diffusion_temperature": 1},
    "CatBoost GB, random strength 1": {"random_strength": 1.0},
}


class SmoothedError:
    """The smoothed 0-1 loss for CatBoost: minus the first and second derivative of each row.

    With t = tanh(raw / (2 width)) the slope of sigmoid(raw / width) is (1 - t^2) / (4 width).
    CatBoost calls this some hundred times a tree, on a thousand rows each.
    """

    def __init__(self, width: float) -> None:
        self.width = width

    def calc_ders_range(
        self, approxes: NDArray[np.float64], targets: NDArray[np.float64], weights: Any
    ) -> NDArray[np.float64]:
        """Return (n_rows, 2); gradient leaves do not look at the second column."""
        slope = np.tanh(np.asarray(approxes) * (0.5 / self.width))
        slope *= slope
        derivatives = np.empty((len(slope), 2))
        np.subtract(1.0, slope, out=derivatives[:, 0])
        derivatives[:, 0] *= (np.asarray(targets) - 0.5) * (0.5 / self.width)
        derivatives[:, 1] = -1.0
        return derivatives


def installed() -> bool:
    """Whether CatBoost is installed."""
    return find_spec("catboost") is not None


def train(options: Mapping[str, Any], fold: SyntheticFold, n_steps: int, seed: int) -> Curve:
    """Train CatBoost on a fold and return its errors after every step."""
    from catboost import CatBoost

    settings = {**SHARED, **options, "iterations": n_steps, "random_seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CatBoost warns that the objective is not compiled
        model = CatBoost({**settings, "loss_function": SmoothedError(WIDTH)}).fit(fold.x, fold.y)
    raws, test_raws = (np.stack(list(model.staged_predict(x))) for x in (fold.x, fold.test_x))
    return fold.curve(raws, test_raws)


def run_fold(number: int, n_steps: int, seed: int) -> dict[str, Curve]:
    """Train every method on fold `number`."""
    fold = SyntheticFold.draw(number, seed)
    return {name: train(options, fold, n_steps, seed + number) for name, options in METHODS.items()}
