"""Gradients of ranking losses: kernels equal their twins, estimates are unbiased, bits are stable.

The smoothed metric of a few documents is known exactly: a sum over their orders of probability
times metric (`reference_ranking.order_slopes`).
"""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_ranking as reference
from problems import generators, seeds, steps
from reference_ranking import Documents, Metric, Shuffles, Smoothing
from sglb import _core
from sglb.queries import Queries
from sglb.weights import as_weights

# Draws of a test of unbiasedness. The suite has 432 differences to test: a correct kernel passes 4
# standard errors with probability .97, and seeds are fixed.
N_DRAWS = int(os.environ.get("SGLB_RANKING_DRAWS", "40000"))
CUTOFFS = (1, 2, 3, 5, 1000)
THREADS = (1, 2, 3)
SIZES = (0, 1, 2, 3, 7, 8, 9, 17)
PLAIN = Smoothing()

metrics = st.builds(
    Metric, st.sampled_from(reference.METRICS), st.sampled_from(CUTOFFS), st.just(0.85)
)
smoothings = st.builds(
    Smoothing, st.sampled_from([0.3, 1.0, 3.0]), st.sampled_from([0.0, 1.0]), st.integers(1, 3)
)


def gains_of(name, relevance):
    """The gains that a metric takes, of grades 0 .. 4."""
    if name in reference.BINARY:
        return (relevance > 1).astype(float)
    if name in reference.CASCADES:
        return (2**relevance - 1) / 2**4
    return 2**relevance - 1


def make_queries(sizes, rng=None, numbers=None):
    """Queries of these sizes; rows in order, or mixed by a generator."""
    n_rows = sum(sizes)
    order = np.arange(n_rows) if rng is None else rng.permutation(n_rows)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    order = order.astype(np.uint32)
    queries = _core.Queries(order, starts, *([] if numbers is None else [numbers]))
    return SimpleNamespace(core=queries, rows=np.split(order, starts[1:-1]), n_rows=n_rows)


def make_problem(rng, name, sizes=None):
    """Queries of all sizes with tied scores, equal relevance and, of cascades, certain stops."""
    sizes = rng.permutation(SIZES) if sizes is None else sizes
    queries = make_queries(sizes, rng)
    relevance = rng.integers(0, 5, queries.n_rows).astype(float)
    if len(sizes) > 1:
        relevance[queries.rows[rng.integers(len(sizes))]] = 2.0
    gain = gains_of(name, relevance)
    if name in reference.CASCADES:
        gain[rng.random(queries.n_rows) < 0.2] = 1.0
    z = rng.normal(size=queries.n_rows)
    tied = rng.random(queries.n_rows) < 0.3
    z[tied] = 0.5
    return SimpleNamespace(queries=queries, relevance=relevance, gain=gain, z=z)


def target_of(problem, metric):
    return _core.RankingTarget(problem.queries.core, problem.relevance, problem.gain, *metric)


def by_query(problem, twin):
    """What a twin says of the documents of each query, as arrays over rows."""
    results = None
    for rows in problem.queries.rows:
        documents = Documents(problem.relevance[rows], problem.gain[rows], problem.z[rows], rows)
        parts = np.atleast_2d(twin(documents))
        if results is None:
            results = np.zeros((len(parts), problem.queries.n_rows))
        results[:, rows] = parts
    return results


def stochastic_rank(target, z, smoothing=PLAIN, draws=(0, 0), n_threads=1):
    gradient = np.full(len(z), np.nan)
    smoothing = _core.Smoothing(*smoothing)
    most = _core.stochastic_rank(target, z, smoothing, _core.Draws(*draws), gradient, n_threads)
    assert most == np.abs(gradient).max(initial=0.0)
    return gradient


def rank_curvature(target, n_rows, smoothing=PLAIN, draws=(0, 0), n_threads=1):
    hessian = np.full(n_rows, np.nan)
    smoothing = _core.Smoothing(*smoothing)
    _core.rank_curvature(target, smoothing, _core.Draws(*draws), hessian, n_threads)
    return hessian


