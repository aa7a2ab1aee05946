"""Classifiers: what the posterior costs in log loss, and whether it knows rows of another domain.

Two kinds of foreign rows are made from the test rows of a table:

    permuted     each column permuted by itself: no column is strange, their combinations are
    foreign      numeric columns are those of another table, with mean and standard deviation of
                 the training rows; columns of categories are permuted
"""

import time

import numpy as np

from benchmarks.quality.libraries import get_library
from benchmarks.quality.protocol import Part, Protocol, categorical
from benchmarks.quality.worker import parts_of
from benchmarks.uncertainty.methods import MAX_ROUNDS
from sglb.calibration import (
    expected_calibration_error,
    out_of_domain_auc,
    prediction_rejection_ratio,
)
from sglb.datasets import load_table
from sglb.uncertainty import of_probabilities

MOST_ROWS = 20_000
TABLES = (
    *("adult", "credit_default", "electricity", "higgs_26k", "kdd09_upselling_50k45f"),
    *("click_40k", "internet", "kick", "covertype", "poker_100k"),
)
N_STATES = 10  # of a virtual ensemble


def load(name, seed, max_rows=MOST_ROWS):
    """Training, evaluation and test rows, and the task."""
    table = load_table(name)
    return parts_of(table, seed, max_rows), table.task


def permuted(frame, seed):
    rng = np.random.default_rng(seed)
    order = {name: rng.permutation(len(frame)) for name in frame.columns}
    return frame.assign(
        **{name: frame[name].iloc[order[name]].reset_index(drop=True) for name in frame.columns}
    )


def foreign(frame, train, other, seed):
    """`frame` with numeric columns of `other`, in the units of the columns of `train`."""
    result = permuted(frame, seed)
    numeric = [name for name in frame.columns if name not in categorical(frame)]
    source = other[[name for name in other.columns if name not in categorical(other)]]
    source = source.loc[:, source.std() > 0.0]
    rows = np.random.default_rng(seed).integers(0, len(other), len(frame))
    for position, name in enumerate(numeric):
        column = source.iloc[:, position % source.shape[1]]
        z = ((column - column.mean()) / column.std()).iloc[rows].to_numpy(dtype=np.float64)
        result[name] = train[name].mean() + train[name].std() * z
    return result


def judge(probability, y, prefix=""):
    """Log loss and calibration error of probabilities (n_rows, n_classes)."""
    truth = np.maximum(probability[np.arange(len(y)), y], 1e-15)
    return {
        f"{prefix}loss": float(-np.mean(np.log(truth))),
        f"{prefix}ece": expected_calibration_error(probability, y),
    }


def judge_knowledge(uncertainty, y, outside):
    """Mean knowledge, how well total entropy finds errors, and AUC for each kind of rows."""
    wrong = (uncertainty.mean.argmax(axis=1) != y).astype(np.float64)
    result = {
        "knowledge": float(uncertainty.knowledge.mean()),
        "prr": prediction_rejection_ratio(wrong, uncertainty.total),
    }
    for kind, other in outside.items():
        for key in ("knowledge", "total"):
            inside = getattr(uncertainty, key)
            result[f"{kind}_{key}"] = out_of_domain_auc(inside, getattr(other, key))
    return result


def spread(raw):
    """Variance over draws of raw scores (n_draws, n_rows[, n_classes]), of all classes together.

    Unlike knowledge it does not care how likely the classes are. Only differences between classes
    count, and a single raw score is the difference of two.
    """
    if raw.ndim == 2:
        return raw.var(axis=0)
    return (raw - raw.mean(axis=2, keepdims=True)).var(axis=0).sum(axis=1)


def judge_spread(inside, outside):
    """AUC of the spread for each kind of rows."""
    return {f"{kind}_spread": out_of_domain_auc(inside, other) for kind, other in outside.items()}


def measure_sglb(parts, task, outside, seed, threads, **settings):
    """The default model with early stopping, and `posterior(X, y)` around it."""
    train, valid, test = parts
    model, fit_seconds = _timed_fit("sglb", train, valid, task, seed, threads, settings)
    start = time.process_time()
    post = model.posterior(train.X, train.y)
    times = {"fit_seconds": fit_seconds, "posterior_seconds": time.process_time() - start}
    return times | judge_posterior(model, post, test, outside)


def measure_lightgbm(parts, task, outside, seed, threads):
    """LightGBM's default model with early stopping, and `sglb.posterior_of` it."""
    import sglb

    train, valid, test = parts
    model, fit_seconds = _timed_fit("lightgbm", train, valid, task, seed, threads, {})
    start = time.process_time()
    post = sglb.posterior_of(model, train.X, train.y, n_jobs=threads)
    times = {"fit_seconds": fit_seconds, "posterior_seconds": time.process_time() - start}
    return times | judge_posterior(model, post, test, outside)


