"""Does the Langevin switch add noise? sglb and CatBoost, side by side.

    python -m benchmarks.langevin

Each library trains on the same 1,000 rows. "Noise in the leaves": does the switch change the
predictions at all? "Noise in the structure": over ten seeds, how many different first splits does
a strongly noisy chain choose? The theory needs both.
"""

import numpy as np
from catboost import CatBoostClassifier

from sglb import SGLBClassifier

SEEDS = range(10)
HOT = 10.0  # temperature at which noise outweighs the gradient


def rows():
    random = np.random.default_rng(0)
    X = random.standard_normal((1000, 5))
    return X, (X[:, 0] + 0.5 * X[:, 1] + random.standard_normal(1000) > 0).astype(int)


def catboost(X, y, *, langevin, seed=0, depth=1, trees=20, leaves=None):
    # Without shrinking, which the switch also turns on, what is left is the noise.
    noise = {"model_shrink_rate": 0.0}
    if langevin:
        noise |= {"langevin": True, "diffusion_temperature": 1 / HOT}
    if leaves:
        noise |= {"leaf_estimation_method": leaves, "leaf_estimation_iterations": 1}
    model = CatBoostClassifier(
        iterations=trees, depth=depth, learning_rate=0.1, random_seed=seed, verbose=False,
        random_strength=0.0, bootstrap_type="No", boosting_type="Plain",
        allow_writing_files=False, **noise,
    )  # fmt: skip
    return model.fit(X, y)


def sglb(X, y, *, langevin, seed=0, depth=1, trees=20, leaves="auto"):
    noise = {"sampler": "plain"}
    if langevin:
        noise = {"sampler": "langevin", "temperature": HOT, "shrink_rate": 0.0}
    model = SGLBClassifier(
        n_estimators=trees, max_depth=depth, learning_rate=0.1, random_state=seed,
        leaf_method=leaves, **noise,
    )  # fmt: skip
    return model.fit(X, y)


def change(train, X, y, raw, **options):
    """Largest change of a raw score that the switch makes."""
    on, off = (raw(train(X, y, langevin=switch, **options)) for switch in (True, False))
    return np.abs(on - off).max()


def first_splits(train, X, y, describe, **options):
    return len(
        {describe(train(X, y, langevin=True, seed=seed, trees=1, **options)) for seed in SEEDS}
    )


def catboost_split(model):
    borders = model.get_borders()
    # The only feature that changes the prediction of a single stump is the one it splits on.
    importance = model.get_feature_importance()
    feature = int(np.argmax(importance))
    grid = np.zeros((len(borders[feature]) + 1, 5))
    edges = np.array(borders[feature])
    grid[:, feature] = np.append(edges - 1e-6, edges[-1] + 1.0)
    raw = model.predict(grid, prediction_type="RawFormulaVal")
    return feature, int(np.argmax(np.abs(np.diff(raw)) > 0))


def sglb_split(model):
    structure = model.trace_.structure(0)
    return tuple(structure.features), tuple(structure.highs)


def main():
    X, y = rows()
    table = [
        (
            "CatBoost langevin=True, defaults (Newton leaves)",
            change(catboost, X, y, lambda m: m.predict(X, prediction_type="RawFormulaVal")),
            first_splits(catboost, X, y, catboost_split),
        ),
        (
            "CatBoost langevin=True, Gradient leaves, 1 step",
            change(
                catboost, X, y, lambda m: m.predict(X, prediction_type="RawFormulaVal"),
                leaves="Gradient",
            ),
            first_splits(catboost, X, y, catboost_split, leaves="Gradient"),
        ),
        (
            "sglb sampler='langevin', defaults (Newton leaves)",
            change(sglb, X, y, lambda m: m.decision_function(X)),
            first_splits(sglb, X, y, sglb_split),
        ),
        (
            "sglb sampler='langevin', gradient leaves",
            change(sglb, X, y, lambda m: m.decision_function(X), leaves="gradient"),
            first_splits(sglb, X, y, sglb_split, leaves="gradient"),
        ),
    ]  # fmt: skip
    print(f"| temperature {HOT:g} | largest change of a raw score | first splits over 10 seeds |")
    print("|---|---|---|")
    for name, size, splits in table:
        print(f"| {name} | {size:.3g} | {splits} |")


if __name__ == "__main__":
    main()