def with_hessian(kernel, n_rows, n_threads=1):
    """Gradient and hessian (2, N) of a kernel that takes gradient, hessian, n_threads."""
    slopes = np.full((2, n_rows), np.nan)
    most = kernel(slopes[0], slopes[1], n_threads)
    assert most == np.abs(slopes[0]).max(initial=0.0)
    alone = np.full(n_rows, np.nan)
    kernel(alone, None, n_threads)
    assert np.array_equal(alone, slopes[0])
    return slopes


def lambdarank(target, z, sigma, normalise):
    return lambda *out: _core.lambdarank(target, z, sigma, normalise, *out)


def pairwise_logistic(problem, sigma):
    return lambda *out: _core.pairwise_logistic(
        problem.queries.core, problem.relevance, problem.z, sigma, *out
    )


def centred_residuals(problem, n_threads=1, weight=None):
    gradient = np.full(len(problem.z), np.nan)
    total = Queries.of(problem.groups).totals(as_weights(weight, len(gradient)))
    queries, y = problem.queries.core, problem.relevance
    most = _core.centred_residuals(queries, y, weight, total, problem.z, gradient, n_threads)
    assert most == np.abs(gradient).max(initial=0.0)
    return gradient


def yeti(target, z, shuffles, draws):
    return lambda *out: _core.yeti(target, z, _core.Shuffles(*shuffles), _core.Draws(*draws), *out)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-3, 1.0, 1e200, 1e290])
@pytest.mark.parametrize("weighted", [False, True])
def test_centred_residuals_are_those_of_numpy(scale, weighted):
    """All bits: a sum of integers has no order."""
    rng = np.random.default_rng(7)
    sizes = [1, 2, 19, 300, *rng.integers(1, 40, 150)]
    queries = make_queries(sizes, rng)
    groups = np.empty(queries.n_rows, dtype=np.int64)
    groups[np.concatenate(queries.rows)] = np.repeat(np.arange(len(sizes)), sizes)
    y, z = rng.integers(0, 5, (2, queries.n_rows)) * scale
    z += scale * rng.normal(size=len(y)) * np.exp(rng.normal(scale=9.0, size=len(y)))
    z = np.clip(z, -1e305, 1e305)
    problem = SimpleNamespace(queries=queries, relevance=y, z=z, groups=groups)
    weight = rng.integers(0, 3, len(z)) * rng.uniform(0.1, 3.0, len(z)) if weighted else None
    twin = Queries.of(groups)
    expected = (z - y) - twin.means(z - y, as_weights(weight, len(z)))[twin.query]
    assert np.isfinite(expected).all()
    for n_threads in THREADS:
        result = centred_residuals(problem, n_threads, weight)
        assert np.array_equal(result, expected)


# Metrics.


@pytest.mark.parametrize("name", reference.METRICS)
@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_swap_effects_are_differences_of_the_metric(name, cutoff):
    rng = np.random.default_rng(1)
    metric = Metric(name, cutoff)
    for n in (2, 3, 4, 6, 9):
        for _ in range(5):
            gain = gains_of(name, rng.integers(0, 5, n).astype(float))
            if name in reference.CASCADES:
                gain[rng.random(n) < 0.2] = 1.0
            target = _core.RankingTarget(make_queries([n]).core, gain, gain, *metric)
            effects = np.full((n, n - 1), np.nan)
            _core.testing.swap_effects(target, 0, effects)
            expected = reference.swap_effects(metric, gain)
            assert np.allclose(effects, expected, rtol=0, atol=1e-12)


def test_metrics_by_hand():
    ranked = [1.0, 0.0, 1.0, 0.0]
    assert Metric("precision", 3)(ranked) == pytest.approx(2 / 3)
    assert Metric("recall", 1)(ranked) == pytest.approx(1 / 2)
    assert Metric("map", 4)(ranked) == pytest.approx((1 + 2 / 3) / 2)
    assert Metric("map", 1)(ranked) == 1.0
    assert Metric("mrr", 4)(ranked[1:]) == 1 / 2
    assert Metric("mrr", 1)(ranked[1:]) == 0.0
    assert Metric("dcg", 4)([3.0, 0.0, 7.0, 0.0]) == pytest.approx(3 + 7 / 2)
    assert Metric("ndcg", 4)([3.0, 0.0, 7.0, 0.0]) == pytest.approx(6.5 / (7 + 3 / np.log2(3)))
    assert Metric("err", 4)([0.5, 0.25]) == pytest.approx(0.5 + 0.5 * 0.25 / 2)
    assert Metric("pfound", 4)([0.5, 0.25]) == pytest.approx(0.5 + 0.5 * 0.25 * 0.85)