def judge_posterior(model, post, test, outside):
    """What the mean of the draws costs, and what their spread tells."""
    u = post.uncertainty(test.X)
    strange = {kind: post.uncertainty(frame) for kind, frame in outside.items()}
    result = judge(model.predict_proba(test.X), test.y, "model_") | judge(u.mean, test.y)
    plan = {"prior_variance": post.plan.prior_variance}
    spreads = {kind: spread(post.predict_raw(frame)) for kind, frame in outside.items()}
    result |= judge_spread(spread(post.predict_raw(test.X)), spreads)
    return result | judge_knowledge(u, test.y, strange) | plan


def measure_catboost(parts, task, outside, seed, threads, sampling=False):
    """Virtual ensembles of CatBoost: of its default, or of posterior_sampling.

    The default stops early. Posterior sampling trains all rounds, as its authors do.
    """
    library = get_library("catboost")
    frames = library.prepare(*(part.X for part in parts), *outside.values())
    train, valid, test = (
        Part(frame, part.y) for frame, part in zip(frames[:3], parts, strict=True)
    )
    if sampling:
        model, seconds = _fit_sampling(train, task, seed, threads)
    else:
        model, seconds = _timed_fit("catboost", train, valid, task, seed, threads, {})
    raw = _virtual(model, test.X)
    strange_raw = {
        kind: _virtual(model, frame) for kind, frame in zip(outside, frames[3:], strict=True)
    }
    u = of_probabilities(softmax(raw))
    strange = {kind: of_probabilities(softmax(states)) for kind, states in strange_raw.items()}
    scores = judge(model.predict_proba(test.X), test.y, "model_") | judge(u.mean, test.y)
    spreads = {kind: spread(states) for kind, states in strange_raw.items()}
    scores |= judge_spread(spread(raw), spreads)
    return scores | judge_knowledge(u, test.y, strange) | {"fit_seconds": seconds}


def _timed_fit(library, train, valid, task, seed, threads, settings):
    start = time.process_time()
    model = get_library(library).fit(train, valid, Protocol(task, seed, threads), **settings)
    return model, time.process_time() - start


def _fit_sampling(train, task, seed, threads):
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(
        iterations=MAX_ROUNDS,
        posterior_sampling=True,
        random_seed=seed,
        thread_count=threads,
        verbose=False,
        allow_writing_files=False,
    )
    names = [name for name, kind in train.X.dtypes.items() if kind.kind == "O"]
    start = time.process_time()
    model.fit(train.X, train.y, cat_features=names)
    return model, time.process_time() - start


def _virtual(model, frame):
    """Raw scores of the states of a virtual ensemble, (n_states, n_rows[, n_classes])."""
    count = min(N_STATES, model.tree_count_ // 2)
    raw = model.virtual_ensembles_predict(
        frame, prediction_type="VirtEnsembles", virtual_ensembles_count=count
    )
    raw = np.moveaxis(np.asarray(raw).reshape(len(frame), count, -1), 1, 0)
    return raw[:, :, 0] if raw.shape[2] == 1 else raw


def softmax(raw):
    """Probabilities of classes (n_states, n_rows, n_classes); a single raw score is a log odds."""
    if raw.ndim == 2:
        raw = np.stack([np.zeros_like(raw), raw], axis=2)
    odds = np.exp(raw - raw.max(axis=2, keepdims=True))
    return odds / odds.sum(axis=2, keepdims=True)


def _sampling(*arguments):
    return measure_catboost(*arguments, sampling=True)


def _five_chains(*arguments):
    return measure_sglb(*arguments, n_chains=5)


MEASURES = {
    "sglb": measure_sglb,
    "sglb, 5 chains": _five_chains,
    "lightgbm, posterior_of": measure_lightgbm,
    "catboost": measure_catboost,
    "catboost, sampling": _sampling,
}


def measure(name, split, method, threads, other, max_rows=MOST_ROWS):
    """Scores of one method on a table; `other` is the table that foreign rows are made of."""
    parts, task = load(name, split, max_rows)
    stranger = load_table(other).X.to_pandas()
    test = parts[2].X
    outside = {
        "permuted": permuted(test, split),
        "foreign": foreign(test, parts[0].X, stranger, split),
    }
    return MEASURES[method](parts, task, outside, split, threads)


def other_table(name):
    """The next table, of which foreign rows are made."""
    return TABLES[(TABLES.index(name) + 1) % len(TABLES)]
