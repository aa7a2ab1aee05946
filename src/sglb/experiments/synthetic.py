"""The paper's synthetic experiment: stumps, the 0-1 loss, and which methods leave local optima.

Each fold draws new rows of `datasets.synthetic` for training and for testing. A method is a loss
and a sampler. Recorded after each step k are its test 0-1 error and its objective, the smoothed 0-1
loss of the training rows:

    error_k    = mean over test rows of 1{(2 y - 1) f_k(x) <= 0}
    training_k = mean over training rows of 1 - s((2 y - 1) f_k(x) / width)

All methods use the same folds, so they are compared by the paired two-sided t-test.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils.parallel import Parallel, delayed

from sglb import _core
from sglb.bins import Bins
from sglb.boosting import boost
from sglb.callbacks import BaseCallback, StepInfo, Stop
from sglb.chain import Chain
from sglb.datasets import synthetic
from sglb.leaves import LeafRule
from sglb.losses import Logistic, Loss, Sla
from sglb.losses.links import sigmoid
from sglb.samplers import Langevin, Move, Plain, Sampler, Stochastic
from sglb.schedules import Shape
from sglb.settings import draw_seed
from sglb.shard import Shard
from sglb.slopes import SlopeBounds
from sglb.structure import GreedySearch, Sample, SamplePlan
from sglb.target import Target
from sglb.trace import Trace
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]
RawScores = Sequence[Floats] | Floats

# Arrays of all steps would be megabytes, which the system maps anew each time; that takes longer
# than the arithmetic. Arrays of this many steps are a quarter of a megabyte.
STEPS_AT_ONCE = 32
TRAIN_ROWS = TEST_ROWS = 1000
# As the paper states them: depth 1, five borders a feature, learning rate, width of sla, gamma, the
# rate at which SGB samples rows.
DEPTH, BORDERS, RATE, WIDTH, SHRINK_RATE, SUBSAMPLE = 1, 5, 0.1, 0.1, 1e-3, 0.5
# The paper writes beta = 10^3. As CatBoost's option counts it, in units of N, that is
# temperature = N / beta = 10^-3; to the letter, with N = 1000 rows, it is temperature 1.
TEMPERATURE, LITERAL_TEMPERATURE = 1e-3, 1.0


@dataclass(frozen=True)
class Method:
    """A row of the table. `structure`, if not None, is the sampler of the structure search, so that
    noise or sampling can be kept out of the structures or out of the leaves.
    """

    name: str
    loss: Loss
    sampler: Sampler
    structure: Sampler | None = None


def sglb(
    name: str,
    temperature: float,
    *,
    shrink_rate: float = SHRINK_RATE,
    subsample: float = 1.0,
    structure: Sampler | None = None,
) -> Method:
    """Return the paper's SGLB at another temperature."""
    sampler = Langevin(RATE, temperature, shrink_rate, subsample)
    return Method(name, Sla(WIDTH), sampler, structure)


REFERENCE = "sla + SGLB"
METHODS = (
    Method("logistic + GB", Logistic(), Plain(RATE)),
    Method("sla + GB", Sla(WIDTH), Plain(RATE)),
    Method("sla + SGB", Sla(WIDTH), Stochastic(RATE, SUBSAMPLE)),
    sglb(REFERENCE, TEMPERATURE),
)
# What the published table leaves open: the other reading of beta, what gamma does, noise in one
# place only, and Langevin noise on the gradients that SGB has, of a sample of the rows.
VARIANTS = (
    sglb("sla + SGLB, temperature 1", LITERAL_TEMPERATURE),
    sglb("sla + SGLB, gamma 0", TEMPERATURE, shrink_rate=0.0),
    sglb("sla + SGLB, leaf noise only", TEMPERATURE, structure=Plain(RATE)),
    Method("sla + SGB, structure rows only", Sla(WIDTH), Plain(RATE), Stochastic(RATE, SUBSAMPLE)),
    sglb("sla + SGLB, subsample 0.5", TEMPERATURE, subsample=SUBSAMPLE),
)
# First and last temperature and gamma of the long chains that cool down: chosen among fifteen pairs
# on eight folds of seed 7.
COOLING = (0.3, 0.01), (1e-2, 1e-6)


