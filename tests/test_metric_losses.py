"""Losses that stand for a ranking metric: StochasticRank, YetiRank, LambdaRank."""

import time
from dataclasses import replace

import numpy as np
import pytest

import sglb
from nine_queries import GROUPS, RAW, TARGET, Y, slopes
from sglb import _core
from sglb.losses import LambdaRank, OwnMetric, StochasticRank, Yeti, get_loss
from sglb.losses.ranking_metric import BINARY, CASCADES, GRADED
from sglb.ranking_metrics import by_query
from sglb.target import Target

METRICS = GRADED + BINARY + CASCADES
CASES = [
    StochasticRank(),
    StochasticRank("err", None, sigma=0.5, mu=1.0, n_samples=3),
    StochasticRank("precision", 3, largest=4.0, unit=2.0),
    Yeti(),
    Yeti("map", 5, noise="gumbel", power=0.5, n_orders=4),
    LambdaRank(),
    LambdaRank("dcg", None, "linear", sigma=2.0, normalise=False),
]
every_loss = pytest.mark.parametrize("loss", CASES, ids=repr)


@every_loss
def test_parameters_make_the_same_loss(loss):
    assert get_loss(loss.name, **loss.parameters()) == loss
    adapted = loss.adapt(TARGET)
    assert adapted.largest == 4.0
    assert adapted.adapt(Target.of([9.0, 1.0], groups=[0, 0])) == adapted
    assert get_loss(loss.name, **adapted.parameters()) == adapted


@every_loss
def test_gradients_of_a_query_add_up_to_nothing(loss):
    for draws in (None, _core.Draws(1, 2)):
        gradient, hessian = slopes(loss, TARGET, RAW, draws)
        assert gradient.any()
        assert (hessian >= 0.0).all()
        np.testing.assert_allclose(TARGET.queries.sums(gradient), 0.0, atol=1e-12)


@every_loss
def test_a_step_downhill_improves_the_metric(loss):
    """From equal scores; every metric rises with most steps, the mean over queries with all."""
    loss = loss.adapt(TARGET)
    raw = 1e-3 * RAW
    after = raw - 1e3 * slopes(loss, TARGET, raw)[0]
    assert loss.losses(TARGET, after).sum() < loss.losses(TARGET, raw).sum() - 0.5


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("cutoff", [1, 3, 10])
def test_the_loss_of_a_query_is_minus_its_metric(metric, cutoff):
    losses = StochasticRank(metric, cutoff).losses(TARGET, RAW)
    values = np.nan_to_num(by_query(metric, TARGET, RAW, cutoff))
    np.testing.assert_allclose(TARGET.queries.sums(losses), -values, rtol=1e-12, atol=1e-14)


def test_the_mean_curvature_of_stochastic_rank_is_one():
    loss = StochasticRank("ndcg", 3).adapt(TARGET)
    gradient, hessian = slopes(loss, TARGET, RAW, _core.Draws(1, 2))
    assert hessian.mean() == pytest.approx(1.0)
    plain = StochasticRank("ndcg", 3, unit=1.0)
    raw_gradient, raw_hessian = slopes(plain, TARGET, RAW, _core.Draws(1, 2))
    np.testing.assert_allclose(gradient * loss.unit, raw_gradient)
    np.testing.assert_allclose(hessian * loss.unit, raw_hessian)


def test_a_unit_of_scores_is_only_a_unit():
    single = slopes(StochasticRank(sigma=1.0).adapt(TARGET), TARGET, RAW, _core.Draws(3, 4))
    three = slopes(StochasticRank(sigma=3.0).adapt(TARGET), TARGET, 3 * RAW, _core.Draws(3, 4))
    np.testing.assert_allclose(three[1], single[1])
    np.testing.assert_allclose(three[0], 3 * single[0])


