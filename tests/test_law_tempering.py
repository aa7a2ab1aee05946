"""Chains that exchange temperatures: the coldest has its law, across barriers that hold it."""

import numpy as np
import pytest
from scipy.stats import binomtest

from law import FixedStructure, assert_mean, binary_set, bits_of, make_chain, splits
from sglb.callbacks import BaseCallback, Stop
from sglb.errors import ChainDiverged
from sglb.losses import UserLoss
from sglb.samplers import Langevin
from sglb.tempering import Replicas, temper

DEPTH = 1
LEAF = np.repeat([0, 1], 4)  # two leaves of four rows: two double wells
RULE = FixedStructure(splits(*range(DEPTH)))
SWAP_EVERY = 5


class DoubleWell:
    """(raw^2 - 1)^2 / 4 - tilt * raw, valleys near -1 and 1, the second .04 deeper."""

    name = "double_well"
    convex = False
    row_wise = True
    tilt = 0.02

    def loss(self, y, raw):
        return np.square(np.square(raw) - 1.0) / 4.0 - self.tilt * raw

    def gradient(self, y, raw):
        return raw * (np.square(raw) - 1.0) - self.tilt


def gibbs_probability(temperature, gamma=0.05, loss=None):
    """Probability of raw > 0 in a leaf of four rows, by quadrature.

    Energy of a leaf: 4 L + gamma n_j raw^2 / 2, all over the temperature.
    """
    z = np.linspace(-4, 4, 40_001)
    energy = 4.0 * ((loss or DoubleWell()).loss(None, z) + gamma * z**2 / 2)
    density = np.exp(-(energy - energy.min()) / temperature)
    return density[z > 0].sum() / density.sum()


def run(temperatures, n_steps, seed, start=-1.0, eps=0.05, gamma=0.05, loss=None):
    """Return replicas that have taken steps from the shallow valley, and the coldest's states."""
    rows = binary_set(bits_of(LEAF, DEPTH), np.zeros(len(LEAF)))
    samplers = [Langevin(eps, t, gamma * t / temperatures[0]) for t in temperatures]
    chains = [
        make_chain(
            rows,
            UserLoss(loss or DoubleWell()),
            samplers[0],
            RULE,
            state=np.full((1, 1, len(LEAF)), start),
            seed=1000 * seed + number,
        )
        for number in range(len(temperatures))
    ]
    replicas = Replicas(chains, samplers, seed, SWAP_EVERY)
    raws = []
    for _ in range(n_steps // SWAP_EVERY):
        temper(replicas, SWAP_EVERY)
        raws.append(chains[replicas.at_rung[0]].rows.raw[0, [0, 4]].copy())
    return replicas, np.array(raws)


def test_the_exchange_rule_is_that_of_the_law():
    # Two rungs whose energies are fixed: the share of accepted exchanges is exp(gap) exactly.
    replicas, _ = run([0.5, 1.0], 5, seed=1)
    hot, cold = replicas.at_rung[1], replicas.at_rung[0]
    replicas.chains[cold].rows.raw[:] = 1.0
    replicas.chains[hot].rows.raw[:] = 1.0 - 0.3
    energies = [replicas.chains[number].rows.energy().value() for number in (cold, hot)]
    expected = np.exp((1 / 0.5 - 1 / 1.0) * (energies[0] - energies[1]))
    assert 0.2 < expected < 0.95
    accepted = []
    for step in range(20_000):
        replicas.at_rung = [cold, hot]
        before = replicas.n_swapped[0]
        replicas.exchange(10 * step)  # of even rounds
        accepted.append(float(replicas.n_swapped[0] - before))
    assert_mean(np.array(accepted), expected)  # error rate 1e-6


def test_the_coldest_chain_has_the_masses_of_the_valleys_that_hold_a_chain_alone():
    # The barrier is 6.4 temperatures high: alone, few chains leave the valley they start in.
    # Exact binomial tests; they fail a right sampler with probability 1e-6 together.
    n_runs, expected = 150, gibbs_probability(0.15)
    assert 0.6 < expected < 0.85
    alone, tempered = (
        [run(temperatures, 300, seed, eps=0.1)[1][-1, 0] > 0 for seed in range(n_runs)]
        for temperatures in ([0.15], [0.15, 0.4, 1.0])
    )
    assert binomtest(int(np.sum(tempered)), n_runs, expected).pvalue > 1e-6
    assert binomtest(int(np.sum(alone)), n_runs, expected).pvalue < 1e-20


def test_a_run_does_not_depend_on_threads_or_on_how_it_is_cut():
    def chains(n_threads, parts):
        replicas, _ = run([0.2, 0.4, 0.8], 0, seed=3)
        for n_steps in parts:
            temper(replicas, n_steps, n_threads=n_threads)
        return replicas

    single, other = chains(1, [40]), chains(3, [3, 12, 25])
    assert single.at_rung == other.at_rung
    assert single.coldest == other.coldest
    assert len(set(single.coldest)) > 1
    for a, b in zip(single.chains, other.chains, strict=True):
        assert np.array_equal(a.rows.raw, b.rows.raw)


def test_a_callback_sees_the_coldest_chain_and_ends_the_run():
    class Watch(BaseCallback):
        def __init__(self):
            self.temperatures = []

        def step(self, info):
            self.temperatures.append(info.move.temperature)
            return Stop("enough") if info.step == 23 else None

    replicas, _ = run([0.2, 0.4, 0.8], 0, seed=3)
    watch = Watch()
    info = temper(replicas, 40, [watch])
    assert info.stop.reason == "enough"
    assert watch.temperatures == pytest.approx([0.2] * 23)
    assert len(replicas.coldest) == 23


class Cliff(DoubleWell):
    """Falls so steeply that a step from far out leaves the numbers."""

    def gradient(self, y, raw):
        return np.full_like(raw, -4e307)


def test_a_last_step_that_leaves_the_numbers_is_an_error():
    far = {"start": 1.6e308, "eps": 1.0, "gamma": 1e-9}
    replicas, _ = run([0.2, 0.4], 0, seed=3, loss=Cliff(), **far)
    with pytest.raises(ChainDiverged, match="not finite after step 1"):
        temper(replicas, 1)