def cooled(n_steps: int, subsample: float = 1.0) -> Langevin:
    """Return the sampler of a long chain that cools down."""
    temperature, shrink_rate = (Shape("geometric", *ends, n_steps) for ends in COOLING)
    return Langevin(RATE, temperature, shrink_rate, subsample)


def long_methods(n_steps: int) -> tuple[Method, ...]:
    """Return the methods that compete for the lowest training loss after `n_steps` steps."""
    return (
        *METHODS[1:],
        Method("sla + SGLB, cooled", Sla(WIDTH), cooled(n_steps)),
        Method("sla + SGLB, cooled, subsample 0.5", Sla(WIDTH), cooled(n_steps, SUBSAMPLE)),
    )


class OwnSearch(Shard):
    """Rows whose structures are searched with the noise and sampling of another sampler."""

    search_sampler: Sampler

    def draw(self, plan: SamplePlan, bounds: SlopeBounds, move: Move, draws: _core.Draws) -> Sample:
        """Draw the sample as if the chain moved as `search_sampler` says."""
        other = self.search_sampler.move(draws.step)
        # The first bound is of gradient / subsample, and the two subsamples differ.
        scaled = bounds[0] * move.subsample / other.subsample, bounds[1]
        return super().draw(plan, scaled, other, draws)


class _Raws(BaseCallback):
    """Keeps the raw scores of the training rows after each step, or after those of `numbers`."""

    def __init__(self, numbers: Collection[int] | None = None) -> None:
        self.numbers = None if numbers is None else frozenset(numbers)
        self.raws: list[Floats] = []

    def step(self, info: StepInfo) -> Stop | None:
        if self.numbers is None or info.step in self.numbers:
            self.raws.append(info.raw[0].copy())
        return None


@dataclass(frozen=True)
class Curve:
    """Test 0-1 error and smoothed 0-1 loss of the training rows after each step."""

    error: Floats
    training: Floats


@dataclass(frozen=True)
class SyntheticFold:
    """Training rows and test rows."""

    x: Floats
    y: Floats
    test_x: Floats
    test_y: Floats

    @classmethod
    def draw(cls, number: int, seed: int) -> "SyntheticFold":
        """Draw fold `number` of the experiment with this seed."""
        x, label = synthetic(TRAIN_ROWS + TEST_ROWS, [seed, number])
        y = label.astype(np.float64)
        return cls(x[:TRAIN_ROWS], y[:TRAIN_ROWS], x[TRAIN_ROWS:], y[TRAIN_ROWS:])

    def curve(self, raws: RawScores, test_raws: RawScores) -> Curve:
        """Return the errors of raw scores (n_rows,) after each step, of training and test rows."""
        wrong, test_side = 1.0 - 2.0 * self.y, 2.0 * self.test_y - 1.0
        training, error = np.empty(len(raws)), np.empty(len(test_raws))
        for first in range(0, len(raws), STEPS_AT_ONCE):
            steps = slice(first, first + STEPS_AT_ONCE)
            with np.errstate(over="ignore"):
                training[steps] = sigmoid(wrong * np.asarray(raws[steps]) / WIDTH).mean(axis=1)
            error[steps] = (test_side * np.asarray(test_raws[steps]) <= 0.0).mean(axis=1)
        return Curve(error, training)


def train(
    method: Method,
    fold: SyntheticFold,
    n_steps: int,
    seed: int,
    numbers: Sequence[int] | None = None,
) -> Curve:
    """Run the chain of a method on a fold; judge every step, or those of the rising `numbers`."""
    bins = Bins.fit(fold.x, BORDERS + 1, seed=seed)
    data = TrainingSet.build(bins.encode(fold.x), bins.n_codes, Target.of(fold.y))
    trace = Trace(bins, DEPTH, np.zeros(1))
    if method.structure is None:
        rows = Shard.start(data, method.loss, trace, newton=False)
    else:
        rows = searched = OwnSearch.start(data, method.loss, trace, newton=False)
        searched.search_sampler = method.structure
    kept = _Raws(numbers)
    boost(
        Chain(rows, method.sampler, GreedySearch(DEPTH), LeafRule(), trace, seed=seed),
        n_steps,
        [kept],
    )
    if numbers is None:
        return fold.curve(kept.raws, [raw[0] for raw in trace.staged(fold.test_x)])
    return fold.curve(kept.raws, trace.predict(fold.test_x, states=numbers)[:, 0])


