"""Model files that every later version must read, and what they predict.

    python tests/golden.py          # makes the files that are not there yet; old ones stay

A file is never made again: it shows that models of old versions still load and predict the same.
"""

import json
from pathlib import Path

import numpy as np

from sglb import Checkpoint, SGLBClassifier, SGLBRanker, SGLBRegressor
from sglb.estimators.posterior import Posterior
from sglb.losses import StochasticRank
from sglb.samplers import Move
from sglb.transition import Transition

FOLDER = Path(__file__).parent / "data" / "golden"
FORMAT = 2
SMALL = {"n_estimators": 6, "max_depth": 3, "random_state": 0, "n_jobs": 1}
TINY = SMALL | {"n_estimators": 3, "max_depth": 2}


class HeavyBall:
    """A sampler with momentum."""

    def move(self, step):
        return Move(0.1, noise=0.1, transition=Transition([[1.0, 0.5], [0.0, 0.5]], [1.0, 1.0]))


def table(seed=0):
    """Rows with numbers, a missing value here and there, and two columns of labels."""
    rng = np.random.default_rng(seed)
    few, many = rng.integers(0, 4, 80), rng.integers(0, 30, 80)
    rows = [
        [None if i % 9 == 0 else round(float(x), 3), round(float(z), 3), f"f{a}", f"m{b}"]
        for i, (x, z, a, b) in enumerate(zip(*rng.normal(size=(2, 80)), few, many, strict=True))
    ]
    return np.array(rows, dtype=object)


def numbers():
    return np.array([[np.nan if x is None else x, z] for x, z, *_ in table()], dtype=float)


def target():
    X = numbers()
    return np.nan_to_num(X[:, 0]) + X[:, 1] ** 2


MODELS = {
    "numbers": lambda: SGLBRegressor(**SMALL).fit(numbers(), target()),
    "poisson": lambda: SGLBRegressor(**SMALL, loss="poisson").fit(numbers(), target().round() ** 2),
    "two_classes": lambda: SGLBClassifier(**SMALL).fit(numbers(), target() > 1),
    "three_classes": lambda: SGLBClassifier(**SMALL).fit(
        numbers(), np.array(["a", "b", "c"])[np.digitize(target(), [0.5, 1.5])]
    ),
    "categories": lambda: SGLBClassifier(**SMALL, categorical_features=[2, 3]).fit(
        table(), target() > 1
    ),
    "chains": lambda: SGLBClassifier(
        **SMALL, n_chains=3, temperature=1, early_stopping_rounds=1
    ).fit(numbers()[:60], target()[:60] > 1, eval_set=(numbers()[60:], target()[60:] > 1)),
    "momentum": lambda: SGLBRegressor(**SMALL, sampler=HeavyBall(), leaf_method="gradient").fit(
        numbers(), target()
    ),
    "hamiltonian": lambda: SGLBClassifier(
        **SMALL, sampler="hamiltonian", class_weight="balanced"
    ).fit(numbers(), target() > 1),
    "tempering": lambda: SGLBRegressor(**TINY, sampler="tempering", temperature=1.0).fit(
        numbers(), target()
    ),
    "quantiles": lambda: SGLBRegressor(**SMALL, loss="quantile", quantile=[0.1, 0.5, 0.9]).fit(
        numbers(), target()
    ),
    "ranker": lambda: SGLBRanker(**SMALL).fit(
        numbers(), np.digitize(target(), [0.5, 1.5]), group=np.arange(80) // 10
    ),
    "uncertainty": lambda: SGLBRegressor(**TINY, uncertainty=True).fit(
        numbers()[-36:], target()[-36:]
    ),
    "amounts": lambda: SGLBRegressor(**TINY, loss="gamma", uncertainty=True).fit(
        numbers()[:12], 1.0 + np.abs(target()[:12])
    ),
    "posterior": lambda: drawn(table(), categorical_features=[2, 3], n_chains=2),
    "full_posterior": lambda: drawn(numbers()[:24], kind="full", n_steps=20),
    "long_chains": lambda: drawn(numbers()[:24], kind="paper", n_steps=20, temperature=1),
    "scheduled_ranker": lambda: SGLBRanker(
        **SMALL, loss=StochasticRank("ndcg", 5, sigma="geometric(3, 1)")
    ).fit(numbers(), np.clip(target().round(), 0, 4), group=np.arange(80) % 9),
    "costs": lambda: SGLBClassifier(**SMALL, loss="cost").fit(
        numbers(), target() > 1, costs=[[0, 1], [5, 0]]
    ),
}


def drawn(rows, *, kind="laplace", n_steps="auto", **parameters):
    """Draws of a small classifier."""
    y = target()[: len(rows)] > 1
    model = SGLBClassifier(**TINY, **parameters).fit(rows, y)
    return model.posterior(rows, y, kind=kind, n_draws=4, n_steps=n_steps, prior_variance=0.3)


def rows_for(name):
    return table() if name in ("categories", "posterior") else numbers()


def predictions(model, name):
    """Everything that a model or a posterior predicts, in hexadecimal digits."""
    rows = rows_for(name)[:20]
    parts = [model.predict_raw(rows)]
    parts.append(model.predict_proba(rows) if hasattr(model, "classes_") else model.predict(rows))
    if isinstance(model, Posterior):
        parts.append(model.model.predict_proba(rows))
    digits = [value.hex() for part in parts for value in np.ravel(part).tolist()]
    if name in ("uncertainty", "amounts"):  # by functions of SciPy, whose last bits may change
        values = [*model.predict_interval(rows).ravel(), *model.predict_uncertainty(rows).knowledge]
        digits += [f"{value:.7g}" for value in values]
    return digits


def write_checkpoint(path):
    """The checkpoint of a fit of two chains, and no file beside it."""
    chains = SGLBClassifier(**TINY, n_chains=2, temperature=1)
    chains.fit(numbers(), target() > 1, callbacks=Checkpoint(path, every=3))
    path.with_name(f"{path.name}.previous").unlink(missing_ok=True)


if __name__ == "__main__":
    kept = FOLDER / f"two_chains_{FORMAT}.checkpoint"
    if not kept.exists():
        write_checkpoint(kept)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        path = FOLDER / f"{name}_{FORMAT}.sglb"
        if not path.exists():
            model = make()
            model.save(path)
            path.with_suffix(".json").write_text(json.dumps(predictions(model, name)) + "\n")
