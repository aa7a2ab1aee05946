"""What the sampler's law is tested with: rules, callbacks, exact formulas, a z-test.

Every test runs `boosting.boost` itself. Callbacks record the chain, or reset it after
each step, which turns a run of n steps into n independent draws of one step. The leaves of a fixed
structure are independent chains, so one step of 1,024 leaves is 1,024 draws.

Notation: rho = 1 - gamma eps, sigma^2 = 2 N / (eps beta) = 2 T / eps with temperature T = N / beta,
P_s the projector "average over the leaves of structure s", Pbar = E P_s. For the squared loss

    f' = rho f - eps P_s (f - y + sigma zeta)
"""

from dataclasses import replace
from itertools import repeat

import numpy as np
from scipy.integrate import quad
from scipy.stats import ncx2, norm

from sglb import _core
from sglb.boosting import boost
from sglb.callbacks import BaseCallback
from sglb.experiments import small_chains
from sglb.experiments.small_chains import (  # noqa: F401  # for the tests of the law
    FixedStructure,
    RandomStructure,
    binary_rows,
    bits_of,
    make_chain,
    splits,
)
from sglb.noise import Role
from sglb.target import Target

# Probability that an assertion fails although the law is right: two-sided, over all its comparisons
# together. Some hundred assertions make 1e-4 for the whole group, and every seed is fixed.
FALSE_ALARM = 1e-6

STRUCTURE, LEAF, SUBSAMPLE, ROWS = Role.STRUCTURE, Role.LEAF, Role.SUBSAMPLE, Role.ROWS
TEST = Role.TEST


# The one statistical test.


def assert_z(z, comparisons):
    """Fail if the largest |z| of this many comparisons is less likely than FALSE_ALARM, or NaN."""
    worst = float(np.max(np.abs(z)))
    limit = float(norm.isf(FALSE_ALARM / (2 * comparisons)))
    assert worst < limit, f"|z| = {worst:.1f}, chance explains {limit:.1f} in {comparisons}"


def z_of_mean(samples, expected):
    """(mean - expected) / standard error of independent samples (n, ...), n large."""
    samples = np.asarray(samples, dtype=np.float64)
    assert len(samples) >= 1000  # so that Student's law is close to the normal
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    with np.errstate(divide="ignore", invalid="ignore"):  # no spread at all: infinite or NaN
        return np.atleast_1d((samples.mean(axis=0) - expected) / error)


def assert_mean(samples, expected):
    """Fail if the mean of independent samples (n, ...) is not the expected one."""
    z = z_of_mean(samples, expected)
    assert_z(z, z.size)


def moments(samples, mean):
    """First and second moments about `mean`, (..., d + d (d + 1) / 2), of samples (..., d)."""
    deviation = samples - mean
    i, j = np.triu_indices(deviation.shape[-1])
    return np.concatenate([deviation, deviation[..., i] * deviation[..., j]], axis=-1)


def expected_moments(covariance):
    """What `moments` are on average."""
    i, j = np.triu_indices(len(covariance))
    return np.concatenate([np.zeros(len(covariance)), covariance[i, j]])


def assert_law(samples, mean, covariance):
    """Fail if independent samples (n, d) do not have this mean and covariance."""
    assert_mean(moments(samples, mean), expected_moments(covariance))


# Problems and structures.


def binary_set(bits, y, weight=None):
    """A training set of features that are 0 (left) or 1 (right): bits (n_features, n_rows)."""
    rows = binary_rows(bits, y)
    return rows if weight is None else replace(rows, target=Target.of(y, weight))


def leaf_of(structure, columns):
    """Leaf of each row of codes (n_features, n_rows), by the definition of a split."""
    leaf = np.zeros(columns.shape[1], dtype=int)
    for d, (feature, low, high) in enumerate(zip(*structure, strict=True)):
        outside = (columns[feature] < low) | (columns[feature] > high)
        leaf += outside.astype(int) << d
    return leaf


def projector(leaf, weight=None):
    """P_s as a matrix: row i averages over the rows of its leaf."""
    return small_chains.projector(leaf, 1.0 if weight is None else weight)


# Callbacks.


class Record(BaseCallback):
    """Records raw scores of rows; `first` (n_outputs, n_rows) is where the chain starts."""

    def __init__(self, start=None, rows=slice(None), burn_in=0):
        self.first = start
        self.rows = rows
        self.burn_in = burn_in
        self.raws = []

    def step(self, info):
        if info.step > self.burn_in:
            self.raws.append(info.raw[:, self.rows].copy())

    @property
    def raw(self):
        """(n_noted, n_outputs, n_rows)."""
        return np.array(self.raws)


