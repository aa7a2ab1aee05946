"""Losses of rankings: gradients, laws of queries, weights."""

import numpy as np
import pytest

from nine_queries import GROUPS, RAW, TARGET, N, Y, slopes
from sglb import _core
from sglb.losses import LOSSES, PairwiseLogistic, QuerySquared, RankingLoss, XeNdcg, get_loss
from sglb.losses.ranking_metric import MetricLoss
from sglb.target import Target

CASES = [QuerySquared(), XeNdcg(), PairwiseLogistic()]
every_loss = pytest.mark.parametrize("loss", CASES, ids=repr)


def test_the_cases_cover_every_registered_loss_of_rankings():
    # Those of test_metric_losses.py are no derivatives that differences could show.
    by_group = {name: kind for name, kind in LOSSES.items() if kind.by_group}
    others = {name: kind for name, kind in by_group.items() if not issubclass(kind, MetricLoss)}
    assert {loss.name: type(loss) for loss in CASES} == others
    assert all(kind.task == "ranking" for kind in by_group.values())


@every_loss
def test_a_ranking_loss_says_what_it_is(loss):
    assert isinstance(loss, RankingLoss)
    assert not loss.independent
    assert not loss.row_wise
    assert loss.init(TARGET).tolist() == [0.0]
    assert loss.starts_at_zero
    assert get_loss(loss.name, **loss.parameters()) == loss


@every_loss
def test_the_gradient_is_the_derivative_of_the_sum_over_queries(loss):
    gradient, _ = slopes(loss, TARGET, RAW)
    for row in range(N):
        step = np.zeros(N)
        step[row] = 1e-5
        change = loss.losses(TARGET, RAW + step).sum() - loss.losses(TARGET, RAW - step).sum()
        assert gradient[row] == pytest.approx(change / 2e-5, abs=1e-8)
    np.testing.assert_array_equal(loss.gradients(TARGET, RAW), gradient)


@every_loss
def test_the_curvature_bounds_the_second_derivative_of_a_row(loss):
    _, hessian = slopes(loss, TARGET, RAW)
    np.testing.assert_array_equal(loss.curvatures(TARGET, RAW, 1.0), hessian)
    for row in range(N):
        step = np.zeros(N)
        step[row] = 1e-5
        above, below = (slopes(loss, TARGET, RAW + s)[0][row] for s in (step, -step))
        second = (above - below) / 2e-5
        assert -1e-8 <= second <= hessian[row] + 1e-8
        assert loss.smoothness is None or hessian[row] <= loss.smoothness


@every_loss
def test_each_query_is_what_it_is_alone(loss):
    together = slopes(loss, TARGET, RAW)
    for query in range(9):
        rows = TARGET.groups == query
        alone = slopes(loss, Target.of(Y[rows], groups=np.zeros(rows.sum())), RAW[rows])
        for whole, part in zip(together, alone, strict=True):
            assert whole[rows].tobytes() == part.tobytes()
        np.testing.assert_array_equal(loss.gradient(Y[rows], RAW[rows]), alone[0])
        np.testing.assert_array_equal(loss.losses(TARGET, RAW)[rows], loss.loss(Y[rows], RAW[rows]))


@every_loss
def test_gradients_of_a_query_add_up_to_nothing_and_ignore_a_common_shift(loss):
    gradient, hessian = slopes(loss, TARGET, RAW)
    np.testing.assert_allclose(TARGET.queries.sums(gradient), 0.0, atol=1e-13)
    shifted = slopes(loss, TARGET, RAW + 100.0 * GROUPS)
    np.testing.assert_allclose(shifted[0], gradient, atol=1e-12)
    np.testing.assert_allclose(shifted[1], hessian, atol=1e-12)


@every_loss
def test_one_document_and_equal_relevances_have_no_gradient(loss):
    alone = Target.of([3.0, 1.0], groups=[0, 1])
    np.testing.assert_allclose(slopes(loss, alone, np.array([5.0, -2.0]))[0], 0.0)
    equal = Target.of([2.0, 2.0, 2.0], groups=[4, 4, 4])
    np.testing.assert_allclose(slopes(loss, equal, np.full(3, 0.7))[0], 0.0, atol=1e-15)


@every_loss
def test_the_order_of_the_rows_does_not_matter(loss):
    order = np.random.default_rng(1).permutation(N)
    gradient, hessian = slopes(loss, TARGET, RAW)
    result = slopes(loss, TARGET.take(order), RAW[order])
    assert result[0].tobytes() == gradient[order].tobytes()
    assert result[1].tobytes() == hessian[order].tobytes()


