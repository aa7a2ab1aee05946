"""One step with the noise on: how often each structure is chosen, and the law of f' given f.

    E[f' | f] = rho f - eps Pbar g,    Var[f' | f] = eps^2 sigma^2 Pbar + eps^2 Cov(P_s g)

with Pbar = E P_s under the greedy rule. The data are two balanced binary features with orthogonal
contrasts, where the probability of each structure has a formula.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import brentq

from law import (
    STRUCTURE,
    FixedStructure,
    RandomStructure,
    Restart,
    assert_law,
    assert_mean,
    assert_z,
    binary_set,
    bits_of,
    choice_probability,
    choice_probability_of_outputs,
    leaf_of,
    normals,
    projector,
    run_chain,
    splits,
)
from problems import grow, shard_without_codes
from sglb import _core
from sglb.losses import Logistic, Loss, Softmax, Squared
from sglb.samplers import Langevin, Move, Stochastic
from sglb.structure import GreedySearch
from sglb.training_set import TrainingSet

EPS, GAMMA, BETA = 0.1, 0.1, 50.0
RHO = 1.0 - GAMMA * EPS
N = 8  # rows; also the sum of weights
SIGMA = np.sqrt(2.0 * N / (EPS * BETA))
SAMPLER = Langevin(EPS, N / BETA, GAMMA)
N_DRAWS = 100_000

BITS = bits_of(np.arange(N), 2)  # rows i and i + 4 share a cell of the 2 x 2 table
CONTRASTS = 1 - 2 * BITS
LEAVES = [leaf_of(splits(f), BITS + 1) for f in (0, 1)]
# Cells weigh 2 each, so the contrasts stay balanced and orthogonal; one row weighs nothing.
WEIGHT = np.array([1.5, 0.25, 2.0, 1.2, 0.5, 1.75, 0.0, 0.8])


@dataclass(frozen=True)
class Problem:
    """A loss, a state f of the chain, and the gradient there, from the textbook."""

    name: str
    loss: Loss
    y: np.ndarray
    raw: np.ndarray
    gradient: np.ndarray
    weight: np.ndarray | None = None

    @property
    def rows(self) -> TrainingSet:
        return binary_set(BITS, self.y, self.weight)

    def contrasts(self):
        """u1'g / sigma and u2'g / sigma of each output, with weights as multiplicities."""
        w = np.ones(N) if self.weight is None else self.weight
        return [(w * c * self.gradient).sum(axis=1) / (np.sqrt(N) * SIGMA) for c in CONTRASTS]


def make_problems():
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(1, N))
    y = raw[0] + rng.normal(size=N) * 2.0
    binary = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    p = 1.0 / (1.0 + np.exp(-raw))
    many = rng.normal(size=(3, N))
    three = np.arange(N) % 3.0
    q = np.exp(many) / np.exp(many).sum(axis=0)
    # Contrasts of 4 and 2.6: here the probability depends most on the size of the noise.
    steep = SIGMA * (4.0 * CONTRASTS[:1] + 2.6 * CONTRASTS[1:]) / np.sqrt(N)
    return [
        Problem("regression", Squared(), y, raw, raw - y),
        Problem("steep regression", Squared(), raw[0] - steep[0], raw, steep),
        Problem("binary", Logistic(), binary, raw, p - binary),
        Problem("three classes", Softmax(3), three, many, q - (three == np.arange(3)[:, None])),
        Problem("weighted", Squared(), y, raw, raw - y, WEIGHT),
        Problem("weighted binary", Logistic(), binary, raw, p - binary, WEIGHT),
    ]


PROBLEMS = {p.name: p for p in make_problems()}


@pytest.fixture(scope="module", params=PROBLEMS)
def drawn(request):
    """A problem and many draws of its next step under the greedy rule."""
    problem = PROBLEMS[request.param]
    callback = Restart(problem.raw)
    run_chain(problem.rows, problem.loss, SAMPLER, GreedySearch(1), callback, N_DRAWS)
    return problem, callback


def test_structures_are_chosen_with_the_probability_of_the_formula(drawn):
    problem, callback = drawn
    first, second = problem.contrasts()
    p = choice_probability_of_outputs(first, second)
    if len(first) == 1:
        assert p == pytest.approx(choice_probability(first[0], second[0]), abs=1e-8)
    assert 0.05 < p < 0.95  # else there is little to see
    assert_mean(callback.choice == 0, p)


def test_given_the_structure_leaf_values_are_normal_about_the_mean_gradient(drawn):
    problem, callback = drawn
    w = np.ones(N) if problem.weight is None else problem.weight
    for choice in (0, 1):
        member = np.stack([LEAVES[choice] == j for j in (0, 1)])  # (leaf, row)
        size = member @ w
        centre = -EPS * (member @ (w * problem.gradient).T) / size[:, None]  # (leaf, output)
        values = callback.values[callback.choice == choice]
        x = (values - centre) / (EPS * SIGMA / np.sqrt(size)[:, None])
        x = x.reshape(len(x), -1)
        assert_law(x, np.zeros(x.shape[1]), np.eye(x.shape[1]))
        assert_mean(x**4, 3.0)


def test_the_next_state_has_the_mean_and_covariance_of_the_formula(drawn):
    problem, callback = drawn
    p = choice_probability_of_outputs(*problem.contrasts())
    k = len(problem.raw)
    cells = slice(0, 4)  # the other rows of a cell move with these
    averages = [projector(leaf, problem.weight) @ problem.gradient.T for leaf in LEAVES]
    averages = [a[cells].T.ravel() for a in averages]  # P_s g, outputs outside
    size = 4.0  # of each of the two leaves
    together = [(leaf[cells, None] == leaf[cells]) / size for leaf in LEAVES]
    mean = RHO * problem.raw[:, cells].ravel() - EPS * (p * averages[0] + (1 - p) * averages[1])
    spread = averages[0] - averages[1]
    covariance = (EPS * SIGMA) ** 2 * np.kron(
        np.eye(k), p * together[0] + (1 - p) * together[1]
    ) + EPS**2 * p * (1 - p) * np.outer(spread, spread)
    assert_law(callback.raw[:, :, cells].reshape(N_DRAWS, -1), mean, covariance)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_same_law_holds_for_structures_drawn_without_a_look(name):
    problem = PROBLEMS[name]
    callback = Restart(problem.raw)
    rule = RandomStructure([splits(0), splits(1), splits(0, 1)])
    run_chain(problem.rows, problem.loss, SAMPLER, rule, callback, 30_000)
    leaves = [leaf_of(s, BITS + 1) for s in rule.structures]
    w = np.ones(N) if problem.weight is None else problem.weight
    averages = np.array([projector(leaf, w) @ problem.gradient.T for leaf in leaves])
    averages = averages[:, :4].swapaxes(1, 2).reshape(3, -1)  # (structure, output and cell)
    together = [(leaf[:4, None] == leaf[:4]) / np.bincount(leaf, w)[leaf[:4]] for leaf in leaves]
    mean = RHO * problem.raw[:, :4].ravel() - EPS * averages.mean(axis=0)
    covariance = (EPS * SIGMA) ** 2 * np.kron(
        np.eye(len(problem.raw)), np.mean(together, axis=0)
    ) + EPS**2 * np.cov(averages.T, bias=True)
    assert_law(callback.raw[:, :, :4].reshape(len(callback.raws), -1), mean, covariance)


def test_the_chosen_contrast_keeps_its_variance_because_leaves_do_not_share_the_noise():
    # At f = y the gradient is 0: the noise alone chooses the larger of two squared contrasts,
    # whose mean is 1 + 2/pi. Leaves that shared the noise would inherit that variance.
    y = np.zeros(N)
    callback = Restart(np.zeros((1, N)))
    run_chain(binary_set(BITS, y), Squared(), SAMPLER, GreedySearch(1), callback, N_DRAWS, seed=9)
    left, right = callback.values[:, 0, 0], callback.values[:, 1, 0]
    leaf_contrast = (right - left) * np.sqrt(2.0) / (EPS * SIGMA)
    zeta = np.array([normals(9, step, STRUCTURE, 0, N) for step in range(N_DRAWS)])
    structure_contrast = (zeta * CONTRASTS[callback.choice]).sum(axis=1) / np.sqrt(N)
    assert_mean(callback.choice == 0, 0.5)
    assert_mean(structure_contrast**2, 1.0 + 2.0 / np.pi)
    assert_mean(leaf_contrast**2, 1.0)
    assert_mean(leaf_contrast * structure_contrast, 0.0)
    assert_mean((leaf_contrast**2 - 1.0) * structure_contrast**2, 0.0)


@pytest.mark.parametrize("temperature", [0.02, 0.5, 20.0])
def test_the_hotter_the_chain_the_more_even_the_choice(temperature):
    problem = PROBLEMS["regression"]
    callback = Restart(problem.raw)
    sampler = Langevin(EPS, temperature, GAMMA)
    run_chain(problem.rows, problem.loss, sampler, GreedySearch(1), callback, 20_000, seed=2)
    ratio = SIGMA / np.sqrt(2.0 * temperature / EPS)
    p = choice_probability(*(float(c[0]) * ratio for c in problem.contrasts()))
    assert_z((np.mean(callback.choice == 0) - p) / np.sqrt(p * (1 - p) / 20_000), 1)


@pytest.mark.parametrize("factor", [0.1, 3.0])
def test_the_one_step_law_is_exact_for_any_factor_of_the_structure_noise(factor):
    """Structures see `factor` times the noise, leaves the noise itself, independent of it."""
    problem = PROBLEMS["regression"]
    callback = Restart(problem.raw)
    sampler = Langevin(EPS, N / BETA, GAMMA, structure_noise=factor)
    run_chain(problem.rows, problem.loss, sampler, GreedySearch(1), callback, N_DRAWS, seed=4)
    p = choice_probability(*(float(c[0]) / factor for c in problem.contrasts()))
    assert_z((np.mean(callback.choice == 0) - p) / np.sqrt(p * (1 - p) / N_DRAWS), 1)
    averages = [(projector(leaf) @ problem.gradient[0])[:4] for leaf in LEAVES]
    together = [(leaf[:4, None] == leaf[:4]) / 4.0 for leaf in LEAVES]
    mean = RHO * problem.raw[0, :4] - EPS * (p * averages[0] + (1 - p) * averages[1])
    spread = averages[0] - averages[1]
    covariance = (EPS * SIGMA) ** 2 * (p * together[0] + (1 - p) * together[1]) + EPS**2 * p * (
        1 - p
    ) * np.outer(spread, spread)
    assert_law(callback.raw[:, 0, :4], mean, covariance)


def test_without_noise_the_structure_is_the_best_one():
    problem = PROBLEMS["regression"]
    callback = Restart(problem.raw)
    run_chain(problem.rows, problem.loss, Langevin(EPS, 0.0, GAMMA), GreedySearch(1), callback, 100)
    first, second = problem.contrasts()
    assert (callback.choice == int(abs(second[0]) > abs(first[0]))).all()


# Rows sampled for the gradient.

RATE = 0.3


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_step_from_sampled_rows_is_unbiased_and_its_variance_is_the_formula(name):
    # A row enters with probability r, divided by r, for all outputs at once:
    # Cov(theta_k, theta_l) = eps^2 sum of w^2 g_k g_l (1 - r) / r / W_leaf^2.
    problem = PROBLEMS[name]
    callback = Restart(problem.raw)
    rule = FixedStructure(splits(1))
    run_chain(problem.rows, problem.loss, Stochastic(EPS, RATE), rule, callback, 40_000)
    w = np.ones(N) if problem.weight is None else problem.weight
    g = w * problem.gradient
    for j in (0, 1):
        here = LEAVES[1] == j
        size = w[here].sum()
        covariance = EPS**2 * (g[:, here] @ g[:, here].T) * (1 - RATE) / RATE / size**2
        assert_law(callback.values[:, j], -EPS * g[:, here].sum(axis=1) / size, covariance)


def test_sampled_rows_and_noise_add_their_variances():
    problem = PROBLEMS["regression"]
    callback = Restart(problem.raw)
    sampler = Langevin(EPS, N / BETA, GAMMA, subsample=RATE)
    run_chain(problem.rows, problem.loss, sampler, FixedStructure(splits(0)), callback, 40_000)
    for j in (0, 1):
        g = problem.gradient[0, LEAVES[0] == j]
        variance = EPS**2 * (SIGMA**2 / 4 + (g @ g) * (1 - RATE) / RATE / 16)
        assert_law(callback.values[:, j], [-EPS * g.mean()], np.array([[variance]]))


def test_rows_are_kept_independently_with_the_given_rate():
    n, n_steps = 40, 4000
    kept = np.ones((n_steps, n))
    for step in range(n_steps):
        gradient = np.ones((2, n))
        slopes = _core.Slopes(np.ones((2, n)), None)
        _core.testing.evaluate(slopes, RATE, _core.Draws(3, step), gradient, None)
        assert (gradient[0] == gradient[1]).all()
        kept[step] = gradient[0]
    assert set(np.unique(kept)) == {0.0, 1.0 / RATE}
    assert_law(kept, np.ones(n), np.eye(n) * (1 - RATE) / RATE)


# Rows sampled for the structure.


SKEWED = np.random.default_rng(5).standard_t(2, size=(1, 30))


def draw_rows(gradient, sigma, n, step):
    """One draw: rows, inverse_probability, mu, floor, share."""
    shard = shard_without_codes(gradient.shape[1])
    slopes, draws = _core.Slopes(gradient, None), _core.Draws(2, step)
    return _core.testing.draw_rows(shard, slopes, 1.0, sigma, n, draws)


def chances(gradient, sigma, n):
    """min(1, a / mu), a^2 = g^2 + sigma^2 + floor^2, with the mu that makes them add up to n."""
    importance = np.sqrt(gradient[0] ** 2 + sigma**2 + np.abs(gradient).mean() ** 2)
    mu = brentq(lambda mu: np.minimum(1.0, importance / mu).sum() - n, 1e-9, importance.sum())
    return np.minimum(1.0, importance / mu)


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_a_row_is_drawn_for_the_structure_by_what_it_may_add(sigma):
    n_steps, n = 20_000, 20
    chance = chances(SKEWED, sigma, n)
    unsure = chance < 1.0
    drawn = np.zeros((n_steps, 30))
    for step in range(n_steps):
        rows, inverse_probability, *_ = draw_rows(SKEWED, sigma, n, step)
        drawn[step, rows] = 1.0
        np.testing.assert_allclose(inverse_probability, 1.0 / chance[rows], rtol=1e-12)
    assert unsure.sum() > 20
    assert (drawn[:, ~unsure] == 1.0).all()
    p = chance[unsure]
    assert_law(drawn[:, unsure], p, np.diag(p * (1.0 - p)))


@pytest.mark.parametrize("n", [4, 6, 7])
def test_of_many_rows_each_stands_for_one_on_average(n):
    # 8, 12 or 14 of 30 rows are looked at, one from each stretch; a stretch may end within a row.
    n_steps = 20_000
    count = np.zeros((n_steps, 30))
    for step in range(n_steps):
        rows, inverse_probability, _, _, share = draw_rows(SKEWED, 0.5, n, step)
        np.add.at(count[step], rows, inverse_probability / share)
    assert_mean(count, np.ones(30))


def test_sums_over_drawn_rows_have_the_law_of_sums_over_all_plus_that_of_the_draw():
    n_steps, n, sigma = 20_000, 20, 0.7
    side = np.arange(30) % 2
    sums = np.empty((n_steps, 2))
    bounds = (float(np.abs(SKEWED).max()), 0.0)
    for step in range(n_steps):
        rows, inverse_probability, mu, floor, _ = draw_rows(SKEWED, sigma, n, step)
        packed = np.empty((1, len(rows)), dtype=np.int64)
        scale, _ = _core.testing.quantise(
            shard_without_codes(30),
            _core.Slopes(SKEWED, None),
            (rows, inverse_probability, mu, floor),
            (1.0, sigma),
            bounds,
            False,
            _core.Draws(2, step),
            packed,
        )
        sums[step] = np.bincount(side[rows], weights=packed[0] >> 32, minlength=2) / scale
    g, p = SKEWED[0], chances(SKEWED, sigma, n)
    variance = (g**2 + sigma**2) / p - g**2
    expected = [np.bincount(side, weights=values) for values in (g, variance)]
    assert_law(sums, expected[0], np.diag(expected[1]))


def test_sampling_rows_for_the_structure_does_not_touch_the_leaves():
    # With one candidate the structure is certain, so the chain must be the same bit for bit.
    rng = np.random.default_rng(8)
    rows = binary_set(rng.integers(0, 2, size=(1, 64)), rng.normal(size=64))
    runs = []
    for structure_rows in (None, 64, 32):
        callback = Restart(np.zeros((1, 64)))
        rule = GreedySearch(1, structure_rows=structure_rows)
        run_chain(rows, Squared(), SAMPLER, rule, callback, 200)
        runs.append(callback.values)
    assert (runs[0] == runs[1]).all()
    assert (runs[0] == runs[2]).all()


def test_the_rows_drawn_are_a_function_of_seed_and_step():
    rng = np.random.default_rng(9)
    rows = binary_set(rng.integers(0, 2, size=(6, 200)), rng.normal(size=200))
    gradient = rng.normal(size=(1, 200))
    move = Move(EPS, SIGMA)
    rule, other = GreedySearch(3, structure_rows=50), GreedySearch(3, structure_rows=50)
    chosen = [grow(rule, rows, gradient, move, 1, step) for step in range(20)]
    # In any order, by another searcher, the same structures; another seed gives others.
    for step in reversed(range(20)):
        again = grow(other, rows, gradient, move, 1, step)
        assert all((a == b).all() for a, b in zip(again, chosen[step], strict=True))
    differ = [
        (grow(other, rows, gradient, move, 2, step).features != chosen[step].features).any()
        for step in range(20)
    ]
    assert any(differ)