@pytest.mark.parametrize("loss", [StochasticRank(), StochasticRank(unit=2.0)], ids=repr)
def test_the_samples_of_a_curvature_are_those_of_all_rows(loss):
    long = Target.of(np.arange(2000) % 3, groups=np.zeros(2000))
    everything = replace(loss, cutoff=None).adapt(long)
    assert everything.curvature_samples == 32
    assert everything.adapt(TARGET).curvature_samples == 32
    assert replace(loss, curvature_samples=5).adapt(long).curvature_samples == 5


def test_a_fit_computes_the_curvature_once_and_in_parallel(monkeypatch):
    n_threads, compute = [], _core.rank_curvature

    def count(*arguments):
        n_threads.append(arguments[-1])
        compute(*arguments)

    monkeypatch.setattr(_core, "rank_curvature", count)
    X = np.column_stack([Y, RAW])
    model = sglb.SGLBRanker(loss="stochastic_rank", n_estimators=3, n_jobs=2)
    model.fit(X, Y, GROUPS)
    assert n_threads == [2]


def test_a_shift_that_overflows_makes_no_order():
    """The largest shift that is valid moves rows apart; a larger one is an error in the kernel."""
    largest = StochasticRank(mu=1e100, sigma=1e100, unit=1.0).adapt(TARGET)
    gradient, hessian = slopes(largest, TARGET, RAW, _core.Draws(1, 2))
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    ranking, out = largest._ranking(TARGET, "ndcg"), np.empty(len(RAW))
    smoothing = _core.Smoothing(10.0, 1.7e308, 2)
    _core.rank_curvature(ranking, smoothing, _core.Draws(0, 0), out, 1)
    assert np.isnan(out).any()
    _core.stochastic_rank(ranking, RAW, smoothing, _core.Draws(0, 0), out, 1)
    assert np.isnan(out).any()


def test_draws_change_a_random_gradient_and_nothing_else_does():
    for loss in CASES:
        first = slopes(loss, TARGET, RAW, _core.Draws(1, 2))[0]
        assert np.array_equal(first, slopes(loss, TARGET, RAW, _core.Draws(1, 2))[0])
        other = slopes(loss, TARGET, RAW, _core.Draws(1, 3))[0]
        assert np.array_equal(first, other) == (loss.name == "lambdarank")


@pytest.mark.parametrize("loss", [StochasticRank("precision", 9), Yeti("recall", 9)], ids=repr)
def test_a_cutoff_that_no_query_reaches_is_reported(loss):
    target = Target.of(np.arange(18) % 3, groups=np.arange(18) // 9)
    with pytest.warns(UserWarning, match=r"nothing to learn: (precision|recall)@9 of at most 9"):
        loss.adapt(target)
    assert slopes(replace(loss, cutoff=8).adapt(target), target, np.arange(18.0))[0].any()


# A metric of the user's.


def ndcg_at_3(relevances):
    discount = 1 / np.log2(np.arange(3) + 2)
    gains = 2.0**relevances - 1
    best = (np.sort(gains)[::-1][:3] * discount[: len(gains)]).sum()
    return (gains[:3] * discount[: len(gains)]).sum() / best if best else 0.0


@pytest.mark.parametrize(("sigma", "mu"), [(1.0, 0.0), (0.3, 1.0)])
def test_a_metric_of_the_users_own_has_the_gradient_of_the_kernel(sigma, mu):
    native = StochasticRank("ndcg", 3, sigma=sigma, mu=mu, unit=1.0)
    user_metric = OwnMetric(ndcg_at_3, sigma, mu, unit=1.0)
    for draws in (_core.Draws(1, 2), _core.Draws(3, 4)):
        wanted, result = (slopes(loss, TARGET, RAW, draws)[0] for loss in (native, user_metric))
        np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        user_metric.losses(TARGET, RAW), native.losses(TARGET, RAW), rtol=1e-12
    )


