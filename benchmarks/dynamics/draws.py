"""Independent draws a second: chains whose law is known, at rates where its bias is the same.

Frozen   Structures are drawn from the trees of a model that was trained on other rows, so that the
         posterior is that of a Gaussian process (`THEORY` of the laws: tests/test_law_frozen.py):

             f = Z theta,   theta ~ N(0, T / (gamma K n_j)),   y ~ N(f, T),   T = 1

         with Z (n_rows, all leaves) the leaves of the rows in K trees. Its exact variances are what
         those of a chain are compared with, and chains start from exact draws.
Greedy   What users get by sampler="hamiltonian", temperature=1, leaf_method="gradient".
Single   One structure: leaves are independent linear chains, and everything is a formula.
"""

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.sparse import csr_array

from sglb import SGLBRegressor
from sglb.bins import Bins
from sglb.boosting import boost
from sglb.chain import Chain
from sglb.datasets import load_table
from sglb.diagnostics import ess_bulk, ess_tail
from sglb.experiments.small_chains import RandomStructure
from sglb.leaves import LeafRule
from sglb.losses import Squared
from sglb.noise import chain_seed
from sglb.posterior.partitions import TreePartitions
from sglb.samplers import Hamiltonian, Langevin, Tempering
from sglb.schedules import Shape
from sglb.shard import Shard
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.tempering import Replicas, temper
from sglb.trace import Trace
from sglb.training_set import TrainingSet

# Table -> training rows.
TABLES = {"uci_kin8nm": 5_000, "california_housing": 20_000}
DEPTH, N_STRUCTURES, PRIOR_VARIANCE = 6, 50, 1.0
N_CHAINS, N_WATCHED = 4, 200
# Share by which variances may be wrong.
BIAS = 0.05


@dataclass(frozen=True)
class Posterior:
    """Rows whose noise has variance 1, structures, and the exact posterior at some of the rows."""

    data: TrainingSet
    bins: Bins
    structures: list
    Z: csr_array
    prior: np.ndarray  # variance of each leaf value
    shrink_rate: float

    @classmethod
    def of(cls, name):
        """The first rows of a table in random order; trees and noise are learned from the rest."""
        table = load_table(name)
        X = np.stack([c.to_numpy().astype(float) for c in table.X.columns], axis=1)
        y, order = np.asarray(table.y, float), np.random.default_rng(0).permutation(len(table.y))
        rows, others = order[: TABLES[name]], order[TABLES[name] :]
        return cls.make(X[rows], y[rows], X[others], y[others])

    @classmethod
    def make(cls, X, y, X_other, y_other, n_structures=N_STRUCTURES, depth=DEPTH):
        fit = {"max_depth": depth, "n_estimators": n_structures, "learning_rate": 0.2}
        model = SGLBRegressor(sampler="plain", random_state=0, n_jobs=1, **fit)
        model.fit(X_other, y_other)
        scale = np.std(y - model.predict(X))
        bins = model.trace_.bins
        data = TrainingSet.build(bins.encode(X), bins.n_codes, Target.of((y - y.mean()) / scale))
        partitions = TreePartitions(model.trace_, data.code_columns)
        first = np.cumsum(partitions.n_leaves) - partitions.n_leaves
        columns = partitions.leaves(0, len(y)).T + first
        ones, ends = np.ones(columns.size), np.arange(0, columns.size + 1, columns.shape[1])
        Z = csr_array((ones, columns.ravel(), ends), shape=(len(y), int(partitions.n_leaves.sum())))
        cover = np.asarray(Z.sum(axis=0)).ravel()
        Z, cover = Z[:, cover > 0], cover[cover > 0]
        K = len(partitions.n_leaves)
        shrink_rate = len(cover) / K / (len(y) * PRIOR_VARIANCE)
        structures = [model.trace_.structure(k) for k in range(K)]
        return cls(data, bins, structures, Z, 1.0 / (shrink_rate * K * cover), shrink_rate)

    @property
    def n_rows(self):
        return self.data.n_rows

    @cached_property
    def watched(self):
        return np.unique(np.linspace(0, self.n_rows - 1, N_WATCHED).astype(np.intp))

    @cached_property
    def _root(self):
        """Upper R with R'R = Z'Z + 1 / prior, the inverse covariance of the leaf values."""
        precision = (self.Z.T @ self.Z).toarray() + np.diag(1.0 / self.prior)
        return cholesky(precision)

    @cached_property
    def mean(self):
        theta = cho_solve((self._root, False), self.Z.T @ self.data.target.values)
        return self.Z @ theta

    @cached_property
    def variance(self):
        """Exact variances at the watched rows."""
        half = solve_triangular(self._root, self.Z[self.watched].toarray().T, trans="T")
        return np.square(half).sum(axis=0)

    def draw(self, rng):
        """An exact draw at all rows."""
        normal = rng.standard_normal(len(self.prior))
        return self.mean + self.Z @ solve_triangular(self._root, normal)

    def chain(self, sampler, seed, rule=None, start=None):
        size = sampler.move(0).transition.size
        trace = Trace(self.bins, DEPTH, np.zeros(1), size=size, keep_trees=False)
        state = None
        if start is not None:
            state = np.zeros((size, 1, self.n_rows))
            state[0, 0] = start
        rows = Shard.start(self.data, Squared(), trace, newton=False, state=state)
        rule = RandomStructure(self.structures) if rule is None else rule
        return Chain(rows, sampler, rule, LeafRule(), trace, seed=seed)


