"""The training loss that samplers reach on problems with many valleys, by equally many gradients.

A setting means the same on all problems, because it is in their units: with n the rows of a leaf,
d the barrier and c the curvature of a problem,

    learning rate e / c,    temperature t d n,    shrink rate g c

Every sampler has four settings. The one that comes closest to the best known losses of all problems
together, on seeds that are used for nothing else, is compared on the others: after equally many
gradients, after equal time (steps of all samplers are timed in turn, `costs`), and after LONG times
as many gradients. The best known loss is the lowest of all these runs, or one that is known anyway.
"""

import time
from functools import lru_cache

import numpy as np

from benchmarks.dynamics.problems import PROBLEMS
from sglb.boosting import boost
from sglb.noise import chain_seed
from sglb.samplers import Hamiltonian, Langevin, Plain, Rates, Stochastic, Tempering
from sglb.samplers.annealed import annealed as cool_down
from sglb.settings import Settings
from sglb.tempering import Replicas, temper

# Gradients of all rows that a run may compute: steps times chains.
BUDGET = {"double well": 2000, "truncated": 2000, "paper": 5000, "parity": 5000, "ranking": 1500}
N_SEEDS = 20
FIRST_CHOICE, N_CHOICE = 100, 4
# How much longer the runs are that show what more time does, and of which samplers.
LONG, LONG_METHODS = 10, ("tempering", "annealed", "stochastic", "plain")
# A run has reached the best loss if this share of the way from the start to it is left.
LEFT = 0.02

E, FRICTION, N_REPLICAS = 0.2, 0.1, 4


def plain(problem, n_steps, e):
    return Plain(e / problem.curvature)


def stochastic(problem, n_steps, subsample):
    return Stochastic(E / problem.curvature, subsample)


def units(problem, t, g):
    """Learning rate, temperature, shrink rate."""
    temperature = t * problem.barrier * problem.leaf_rows
    return E / problem.curvature, temperature, g * problem.curvature


def langevin(problem, n_steps, t, g):
    return Langevin(*units(problem, t, g))


def hamiltonian(problem, n_steps, t, g):
    rate, temperature, shrink_rate = units(problem, t, g)
    return Hamiltonian(FRICTION * rate, temperature, shrink_rate, FRICTION)


def annealed(problem, n_steps, t, g, ratio):
    """sampler="annealed", from a temperature and a shrink rate to a share of both."""
    rate, temperature, shrink_rate = units(problem, t, g)
    return cool_down(
        Rates(
            learning_rate=rate,
            temperature=temperature,
            hot_temperature=temperature,
            shrink_rate=shrink_rate,
            hot_shrink_rate=shrink_rate,
            friction=1.0,
            subsample=1.0,
            structure_noise=1.0,
            n_steps=n_steps,
        ),
        ratio,
    )


def tempering(problem, n_steps, t, g, ratio):
    """A ladder down from t and g of the hottest chain."""
    rate, hot, shrink_rate = units(problem, t, g)
    return Tempering(rate, ratio * hot, ratio * shrink_rate, hot, N_REPLICAS)


def default(problem, n_steps):
    """What an estimator does that is told nothing but the loss and the depth of trees."""
    return problem.defaults(n_steps)


GRIDS = {
    plain: [(0.05,), (0.1,), (0.2,), (0.4,)],
    stochastic: [(0.1,), (0.3,), (0.5,), (0.8,)],
    langevin: [(1e-3, 1e-3), (1e-3, 0.1), (1e-2, 1e-2), (0.1, 0.1)],
    hamiltonian: [(1e-3, 1e-3), (1e-3, 0.1), (1e-2, 1e-2), (0.1, 0.1)],
    annealed: [(1e-3, 1e-2, 1e-4), (0.03, 0.3, 1e-4), (0.3, 0.1, 1e-2), (3.0, 1e-2, 1e-2)],
    tempering: [(1.0, 1e-2, 1e-3), (1.0, 0.1, 1e-3), (0.1, 1e-2, 1e-3), (0.1, 0.1, 1e-3)],
    default: [()],
}
METHODS = [make.__name__ for make in GRIDS]
# What is computed: for the choice, after equally many gradients, equal time, and a long time.
PARTS = ("choice", "descent", "timed", "long")


