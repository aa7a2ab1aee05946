"""Small fits and predictions that together pass through every kernel.

The sizes make one kernel after the other the heavy one: many rows the histograms, many features
and bins the scores, several outputs and noise the quantising. One thread, fixed seeds.
"""

import numpy as np


def _normal(n_rows, n_features):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((n_rows, n_features), dtype=np.float32)
    return X, X[:, 0] * X[:, 1] + generator.standard_normal(n_rows)


def _settings(**changes):
    fixed = {"n_estimators": 3, "max_depth": 6, "max_bins": 64, "n_jobs": 1, "random_state": 0}
    return fixed | changes


def rows():
    """Many rows, few features: histograms, partition, leaves; then prediction, of states too."""
    from sglb import SGLBClassifier

    X, score = _normal(20_000, 16)
    model = SGLBClassifier(**_settings()).fit(X, score > 0)
    model.predict_proba(X)
    model.predict_uncertainty(X, n_states=2)


def wide():
    """Few rows, many features and bins: scores."""
    from sglb import SGLBRegressor

    X, score = _normal(500, 200)
    SGLBRegressor(**_settings(max_bins=255)).fit(X, score).predict(X)


def classes():
    """Five outputs a tree."""
    from sglb import SGLBClassifier

    X, score = _normal(4_000, 8)
    label = np.digitize(score, [-1.5, -0.5, 0.5, 1.5])
    SGLBClassifier(**_settings()).fit(X, label).predict_proba(X)


def posterior():
    """Noise at temperature 1 on gradient leaves, weights, states of the chain."""
    from sglb import SGLBRegressor

    X, score = _normal(4_000, 8)
    settings = _settings(n_estimators=20, temperature=1.0, leaf_method="gradient", max_depth=4)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    SGLBRegressor(**settings).fit(X, score, sample_weight=weight).predict_uncertainty(X)


def sample():
    """Structures on a sample of the rows; two steps in the leaves."""
    from sglb import SGLBClassifier

    X, score = _normal(20_000, 16)
    SGLBClassifier(**_settings(structure_sample=5_000, leaf_steps=2)).fit(X, score > 0)


SCENARIOS = {single.__name__: single for single in (rows, wide, classes, posterior, sample)}