class Restart(BaseCallback):
    """Puts the chain to the next of `states` after each step, so that steps are one-step draws."""

    def __init__(self, states, keep_raw=True):
        self.states = states if hasattr(states, "__next__") else repeat(np.asarray(states))
        self.keep_raw = keep_raw
        self.first = next(self.states)
        self.raws, self.leaf_values, self.first_features = [], [], []

    def step(self, info):
        if self.keep_raw:
            self.raws.append(info.raw.copy())
        self.leaf_values.append(info.values)
        features = info.structure.features
        self.first_features.append(features[0] if len(features) else -1)
        info.raw[:] = next(self.states)

    @property
    def raw(self):
        """(n_steps, n_outputs, n_rows), after each step."""
        return np.array(self.raws)

    @property
    def values(self):
        """(n_steps, n_leaves, n_outputs)."""
        return np.array(self.leaf_values)

    @property
    def choice(self):
        """The feature of each step's first split, (n_steps,)."""
        return np.array(self.first_features)


def run_chain(rows, loss, sampler, rule, callback, n_steps, *, leaves=None, offset=0.0, seed=1):
    """Take n_steps with a callback, from where it says, and return the callback."""
    state = None
    if callback.first is not None:
        state = np.zeros((sampler.move(0).transition.size, loss.n_outputs, rows.n_rows))
        state[0] = callback.first
    chain = make_chain(
        rows, loss, sampler, rule, leaves=leaves, offset=offset, state=state, seed=seed
    )
    boost(chain, n_steps, [callback])
    return callback


# Exact formulas, squared loss. Structures are drawn without a look at f from equally likely ones.


def stationary_mean(projectors, y, gamma):
    """m = (gamma I + Pbar)^-1 Pbar y, for every eps."""
    mean = np.mean(projectors, axis=0)
    return np.linalg.solve(gamma * np.eye(len(y)) + mean, mean @ y)


def stationary_covariance(projectors, y, eps, gamma, temperature):
    """vec S = (I - E[A (x) A])^-1 vec(E[b b'] + 2 eps T Pbar), A = rho I - eps P_s,
    b = eps (P_s (y - m) - gamma m).
    """
    n = len(y)
    m = stationary_mean(projectors, y, gamma)
    double = np.zeros((n * n, n * n))
    source = 2.0 * eps * temperature * np.mean(projectors, axis=0)
    for P in projectors:
        A = (1.0 - gamma * eps) * np.eye(n) - eps * P
        b = eps * (P @ (y - m) - gamma * m)
        double += np.kron(A, A) / len(projectors)
        source += np.outer(b, b) / len(projectors)
    return np.linalg.solve(np.eye(n * n) - double, source.ravel()).reshape(n, n)


def gibbs_covariance(projectors, gamma, temperature):
    """Limit of the covariance for eps -> 0: T (gamma I + Pbar)^-1 Pbar."""
    mean = np.mean(projectors, axis=0)
    return temperature * np.linalg.solve(gamma * np.eye(len(mean)) + mean, mean)


def leaf_variance(n_rows, eps, gamma, temperature):
    """Stationary variance of a leaf of one structure, an autoregression with a = 1 - eps (1 +
    gamma): (T / n_j) / ((1 + gamma) (1 - eps (1 + gamma) / 2)).
    """
    return temperature / n_rows / ((1.0 + gamma) * (1.0 - 0.5 * eps * (1.0 + gamma)))


# Greedy choice between two balanced binary features with orthogonal contrasts u1, u2.


def choice_probability(first, second):
    """p(1 | g) = Phi(a) Phi(b) + Phi(-a) Phi(-b), a, b = (u1'g -+ u2'g) / (sqrt(2) sigma), from
    the contrasts u'g / sigma of one output.
    """
    a, b = (first - second) / np.sqrt(2.0), (first + second) / np.sqrt(2.0)
    return norm.cdf(a) * norm.cdf(b) + norm.cdf(-a) * norm.cdf(-b)


def choice_probability_of_outputs(first, second):
    """The same for any number of outputs, whose squared contrasts add up: the probability that one
    noncentral chi-square exceeds another, by integration.
    """
    k, single, other = len(first), float(np.sum(first**2)), float(np.sum(second**2))
    return quad(lambda x: ncx2.pdf(x, k, single) * ncx2.cdf(x, k, other), 0.0, np.inf)[0]


# Any loss, one leaf.


def discrete_law(grid, slope, eps, rho, noise):
    """Stationary masses on an even grid of f' = rho f - eps slope(f) + noise xi.

    The left eigenvector of eigenvalue 1 of the Gaussian transition kernel, found by one solution of
    pi (K - I) = 0, sum of pi = 1. The rule of rectangles is exact to rounding for such kernels.
    """
    centre = rho * grid - eps * slope
    kernel = np.exp(-0.5 * np.square((grid - centre[:, None]) / noise))
    kernel /= kernel.sum(axis=1, keepdims=True)
    system = kernel.T - np.eye(len(grid))
    system[-1] = 1.0
    right = np.zeros(len(grid))
    right[-1] = 1.0
    return np.linalg.solve(system, right)


# The generator of the library.


def words(seed, step, role, output, first, n):
    """Words of the library's generator, (n, 4)."""
    out = np.empty((n, 4), dtype=np.uint32)
    _core.words(seed, step, role, output, first, out)
    return out


def normals(seed, step, role, output=0, n=1, first=0):
    """Normals of the library's generator, (n,)."""
    out = np.empty(n)
    _core.testing.normals(seed, step, role, output, first, out, 1)
    return out