@lru_cache(maxsize=8)
def problem_of(name, seed):
    return PROBLEMS[name](seed)


def settings():
    """Name of a setting, "sampler number ...", -> function and numbers."""
    return {
        " ".join([make.__name__, *(f"{number:g}" for number in numbers)]): (make, numbers)
        for make, grid in GRIDS.items()
        for numbers in grid
    }


def descend(problem_name, make, numbers, seed, *, longer=1):
    """The loss that a sampler reaches, where it started, and what is known of the best."""
    problem, n_steps = problem_of(problem_name, seed), max(1, round(longer * BUDGET[problem_name]))
    sampler = make(problem, n_steps, *numbers)
    row = {"best": problem.best, "n_steps": n_steps}
    begun = time.process_time()
    if isinstance(sampler, Settings):
        chain = problem.default_chain(sampler, chain_seed(seed, 1))
        row["start"] = problem.loss_of(chain)
        boost(chain, n_steps)
    elif isinstance(sampler, Tempering):
        ladder = sampler.ladder()
        chains = [problem.chain(ladder[0], seed, number=r) for r in range(len(ladder))]
        row["start"] = problem.loss_of(chains[0])
        replicas = Replicas(chains, ladder, seed, sampler.swap_every)
        temper(replicas, n_steps // len(ladder))
        chain = chains[replicas.at_rung[0]]
        row["swap_rates"] = replicas.swap_rates.tolist()
    else:
        chain = problem.chain(sampler, chain_seed(seed, 1))
        row["start"] = problem.loss_of(chain)
        boost(chain, n_steps)
    return row | {"seconds": time.process_time() - begun, "loss": problem.loss_of(chain)}


def run(problem_name, setting, seed, longer=1):
    """The same of a setting by its name, with `longer` times as many gradients."""
    return descend(problem_name, *settings()[setting], seed, longer=longer)


def stepper(problem_name, setting, seed=0):
    """A function that takes a number of gradients of all rows with a sampler, for `costs`."""
    problem, (make, numbers) = problem_of(problem_name, seed), settings()[setting]
    sampler = make(problem, BUDGET[problem_name], *numbers)
    if isinstance(sampler, Tempering):
        ladder = sampler.ladder()
        chains = [problem.chain(ladder[0], seed, number=r) for r in range(len(ladder))]
        replicas = Replicas(chains, ladder, seed, sampler.swap_every)
        return lambda n: temper(replicas, n // len(ladder))
    if isinstance(sampler, Settings):
        chain = problem.default_chain(sampler, seed)
    else:
        chain = problem.chain(sampler, seed)
    return lambda n: boost(chain, n)


def of_seed(results, part, problem, seed):
    """Method or setting -> row of a part."""
    return {
        job.method: row
        for job, row in results.done.items()
        if (job.part, job.table, job.split) == (part, problem, seed)
    }


def left(results, part, problem, seed):
    """Method -> share of the way from the start to the best known loss that is left."""
    rows = of_seed(results, part, problem, seed)
    every = [row for each in PARTS for row in of_seed(results, each, problem, seed).values()]
    known = [row["loss"] for row in every]
    known += [row["best"] for row in every if row["best"] is not None]
    best = min(known, default=0.0)
    return {name: (row["loss"] - best) / (row["start"] - best) for name, row in rows.items()}


def chosen(results):
    """Sampler -> the setting that leaves least of the way, on average over the problems."""
    seeds = range(FIRST_CHOICE, FIRST_CHOICE + N_CHOICE)
    shares = [left(results, "choice", problem, seed) for problem in PROBLEMS for seed in seeds]
    complete = [share for share in shares if len(share) == len(settings())]
    if not complete:
        return {}
    mean = {name: np.mean([share[name] for share in complete]) for name in settings()}
    return {
        method: min((name for name in mean if name.split()[0] == method), key=mean.get)
        for method in METHODS
    }