@given(generators, metrics)
def test_values_of_metrics_are_those_of_the_worst_order(rng, metric):
    problem = make_problem(rng, metric.name)
    values = np.full(len(problem.queries.rows), np.nan)
    _core.ranking_values(target_of(problem, metric), problem.z, values, 1)
    for value, rows in zip(values, problem.queries.rows, strict=True):
        gain, z = problem.gain[rows], problem.z[rows]
        expected = metric(gain[np.lexsort((gain, -z))])
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-14)


# StochasticRank.


@settings(max_examples=25)
@given(generators, metrics, smoothings, seeds, steps)
def test_stochastic_rank_equals_its_twin(rng, metric, smoothing, seed, step):
    problem = make_problem(rng, metric.name)
    gradient = stochastic_rank(target_of(problem, metric), problem.z, smoothing, (seed, step))
    expected = by_query(
        problem, lambda d: reference.stochastic_rank(metric, d, smoothing, (seed, step))
    )
    assert np.allclose(gradient, expected, rtol=1e-9, atol=1e-11)


@settings(max_examples=25)
@given(generators, metrics, smoothings, seeds, steps)
def test_rank_curvature_equals_its_twin(rng, metric, smoothing, seed, step):
    problem = make_problem(rng, metric.name)
    target = target_of(problem, metric)
    hessian = rank_curvature(target, len(problem.z), smoothing, (seed, step))
    expected = by_query(
        problem, lambda d: reference.rank_curvature(metric, d, smoothing, (seed, step))
    )
    assert np.allclose(hessian, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("mu", [0.0, 1.0])
@pytest.mark.parametrize("n", [3, 4, 5])
def test_stochastic_rank_is_unbiased(n, sigma, mu):
    rng = np.random.default_rng([n, int(10 * sigma), int(mu)])
    relevance = rng.permutation([0.0, 3.0, 1.0, 4.0, 2.0][:n])
    z = sigma * rng.normal(size=n) + sigma * mu * relevance
    orders, slopes = reference.order_slopes(z - sigma * mu * relevance, sigma)
    queries = make_queries([n] * N_DRAWS).core
    for step, name in enumerate(reference.METRICS):
        metric = Metric(name, int(rng.integers(1, n + 1)))
        gain = gains_of(name, relevance)
        values = [metric(gain[list(order)]) for order in orders]
        target = _core.RankingTarget(
            queries, np.tile(relevance, N_DRAWS), np.tile(gain, N_DRAWS), *metric
        )
        draws = stochastic_rank(
            target, np.tile(z, N_DRAWS), Smoothing(sigma, mu), (n, step), 2
        ).reshape(N_DRAWS, n)
        error = draws.std(axis=0) / np.sqrt(N_DRAWS)
        # The exact derivatives have an error of 2e-6 / sigma, a metric that is constant none.
        off = np.abs(draws.mean(axis=0) + slopes @ values)
        assert (off <= 4 * error + 1e-5 / sigma).all(), name


def test_exact_derivatives_are_those_of_a_known_integral():
    """P(s_0 > s_1) = Phi((x_0 - x_1) / (sigma sqrt 2))."""
    orders, slopes = reference.order_slopes(np.array([0.3, -0.4]), 0.5)
    expected = reference.density(0.7 / (0.5 * np.sqrt(2))) / (0.5 * np.sqrt(2))
    assert orders == [(0, 1), (1, 0)]
    assert np.allclose(slopes, expected * np.array([[1, -1], [-1, 1]]), rtol=1e-5)


@pytest.mark.parametrize("name", reference.METRICS)
def test_gradients_of_a_query_add_up_to_nothing(name):
    problem = make_problem(np.random.default_rng(3), name)
    gradient = stochastic_rank(target_of(problem, Metric(name, 3)), problem.z)
    assert gradient.any()
    for rows in problem.queries.rows:
        assert abs(gradient[rows].sum()) < 1e-12


def test_one_document_and_equal_relevance_have_no_gradient():
    queries = make_queries([1, 6, 0, 4])
    relevance = np.array([3.0] + [2.0] * 6 + [0.0] * 4)
    for name in reference.METRICS:
        target = _core.RankingTarget(
            queries.core, relevance, gains_of(name, relevance), *Metric(name, 3)
        )
        assert not stochastic_rank(target, np.arange(11.0)).any()
        assert not rank_curvature(target, 11).any()


def test_a_query_of_20000_documents():
    """NDCG at 10 against the formula for whole arrays."""
    n, k = 20_000, 10
    rng = np.random.default_rng(5)
    relevance = rng.integers(0, 5, n).astype(float)
    z, gain = rng.normal(size=n), 2**relevance - 1
    metric = Metric("ndcg", k)
    target = _core.RankingTarget(make_queries([n]).core, relevance, gain, *metric)
    gradient = stochastic_rank(target, z, draws=(7, 8))
    e = reference.core_normals(7, 8, _core.Role.RANKING, 0, n)
    top = np.argsort(-(z + e))[: k + 1]
    rank = np.full(n, n)
    rank[top] = np.arange(k + 1)
    middle, width = z + (e.sum() - e) / (n - 1), np.sqrt(n / (n - 1))
    discount = np.append(1 / np.log2(np.arange(k) + 2), 0.0)
    expected = np.zeros(n)
    for q in range(k):
        other = np.where(rank <= q, top[q + 1], top[q])
        effect = (gain - gain[other]) * (discount[q] - discount[q + 1])
        expected -= effect * reference.density((z + e)[other], middle, width)
    expected /= reference.dcg(np.sort(gain)[::-1], k, 0.0)
    assert np.allclose(gradient, expected - expected.mean(), rtol=1e-9, atol=1e-12)


# Losses of pairs.


@given(generators, st.sampled_from(CUTOFFS), st.sampled_from([0.5, 1.0, 2.0]), st.booleans())
def test_lambdarank_equals_its_twin(rng, truncation, sigma, normalise):
    problem = make_problem(rng, "ndcg")
    target = target_of(problem, Metric("ndcg", truncation))
    slopes = with_hessian(lambdarank(target, problem.z, sigma, normalise), len(problem.z))
    expected = by_query(
        problem, lambda d: reference.lambdarank(d.gain, d.z, sigma, truncation, normalise)
    )
    assert np.allclose(slopes, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [63, 64, 65, 130])
def test_of_equal_scores_the_first_document_is_above(n):
    """On both sides of 64 documents, up to which places are counted and not sorted."""
    problem = make_problem(np.random.default_rng(n), "ndcg", [n])
    problem.z = np.round(problem.z)
    target = target_of(problem, Metric("ndcg", 5))
    slopes = with_hessian(lambdarank(target, problem.z, 1.0, False), n)
    expected = by_query(problem, lambda d: reference.lambdarank(d.gain, d.z, 1.0, 5, False))
    assert expected.any()
    assert np.allclose(slopes, expected, rtol=1e-9, atol=1e-12)


@given(generators, st.sampled_from([0.5, 1.0, 2.0]))
def test_pairwise_logistic_equals_its_twin(rng, sigma):
    problem = make_problem(rng, "ndcg")
    slopes = with_hessian(pairwise_logistic(problem, sigma), len(problem.z))
    expected = by_query(problem, lambda d: reference.pairwise_logistic(d.relevance, d.z, sigma))
    assert np.allclose(slopes, expected, rtol=1e-9, atol=1e-12)


@given(generators)
def test_pairwise_losses_have_the_pairwise_gradient(rng):
    problem = make_problem(rng, "ndcg")
    n = len(problem.z)

    def total(z):
        loss = np.empty(n)
        _core.pairwise_losses(problem.queries.core, problem.relevance, z, 2.0, loss, 1)
        return loss.sum()

    direction = rng.normal(size=n)
    slope = with_hessian(pairwise_logistic(problem, 2.0), n)[0] @ direction
    difference = total(problem.z + 1e-6 * direction) - total(problem.z - 1e-6 * direction)
    assert difference / 2e-6 == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_the_pairwise_loss_does_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(6)
    relevance, z = rng.integers(0, 3, 200).astype(float), np.round(rng.normal(size=200), 1)
    order = rng.permutation(200)
    slopes = []
    for rows in (np.arange(200), order):
        problem = SimpleNamespace(queries=make_queries([200]), relevance=relevance[rows], z=z[rows])
        slopes.append(with_hessian(pairwise_logistic(problem, 1.0), 200))
    assert np.array_equal(slopes[0][:, order], slopes[1])


def test_lambdarank_knows_equal_scores_and_hopeless_queries():
    problem = make_problem(np.random.default_rng(2), "ndcg", [4, 5])
    problem.z[:] = 1.0
    problem.gain[problem.queries.rows[1]] = 0.0
    target = target_of(problem, Metric("ndcg", 30))
    slopes = with_hessian(lambdarank(target, problem.z, 1.0, True), 9)
    expected = by_query(problem, lambda d: reference.lambdarank(d.gain, d.z, 1.0, 30, True))
    assert np.allclose(slopes, expected, rtol=1e-9, atol=1e-12)
    assert not slopes[:, problem.queries.rows[1]].any()


# YetiRank.

yeti_metrics = st.builds(
    Metric,
    st.sampled_from(("decay", *reference.METRICS)),
    st.sampled_from(CUTOFFS),
    st.just(0.85),
)
shufflings = st.builds(
    Shuffles,
    st.sampled_from(["logistic", "gumbel"]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(1, 6),
)


@settings(max_examples=25)
@given(generators, yeti_metrics, shufflings, seeds, steps)
def test_yeti_equals_its_twin(rng, metric, shuffles, seed, step):
    problem = make_problem(rng, metric.name, rng.permutation([0, 1, 2, 3, 6]))
    target = target_of(problem, metric)
    slopes = with_hessian(yeti(target, problem.z, shuffles, (seed, step)), len(problem.z))
    expected = by_query(problem, lambda d: reference.yeti(metric, d, shuffles, (seed, step)))
    assert np.allclose(slopes, expected, rtol=1e-9, atol=1e-12)


# Every loss.


def all_losses(problem, n_threads):
    """Slopes of every loss, one array each."""
    n, z = len(problem.z), problem.z
    for name in reference.METRICS:
        target = target_of(problem, Metric(name, 5))
        yield stochastic_rank(target, z, Smoothing(n_samples=2), (1, 2), n_threads)
        yield rank_curvature(target, n, Smoothing(n_samples=3), (1, 2), n_threads)
        yield with_hessian(yeti(target, z, Shuffles(n_orders=5), (1, 2)), n, n_threads)
    target = target_of(problem, Metric("ndcg", 5))
    yield with_hessian(lambdarank(target, z, 1.0, True), n, n_threads)
    yield with_hessian(pairwise_logistic(problem, 1.0), n, n_threads)


def long_problem():
    rng = np.random.default_rng(9)
    sizes = [300, *rng.integers(0, 60, 200), 1500]
    queries = make_queries(sizes)
    relevance = rng.integers(0, 5, queries.n_rows).astype(float)
    gain = (relevance > 1).astype(float)
    z = rng.normal(size=queries.n_rows)
    return sizes, SimpleNamespace(queries=queries, relevance=relevance, gain=gain, z=z)


def test_threads_never_change_a_bit():
    _, problem = long_problem()
    single = list(all_losses(problem, 1))
    for n_threads in THREADS[1:]:
        for item, other in zip(single, all_losses(problem, n_threads), strict=True):
            assert np.array_equal(item, other)


@pytest.mark.parametrize("n_copies", [1, 2])
def test_shards_of_queries_give_the_bits_of_all_queries(n_copies):
    sizes, problem = long_problem()
    half = len(sizes) // 2
    n_half, n_rows = sum(sizes[:half]), problem.queries.n_rows
    if n_copies == 2:
        for name in ("relevance", "gain", "z"):
            setattr(problem, name, np.tile(getattr(problem, name), 2))
        problem.queries = make_queries(sizes * 2)
    whole = list(all_losses(problem, 1))
    for first, last, part in ((0, n_half, sizes[:half]), (n_half, n_rows, sizes[half:])):
        rows = (np.arange(first, last) + n_rows * np.arange(n_copies)[:, None]).ravel()
        shard = SimpleNamespace(
            queries=make_queries(part * n_copies, numbers=(first, n_rows, n_copies)),
            **{name: getattr(problem, name)[rows] for name in ("relevance", "gain", "z")},
        )
        for item, other in zip(whole, all_losses(shard, 2), strict=True):
            assert np.array_equal(item[..., rows], other)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_not_hidden(strange):
    queries = make_queries([3, 3])
    relevance = np.array([0.0, 1.0, 2.0] * 2)
    z = np.array([0.0, strange, 0.0, 0.0, 1.0, 2.0])
    target = _core.RankingTarget(queries.core, relevance, relevance, *Metric("ndcg", 3))
    g, h = np.zeros(6), np.zeros(6)
    draws = _core.Draws(0, 0)
    smoothing, shuffles = _core.Smoothing(1, 0, 1), _core.Shuffles("gumbel", 1, 1)
    for kernel in (
        lambda: _core.stochastic_rank(target, z, smoothing, draws, g, 1),
        lambda: _core.yeti(target, z, shuffles, draws, g, h, 1),
        lambda: _core.lambdarank(target, z, 1.0, True, g, h, 1),
        lambda: _core.pairwise_logistic(queries.core, relevance, z, 1.0, g, h, 1),
        lambda: _core.centred_residuals(queries.core, relevance, None, 3 * np.ones(2), z, g, 1),
    ):
        g[:] = 0.0
        assert kernel() == np.inf
        assert np.isnan(g[:3]).all()
        assert np.isfinite(g[3:]).all()
    values = np.empty(2)
    _core.ranking_values(target, z, values, 1)
    assert np.isnan(values[0])
    assert values[1] == 1.0


def test_far_scores_are_no_trouble():
    queries = make_queries([4])
    relevance = np.array([0.0, 1.0, 2.0, 3.0])
    z = np.array([1e300, -1e300, 1e5, 0.0])
    problem = SimpleNamespace(queries=queries, relevance=relevance, gain=relevance / 3, z=z)
    for slopes in all_losses(problem, 1):
        assert np.isfinite(slopes).all()


def test_invalid_arguments_are_rejected():
    order, starts = np.arange(4, dtype=np.uint32), np.array([0, 2, 4])
    for wrong in ([0, 2, 3], [1, 2, 4], [0, 3, 2, 4], []):
        with pytest.raises(ValueError, match="starts must rise"):
            _core.Queries(order, np.array(wrong, dtype=np.int64))
    for wrong in ([0, 1, 2, 2], [0, 1, 2, 4]):
        with pytest.raises(ValueError, match="every row once"):
            _core.Queries(np.array(wrong, dtype=np.uint32), starts)
    for wrong in ((1, 4, 1), (0, 4, 3), (-1, 9, 1)):
        with pytest.raises(ValueError, match="numbers"):
            _core.Queries(order, starts, wrong)
    queries, y = _core.Queries(order, starts), np.zeros(4)
    with pytest.raises(ValueError, match="no kernel for metric 'auc'"):
        _core.RankingTarget(queries, y, y, "auc", 1, 0.0)
    with pytest.raises(ValueError, match="cutoff"):
        _core.RankingTarget(queries, y, y, "dcg", 0, 0.0)
    with pytest.raises(ValueError, match="relevance and gain"):
        _core.RankingTarget(queries, y, y[1:], "dcg", 1, 0.0)
    for wrong in ((0.0, 0.0, 1), (1.0, np.inf, 1), (1.0, 0.0, 0)):
        with pytest.raises(ValueError, match="sigma must be positive"):
            _core.Smoothing(*wrong)
    with pytest.raises(ValueError, match="noise"):
        _core.Shuffles("cauchy", 1.0, 1)
    with pytest.raises(ValueError, match="power"):
        _core.Shuffles("gumbel", -1.0, 1)
    target = _core.RankingTarget(queries, y, y, "dcg", 1, 0.0)
    with pytest.raises(ValueError, match=r"must be \(N,\)"):
        _core.lambdarank(target, y[1:], 1.0, True, y, None, 1)