def run_fold(
    number: int,
    n_steps: int,
    seed: int,
    methods: Sequence[Method] = METHODS,
    numbers: Sequence[int] | None = None,
) -> dict[str, Curve]:
    """Train every method on fold `number`; `numbers` as for `train`."""
    fold, chain_seed = SyntheticFold.draw(number, seed), draw_seed(seed + number)
    return {method.name: train(method, fold, n_steps, chain_seed, numbers) for method in methods}


@dataclass(frozen=True)
class Comparison:
    """A method compared with the reference: mean and standard error of its last error, its p-value,
    the error of its best step on the test rows and its last loss on the training rows.
    """

    name: str
    error: float
    standard_error: float
    p_value: float | None
    best: float = float("nan")
    training: float = float("nan")


@dataclass(frozen=True)
class Result:
    """Test errors and training losses (n_folds, n_steps) of each method, and the seconds taken;
    n_steps is the number of steps that were recorded.
    """

    curves: dict[str, Floats]
    seconds: float
    training: dict[str, Floats] = field(default_factory=dict)

    @property
    def n_steps(self) -> int:
        """Number of steps of each chain that were recorded."""
        return int(next(iter(self.curves.values())).shape[1])

    def compare(self, reference: str = REFERENCE) -> list[Comparison]:
        """Compare every method after its last step with the reference, fold by fold."""
        against = self.curves[reference][:, -1]
        rows = []
        for name, curve in self.curves.items():
            last = curve[:, -1]
            training = self.training.get(name)
            rows.append(
                Comparison(
                    name,
                    float(last.mean()),
                    standard_error(last),
                    None if name == reference else paired_p_value(last, against),
                    float(curve.min(axis=1).mean()),
                    float("nan") if training is None else float(training[:, -1].mean()),
                )
            )
        return rows


def standard_error(values: Floats) -> float:
    """Return sd / sqrt(n), NaN for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")


def paired_p_value(a: Floats, b: Floats, overlap: float = 0.0) -> float:
    """Return the two-sided p-value of the paired t-test; 1 if no pair differs, NaN if all differ by
    the same amount.

    With `overlap` the variance of the mean is (1 / n + overlap) times that of a difference.
    """
    difference = a - b
    if a.size < 2 or np.ptp(difference) <= 1e-12 * max(1.0, float(np.abs(difference).max())):
        return 1.0 if np.allclose(difference, 0.0, atol=1e-12) else float("nan")
    if overlap == 0.0:
        return float(stats.ttest_rel(a, b).pvalue)
    error = np.sqrt((1.0 / a.size + overlap) * difference.var(ddof=1))
    return 2.0 * float(stats.t.sf(abs(difference.mean()) / error, a.size - 1))


def run(
    n_folds: int = 100,
    n_steps: int = 1000,
    *,
    methods: Sequence[Method] = METHODS,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Callable[[int], None] | None = None,
    numbers: Sequence[int] | None = None,
) -> Result:
    """Run all folds, `n_jobs` at a time in processes; `progress` is called with the number done.

    With `numbers` the curves have only those steps.
    """
    job = partial(run_fold, n_steps=n_steps, seed=seed, methods=methods, numbers=numbers)
    return over_folds(job, n_folds, n_jobs, progress)


def over_folds(
    job: Callable[[int], Mapping[str, Curve]],
    n_folds: int,
    n_jobs: int,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Collect the curves that `job` returns for each fold."""
    started = time.perf_counter()
    # A fit of this size gains nothing from threads: whole folds go to processes instead.
    folds = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(job)(fold) for fold in range(n_folds)
    )
    curves: dict[str, list[Curve]] = {}
    for done, fold in enumerate(folds, start=1):
        for name, curve in fold.items():
            curves.setdefault(name, []).append(curve)
        if progress is not None:
            progress(done)
    return Result(
        {name: np.stack([c.error for c in per_fold]) for name, per_fold in curves.items()},
        time.perf_counter() - started,
        {name: np.stack([c.training for c in per_fold]) for name, per_fold in curves.items()},
    )
