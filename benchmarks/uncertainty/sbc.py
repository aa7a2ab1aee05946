"""Simulation-based calibration of draws on frozen partitions.

    python -m benchmarks.uncertainty.sbc --replications 2000

    f ~ prior of the partitions,    y ~ likelihood of f,    f_1 .. f_M ~ posterior, given y

If the draws are from the posterior, f is like one of them, so that the rank of any number g(f, y)
among the g(f_m, y) is uniform on 0 .. M (Talts et al., "Validating Bayesian inference algorithms
with simulation-based calibration", 2018). This holds for any likelihood, also where no formula of
the posterior is known. The numbers g are f at some rows, at a row in leaves without training rows,
the sum over the training rows, and the loss of y: without the last a sampler that ignores y would
pass (Modrak et al., 2023).

Each case has a chi-square test for each number. The length of a step makes standard deviations too
large by up to 2.3 %, which adds less than 2 to a chi-square of 16 degrees of freedom from 2,000
replications.
"""

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from scipy.stats import chisquare

from sglb.losses import Logistic, Softmax, Squared
from sglb.losses.shapes import user_shape
from sglb.posterior import (
    DrawPlan,
    LeafDraws,
    LeafPrior,
    LossEnergy,
    PosteriorDriver,
    QuadraticEnergy,
    StoredPartitions,
)
from sglb.target import Target

N_ROWS, N_PARTITIONS, N_LEAVES = 12, 6, 4
# A batch: 17 ranks. Of mirrored draws 8 and their images.
N_DRAWS = 16
# Directions that only the prior determines relax at the rate learning rate * shrink rate, which is
# .015 a step or more here: of a wrong start e^-3 is left. A step adds up to 4.6 % to variances.
N_STEPS, LEARNING_RATE, PRIOR_VARIANCE = 200, 0.06, 0.4
# Probability that any test of a run fails although all is right.
FALSE_ALARM = 1e-3
# Truths and draws never share a seed.
TRUTH = 1 << 40


@dataclass(frozen=True)
class Case:
    """A likelihood: `loss` divided by `temperature` is minus its logarithm.

    With `laplace`, draws are of the expansion of the squared loss at the mean of the posterior,
    which is exact, and come with mirror images.
    """

    loss: object
    temperature: float = 1.0
    laplace: bool = False
    weighted: bool = False

    def weight(self):
        return np.random.default_rng(1).uniform(0.5, 3.0, N_ROWS) if self.weighted else None

    def simulate(self, f, rng):
        """Outcomes of raw scores (n_outputs, n_rows)."""
        if isinstance(self.loss, Squared):
            share = 1.0 if self.weight() is None else self.weight()
            return f[0] + np.sqrt(self.temperature / share) * rng.normal(size=N_ROWS)
        if isinstance(self.loss, Logistic):
            return (rng.uniform(size=N_ROWS) < 1.0 / (1.0 + np.exp(-f[0]))).astype(float)
        return np.argmax(f + rng.gumbel(size=f.shape), axis=0).astype(float)


CASES = {
    "squared, weights": Case(Squared(), 0.6, weighted=True),
    "laplace, mirror images": Case(Squared(), 0.6, laplace=True),
    "logistic": Case(Logistic()),
    "softmax": Case(Softmax(3)),
}


def make_partitions():
    """Partitions of the training rows, and of these and a row in leaves without training rows."""
    rng = np.random.default_rng(0)
    leaves = np.array([rng.integers(0, 1 + k % N_LEAVES, N_ROWS) for k in range(N_PARTITIONS)])
    n_leaves = np.full(N_PARTITIONS, N_LEAVES + 1)
    strange = np.where(np.arange(N_PARTITIONS) % 2, N_LEAVES, leaves[:, 0])
    return StoredPartitions(leaves, n_leaves), StoredPartitions(
        np.column_stack([leaves, strange]), n_leaves
    )