def test_the_curvature_of_a_users_metric_is_near_that_of_the_kernel():
    """8 samples against 64: the means over 60 rows agree within a tenth."""
    native, user_metric = (
        StochasticRank("ndcg", 3).adapt(TARGET),
        OwnMetric(ndcg_at_3).adapt(TARGET),
    )
    assert user_metric.unit == pytest.approx(native.unit, rel=0.1)
    assert slopes(user_metric, TARGET, RAW)[1].mean() == pytest.approx(1.0)


def test_a_ranker_learns_by_a_users_metric_which_no_file_contains(tmp_path):
    X = np.column_stack([Y + 0.1 * RAW, RAW])
    model = sglb.SGLBRanker(loss=OwnMetric(ndcg_at_3), n_estimators=10, random_state=0)
    model.fit(X, Y, GROUPS)
    assert model.score(X, Y, GROUPS) > 0.95
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, Y, GROUPS) == model.score(X, Y, GROUPS)
    with pytest.raises(ValueError, match="row 2 has -1"):
        again.score(X, np.where(np.arange(len(Y)) == 2, -1.0, Y), GROUPS)


def test_a_users_metric_is_called_by_one_thread_at_a_time():
    """A metric that would notice, because it waits between its first and its last line."""
    running, most = [], []

    def metric(relevances):
        running.append(1)
        most.append(len(running))
        if len(most) % 100 == 0:
            time.sleep(1e-4)
        running.pop()
        return float(relevances[:3].sum())

    X = np.column_stack([Y + 0.1 * RAW, RAW])
    fit = {"loss": OwnMetric(metric), "n_estimators": 4, "n_chains": 3, "random_state": 0}
    models = [sglb.SGLBRanker(n_jobs=n_jobs, **fit).fit(X, Y, GROUPS) for n_jobs in (1, 2)]
    assert max(most) == 1
    assert models[0].predict(X).tobytes() == models[1].predict(X).tobytes()


def test_a_users_metric_that_is_not_finite_is_named():
    with pytest.raises(ValueError, match="metric of loss 'own_metric' returned nan"):
        OwnMetric(lambda relevances: np.nan).adapt(TARGET)
    with pytest.raises(TypeError, match="must be a function"):
        OwnMetric("ndcg")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StochasticRank("auc"), "metric of loss 'stochastic_rank' must be one of ndcg"),
        (lambda: StochasticRank("decay"), "metric of loss"),
        (lambda: LambdaRank("map"), "metric of loss 'lambdarank' must be one of ndcg, dcg"),
        (lambda: StochasticRank(gain="cubic"), "gain of loss"),
        (lambda: StochasticRank(cutoff=-1), "cutoff of loss"),
        (lambda: StochasticRank(cutoff=2.5), "cutoff of loss"),
        (lambda: StochasticRank("precision", None), "needs a cutoff"),
        (lambda: StochasticRank("recall", None), "'recall' of loss 'stochastic_rank' needs a cut"),
        (lambda: Yeti("recall"), "metric 'recall' of loss 'yeti' needs a cutoff"),
        (lambda: StochasticRank(curvature_samples=0), "curvature_samples of loss"),
        (lambda: StochasticRank(mu=1.7e308), "mu of loss 'stochastic_rank' must be within"),
        (lambda: OwnMetric(ndcg_at_3, mu=-1e101), "mu of loss 'own_metric' must be within"),
        (lambda: StochasticRank(sigma=0.0), "sigma of loss"),
        (lambda: StochasticRank(mu=np.inf), "mu of loss"),
        (lambda: StochasticRank(n_samples=0), "n_samples of loss"),
        (lambda: Yeti(noise="cauchy"), "noise of loss"),
        (lambda: Yeti(n_orders=1.5), "n_orders of loss"),
        (lambda: Yeti(power=-1.0), "power of loss"),
        (lambda: LambdaRank(sigma=-1.0), "sigma of loss"),
    ],
)
def test_invalid_parameters_are_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()