@dataclass
class Watched:
    """What chains left: draws (n_chains, n_draws, rows), steps between them, processor seconds."""

    draws: np.ndarray
    n_steps: int  # of all chains, those of all rungs
    seconds: float
    swap_rates: list | None = None

    def against(self, variance):
        """Bias of the variance with its standard error, and effective draws, medians over rows."""
        flat = self.draws.reshape(-1, self.draws.shape[2])
        bulk, tail = ess_bulk(self.draws), ess_tail(self.draws)
        # Chains are independent, so that the spread of their own variances about the mean of all
        # is that of the estimate.
        mean = flat.mean(axis=0)
        ratio = np.square(self.draws - mean).mean(axis=1).mean(axis=1) / variance.mean()
        return {
            "bias": float(ratio.mean() - 1.0),
            "error": float(ratio.std(ddof=1) / np.sqrt(len(ratio))),
            "bulk": float(np.median(bulk)),
            "tail": float(np.median(tail)),
            "bulk_error": self._error(ess_bulk),
            "tail_error": self._error(ess_tail),
            "n_steps": self.n_steps,
            "seconds": self.seconds,
        }

    def _error(self, count):
        """Relative standard error of effective draws, from those of each chain by itself."""
        by_chain = [float(np.median(count(chain[None]))) for chain in self.draws]
        return float(np.std(by_chain, ddof=1) / np.sqrt(len(by_chain)) / np.mean(by_chain))


def watch(posterior, sampler, n_steps, *, every, seed=0, rule=None, burn_in=0, exact_start=True):
    """Run independent chains and keep the watched rows every so many steps, after a burn-in."""
    rng = np.random.default_rng(seed)
    draws, n_taken, seconds, swap_rates = [], 0, 0.0, []
    for number in range(N_CHAINS):
        start = posterior.draw(rng) if exact_start else None
        kept, begun = [], time.process_time()
        if isinstance(sampler, Tempering):
            ladder = sampler.ladder()
            chains = [
                posterior.chain(rung, chain_seed(seed, 100 * number + r + 1), rule, start)
                for r, rung in enumerate(ladder)
            ]
            replicas = Replicas(chains, ladder, seed + number, sampler.swap_every)
            for step in range(0, n_steps, every):
                temper(replicas, every)
                if step >= burn_in:
                    kept.append(chains[replicas.at_rung[0]].rows.raw[0, posterior.watched].copy())
            n_taken += n_steps * len(ladder)
            swap_rates.append(replicas.swap_rates)
        else:
            chain = posterior.chain(sampler, chain_seed(seed, number + 1), rule, start)
            for step in range(n_steps):
                chain.step()
                if step % every == every - 1 and step >= burn_in and sampler.move(step).temperature:
                    kept.append(chain.rows.raw[0, posterior.watched].copy())
            n_taken += n_steps
        seconds += time.process_time() - begun
        draws.append(kept)
    rates = np.mean(swap_rates, axis=0).tolist() if swap_rates else None
    return Watched(np.array(draws), n_taken, seconds, rates)


# Rates in units of the friction (1 without momentum). Where structures are drawn anew at each step,
# their randomness adds eps / (2 a) of the temperature at most (`docs/dynamics.md`): RATE makes the
# variance about 10 % too large, FAST shows how that grows.
RATE, FAST = 0.22, 1.0
FRICTIONS = {"uci_kin8nm": (0.5, 0.2, 0.1, 0.05), "california_housing": (0.5, 0.1)}
N_STEPS = {"uci_kin8nm": 24_000, "california_housing": 12_000}
N_FAST, EVERY = 6_000, 10
N_GREEDY, GREEDY_FRICTIONS = {"uci_kin8nm": 6_000, "california_housing": 3_000}, (0.5, 0.1)
# Steps of a cycle, and the temperature of the hottest chain, of 4, as by name.
CYCLE, HOT = 1_000, 100.0


