"""Losses that stand for a ranking metric: StochasticRank, YetiRank, LambdaRank."""

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


def test_draws_change_a_random_gradient_and_nothing_else_does():
    for loss in CASES:
        first = slopes(loss, TARGET, RAW, _core.Draws(1, 2))[0]
        assert np.array_equal(first, slopes(loss, TARGET, RAW, _core.Draws(1, 2))[0])
        other = slopes(loss, TARGET, RAW, _core.Draws(1, 3))[0]
        assert np.array_equal(first, other) == (loss.name == "lambdarank")


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