def posterior_mean(prior, y, weight, temperature, shrink_rate):
    """The mean of Gaussian process regression, (n_rows,)."""
    share = np.ones(N_ROWS) if weight is None else weight
    kernel = np.zeros((N_ROWS, N_ROWS))
    for k in range(N_PARTITIONS):
        leaf = prior.partitions.leaf(k)
        cover = np.bincount(leaf, share, minlength=N_LEAVES + 1)
        kernel += (leaf[:, None] == leaf) / cover[leaf] / N_PARTITIONS
    return kernel @ np.linalg.solve(kernel + shrink_rate * np.diag(1.0 / share), y)


def ranks(case, number):
    """The rank of each number of one simulated truth among those of the draws given its y."""
    partitions, rows = make_partitions()
    weight, T = case.weight(), case.temperature
    prior = LeafPrior(partitions, weight)
    shrink_rate = prior.shrink_rate(PRIOR_VARIANCE)
    values = np.empty((prior.n_all_leaves, case.loss.n_outputs, 1))
    prior.draw(T / (shrink_rate * N_PARTITIONS), 0, values, TRUTH + number)
    f = LeafDraws(rows.n_leaves, values.astype(np.float32)).predict(rows)
    y = case.simulate(f[:, :N_ROWS, 0], np.random.default_rng([number, 2]))
    target = Target.of(y, weight)
    plan = DrawPlan(PRIOR_VARIANCE, T, N_STEPS, LEARNING_RATE)
    centre = np.zeros(N_ROWS)
    if case.laplace:
        energy = QuadraticEnergy.at(case.loss, target, np.zeros((1, N_ROWS)))
        centre = posterior_mean(prior, y, weight, T, shrink_rate)
    else:
        energy = LossEnergy(case.loss, target)
    driver = PosteriorDriver(energy, partitions, seed=number)
    drawn = driver.draw(plan, N_DRAWS, mirror=case.laplace)
    # Of an expansion the draws are deviations from the mean, and so is the truth.
    f[0, :N_ROWS, 0] -= centre
    states = np.concatenate([f, drawn.predict(rows)], axis=2)  # the truth, then the draws
    return {name: int(np.sum(g[1:] < g[0])) for name, g in numbers(case, states, target).items()}


def numbers(case, states, target):
    """Numbers of states (n_outputs, n_rows + 1, M) of truth and draws, (M,) each."""
    seen = states[:, :N_ROWS]
    result = {"row 0": seen[0, 0], "row 5": seen[0, 5], "sum": seen[0].sum(axis=0)}
    if case.laplace:  # the mean at a strange row is not computed, and the loss is not symmetric
        return result
    result["strange row"] = states[0, N_ROWS]
    losses = [case.loss.losses(target, user_shape(state)) for state in np.moveaxis(seen, 2, 0)]
    return result | {"loss": np.array([target.mean(loss) for loss in losses])}


def probabilities(case):
    """Of the ranks 0 .. N_DRAWS.

    With mirror images the rank is M +- the rank of |truth| among the M |draws|, both signs alike.
    """
    if not case.laplace:
        return np.full(N_DRAWS + 1, 1.0 / (N_DRAWS + 1))
    half = N_DRAWS // 2
    expected = np.full(N_DRAWS + 1, 0.5 / (half + 1))
    expected[half] *= 2.0
    return expected


def p_values(case, n_replications, first=0):
    """The p-value of a chi-square test of the ranks of each number."""
    several = [ranks(case, first + number) for number in range(n_replications)]
    return {
        name: float(
            chisquare(
                np.bincount([result[name] for result in several], minlength=N_DRAWS + 1),
                n_replications * probabilities(case),
            ).pvalue
        )
        for name in several[0]
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.uncertainty.sbc", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first replication")
    options = parser.parse_args(arguments)
    result = {
        (case, name): p
        for case in CASES
        for name, p in p_values(CASES[case], options.replications, options.first).items()
    }
    print(f"| case | number | p-value of {options.replications:,} ranks |\n|---|---|--:|")
    for (case, name), p in result.items():
        print(f"| {case} | {name} | {p:.3g} |")
    failed = [key for key, p in result.items() if p < FALSE_ALARM / len(result)]
    print(f"{len(result)} tests, {len(failed)} failed; by chance any fails once in 1,000 runs.")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