def cyclical(shrink_rate):
    falling = Shape("cosine", RATE, 0.0, every=CYCLE)
    return Langevin(falling, Shape("jump", 0.0, 1.0, CYCLE // 2, every=CYCLE), shrink_rate)


def frozen_methods(name, shrink_rate):
    """Name -> sampler, steps of each chain."""
    n_steps = N_STEPS[name]
    methods = {"langevin": (Langevin(RATE, 1.0, shrink_rate), n_steps)}
    for a in FRICTIONS[name]:
        methods[f"hamiltonian {a:g}"] = (Hamiltonian(a * RATE, 1.0, shrink_rate, a), n_steps)
    methods["cyclical"] = (cyclical(shrink_rate), n_steps)
    methods["tempering"] = (Tempering(RATE, 1.0, shrink_rate, HOT), N_FAST)
    methods["langevin, fast"] = (Langevin(FAST, 1.0, shrink_rate), N_FAST)
    methods["hamiltonian 0.1, fast"] = (Hamiltonian(0.1 * FAST, 1.0, shrink_rate, 0.1), N_FAST)
    return methods


def greedy_methods(name, shrink_rate):
    methods = {"langevin": (Langevin(RATE, 1.0, shrink_rate), N_GREEDY[name])}
    for a in GREEDY_FRICTIONS:
        methods[f"hamiltonian {a:g}"] = (Hamiltonian(a * RATE, 1.0, shrink_rate, a), N_GREEDY[name])
    return methods


def greedy_rule():
    return GreedySearch(DEPTH)


def frozen(posterior, sampler, n_steps):
    """A row of the table of frozen structures."""
    watched = watch(posterior, sampler, n_steps, every=EVERY)
    return watched.against(posterior.variance) | {"swap_rates": watched.swap_rates}


def greedy(posterior, sampler, n_steps):
    """The same where structures are searched; there is no exact law, so variances are plain."""
    watched = watch(
        posterior, sampler, n_steps, every=EVERY, rule=greedy_rule(), burn_in=n_steps // 3
    )
    row = watched.against(np.ones(len(posterior.watched)))
    return row | {"n_steps": round(row["n_steps"] * 2 / 3), "seconds": row["seconds"] * 2 / 3}


def stepper(posterior, sampler, rule=None):
    """A function that takes a number of steps, those of all rungs together, for `costs`."""
    if not isinstance(sampler, Tempering):
        chain = posterior.chain(sampler, 1, rule)
        return lambda n: boost(chain, n)
    ladder = sampler.ladder()
    chains = [posterior.chain(rung, r + 1, rule) for r, rung in enumerate(ladder)]
    replicas = Replicas(chains, ladder, 0, sampler.swap_every)
    return lambda n: temper(replicas, n // len(ladder))


# One structure.

SINGLE_FRICTIONS = (1.0, 0.8, 0.5, 0.2, 0.1, 0.05)
N_LEAVES, LEAF_ROWS, SINGLE_STEPS = 512, 4, 20_000


def single_rate(friction, bias=BIAS):
    """eps k, k = 1 + gamma, at which the variance (2 - a) 2 T / n / (k (4 - 2 a - eps k)) is that
    of the limit times 1 + bias.
    """
    return 2.0 * (2.0 - friction) * bias / (1.0 + bias)


def single_formula(friction, bias=BIAS):
    """Effective draws a step for the mean and for the mean square, from autocorrelations.

    F follows F'' = (2 - a - w) F' - (1 - a) F + noise, w = eps k, an autoregression of order two;
    squares of normal numbers have the squares of its autocorrelations.
    """
    w, a = single_rate(friction, bias), friction
    first, second = 2.0 - a - w, -(1.0 - a)
    rho = np.empty(200_000)
    rho[0], rho[1] = 1.0, first / (1.0 - second)
    for lag in range(2, len(rho)):
        rho[lag] = first * rho[lag - 1] + second * rho[lag - 2]
        if abs(rho[lag]) + abs(rho[lag - 1]) < 1e-12:
            rho[lag + 1 :] = 0.0
            break
    return {
        "rate": w,
        "mean": float(1.0 / (2.0 * rho.sum() - 1.0)),
        "square": float(1.0 / (2.0 * np.square(rho).sum() - 1.0)),
    }


def single(friction, n_steps=SINGLE_STEPS, gamma=0.1):
    """The same measured: leaves of one structure are independent chains."""
    from sglb.experiments.small_chains import (
        FixedStructure,
        Recorder,
        binary_rows,
        bits_of,
        make_chain,
        splits,
    )

    depth = int(np.log2(N_LEAVES))
    leaf = np.repeat(np.arange(N_LEAVES), LEAF_ROWS)
    rows = binary_rows(bits_of(leaf, depth), np.zeros(len(leaf)))
    sampler = Hamiltonian(single_rate(friction) / (1.0 + gamma), 1.0, gamma, friction)
    chain = make_chain(
        rows, Squared(), sampler, FixedStructure(splits(*range(depth))), seed=round(1e3 * friction)
    )
    burn_in = 400 + round(20.0 / friction)
    recorder = Recorder(n_steps + burn_in, burn_in, np.arange(0, len(leaf), LEAF_ROWS))
    begun = time.process_time()
    boost(chain, n_steps + burn_in, [recorder])
    seconds = (time.process_time() - begun) * n_steps / (n_steps + burn_in)
    draws = recorder.raw[None]
    variance = np.square(recorder.raw).mean() * LEAF_ROWS * (1.0 + gamma)
    quarter = draws[:, :, ::4]
    return {
        "bias": float(variance - 1.0),
        "bulk": float(np.median(ess_bulk(quarter))),
        "tail": float(np.median(ess_tail(quarter))),
        "n_steps": n_steps,
        "seconds": seconds,
        "formula": single_formula(friction),
    }
