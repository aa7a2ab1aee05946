"""Labels from standard-normal features. float32, as most tables are read."""

import numpy as np


def interactions(n_features):
    """x0 x1 + sin(2 x2) + x3^2 - 1 + x4 / 2 + noise > 0; the other features say nothing."""

    def draw(n_rows, seed):
        random = np.random.default_rng(seed)
        X = random.standard_normal((n_rows, n_features), dtype=np.float32)
        score = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + X[:, 3] ** 2 - 1.0 + 0.5 * X[:, 4]
        return X, (score + random.standard_normal(n_rows, dtype=np.float32) > 0).astype(np.int64)

    return draw


def additive(n_rows, seed):
    """x0 + sin(2 x1) + x2^2 - 1 + noise > 0, which stumps can learn."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, 3), dtype=np.float32)
    score = X[:, 0] + np.sin(2.0 * X[:, 1]) + X[:, 2] ** 2 - 1.0
    return X, (score + random.standard_normal(n_rows, dtype=np.float32) > 0).astype(np.int64)


def classes(n_features, n_classes):
    """The class with the largest of n_classes noisy sums over 20 features and their sines."""

    def draw(n_rows, seed):
        random = np.random.default_rng(seed)
        slopes, waves = random.standard_normal((2, 20, n_classes), dtype=np.float32)
        X = random.standard_normal((n_rows, n_features), dtype=np.float32)
        score = X[:, :20] @ slopes + np.sin(2.0 * X[:, :20]) @ waves
        noise = random.gumbel(size=score.shape).astype(np.float32)
        return X, (score + noise).argmax(axis=1)

    return draw