def test_whole_weights_are_repeated_rows_of_a_query():
    count = np.random.default_rng(2).integers(1, 4, N)
    weighted = Target.of(Y, count.astype(float), groups=GROUPS)
    repeated = Target.of(np.repeat(Y, count), groups=np.repeat(GROUPS, count))
    result = slopes(QuerySquared(), weighted, RAW)[0]
    wanted = slopes(QuerySquared(), repeated, np.repeat(RAW, count))[0]
    np.testing.assert_allclose(np.repeat(result, count), wanted, atol=1e-14)


def test_a_query_without_weight_has_finite_losses():
    """An evaluation set may have such queries; their losses count nothing."""
    target = Target.of(Y, np.where(GROUPS == 3, 0.0, 1.5), groups=GROUPS)
    losses = QuerySquared().losses(target, RAW)
    rest = GROUPS != 3
    expected = QuerySquared().losses(target.take(rest), RAW[rest])
    assert np.array_equal(losses[rest], expected)
    assert target.mean(losses) == pytest.approx(expected.mean())


def test_query_squared_by_hand():
    # Residuals 1, 3 | 5 with means 2 | 5.
    target = Target.of([0.0, 0.0, 1.0], groups=[0, 0, 1])
    gradient, hessian = slopes(QuerySquared(), target, np.array([1.0, 3.0, 6.0]))
    assert gradient.tolist() == [-1.0, 1.0, 0.0]
    assert hessian.tolist() == [1.0, 1.0, 1.0]
    assert QuerySquared().losses(target, np.array([1.0, 3.0, 6.0])).tolist() == [0.5, 0.5, 0.0]


def test_xendcg_by_hand():
    # phi - u = 1/2 and 3/2; softmax of (0, log 3) = 1/4, 3/4.
    target = Target.of([0.0, 1.0], groups=[0, 0])
    gradient, hessian = slopes(XeNdcg(), target, np.array([0.0, np.log(3.0)]))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-15)
    np.testing.assert_allclose(hessian, 3 / 16)


def test_xendcg_draws_relevances_whose_gradient_has_the_expected_mean():
    """4,000 draws; |mean - expectation| is within 5 standard errors (error rate 6e-7). The share of
    a drawn phi is not linear in u: the expectation of a query of two rows is a quadrature.
    """
    target, raw = Target.of([0.0, 2.0], groups=[0, 0]), np.zeros(2)
    u = (np.arange(1000) + 0.5) / 1000
    first = (1.0 - u)[:, None] / ((1.0 - u)[:, None] + 4.0 - u[None])
    draws = np.array(
        [slopes(XeNdcg(), target, raw, _core.Draws(5, step))[0] for step in range(4000)]
    )
    error = draws[:, 0].std() / np.sqrt(len(draws))
    assert abs(draws[:, 0].mean() - (0.5 - first.mean())) < 5 * error
    np.testing.assert_allclose(draws.sum(axis=1), 0.0, atol=1e-15)
    assert len(np.unique(draws[:, 0])) == len(draws)


@every_loss
def test_scores_far_apart_are_finite(loss):
    gradient, hessian = slopes(loss, TARGET, 1e6 * RAW)
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert np.isfinite(loss.losses(TARGET, 1e6 * RAW)).all()


@every_loss
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_relevances_outside_of_the_domain_are_rejected_with_their_row(loss, value):
    with pytest.raises(ValueError, match=f"loss '{loss.name}' needs .*, row 1 has {value}"):
        loss.check_target(Target.of([0.0, value], groups=[0, 0]))


def test_gains_of_large_relevances_are_rejected():
    large = Target.of([0.0, 51.0], groups=[0, 0])
    QuerySquared().check_target(large)
    with pytest.raises(
        ValueError, match=r"'xendcg' needs a relevance of at most 50 .*row 1 has 51"
    ):
        XeNdcg().check_target(large)


@every_loss
def test_each_copy_of_the_rows_has_queries_of_its_own(loss):
    raw = np.concatenate([RAW, RAW[::-1], 3.0 * RAW])
    together = slopes(loss, TARGET.copies(3), raw)
    for copy in range(3):
        rows = slice(copy * N, (copy + 1) * N)
        alone = slopes(loss, TARGET, raw[rows])
        for whole, part in zip(together, alone, strict=True):
            np.testing.assert_allclose(whole[rows], part, atol=1e-15)
