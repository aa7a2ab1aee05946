"""Boosted stumps in NumPy, with ways to sample rows and split that the library does not have.

The synthetic experiment leaves open what "subsampling rate 0.5" samples and what a default of the
reference implementation adds. Each `StumpVariant` is one answer. The plain variant takes the same
steps as the library's kernels.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sglb.bins import Bins
from sglb.experiments.synthetic import BORDERS, RATE, SUBSAMPLE, WIDTH, Curve, SyntheticFold
from sglb.losses.links import sigmoid

Floats = NDArray[np.float64]
RowSampling = Literal["all", "bernoulli", "without replacement", "with replacement"]


@dataclass(frozen=True)
class StumpVariant:
    """How rows are sampled at each step, at which rate, and what they are used for.

    `unbiased` divides by the rate and by the size of the whole leaf; otherwise a leaf is the mean
    of its sampled rows. `random_strength` is CatBoost's noise on the split scores. `start` is the
    raw score before the first step.
    """

    name: str
    rows: RowSampling = "all"
    rate: float = SUBSAMPLE
    in_leaves: bool = True
    unbiased: bool = False
    random_strength: float = 0.0
    borders: Literal["greedy", "quantiles", "even"] = "greedy"
    start: Literal["zero", "log odds"] = "zero"


VARIANTS = (
    StumpVariant("GB"),
    StumpVariant(
        "SGB as here: Bernoulli, structure and leaves, unbiased", "bernoulli", unbiased=True
    ),
    StumpVariant("the mean of the rows drawn", "bernoulli"),
    StumpVariant("without replacement", "without replacement"),
    StumpVariant("with replacement", "with replacement"),
    StumpVariant("structure only, as CatBoost does", "bernoulli", in_leaves=False),
    StumpVariant("structure only, without replacement", "without replacement", in_leaves=False),
    StumpVariant(
        "structure only, random strength 1", "bernoulli", in_leaves=False, random_strength=1.0
    ),
    StumpVariant("GB, random strength 1", random_strength=1.0),
    StumpVariant("GB, borders at quantiles", borders="quantiles"),
    StumpVariant("GB, borders evenly spaced", borders="even"),
    StumpVariant(
        "SGB as here, borders at quantiles", "bernoulli", unbiased=True, borders="quantiles"
    ),
    StumpVariant("SGB as here, borders evenly spaced", "bernoulli", unbiased=True, borders="even"),
    StumpVariant("GB, starts at log odds", start="log odds"),
    StumpVariant("SGB as here, starts at log odds", "bernoulli", unbiased=True, start="log odds"),
    *(
        StumpVariant(f"SGB as here, rate {rate:g}", "bernoulli", rate, unbiased=True)
        for rate in (0.8, 0.9, 0.95, 0.99)
    ),
)


def _counts(variant: StumpVariant, n_rows: int, generator: np.random.Generator) -> Floats:
    """Return how often each row is sampled."""
    n_drawn = round(variant.rate * n_rows)
    match variant.rows:
        case "all":
            return np.ones(n_rows)
        case "bernoulli":
            return (generator.random(n_rows) < variant.rate).astype(np.float64)
        case "without replacement":
            return (generator.permutation(n_rows) < n_drawn).astype(np.float64)
        case "with replacement":
            drawn = generator.integers(n_rows, size=n_drawn)
            return np.bincount(drawn, minlength=n_rows).astype(np.float64)


def _borders(variant: StumpVariant, x: Floats) -> Floats:
    """Return the borders of each feature, (n_features, BORDERS)."""
    match variant.borders:
        case "greedy":
            return Bins.fit(x, BORDERS + 1).thresholds
        case "quantiles":
            share = np.arange(1, BORDERS + 1) / (BORDERS + 1)
            return np.quantile(x, share, axis=0).T.copy()
        case "even":
            low, high = x.min(axis=0), x.max(axis=0)
            return np.linspace(low, high, BORDERS + 2)[1:-1].T.copy()


def _choose(sums: Floats, sizes: Floats, noise: Floats | None) -> int:
    """Return the split with the best score from sums and sizes (n_splits, 2) of its leaves."""
    filled = sizes > 0.0
    score = np.where(filled, sums**2 / np.where(filled, sizes, 1.0), 0.0).sum(axis=1)
    if noise is not None:
        score = np.sqrt(score) + noise
    score[~filled.all(axis=1)] = -np.inf  # an empty leaf: not a candidate
    return int(np.argmax(score))


def train(variant: StumpVariant, fold: SyntheticFold, n_steps: int, seed: int) -> Curve:
    """Boost stumps on a fold by the smoothed 0-1 loss."""
    generator = np.random.default_rng(seed)
    borders = _borders(variant, fold.x)
    left = (fold.x[:, :, None] <= borders).reshape(len(fold.x), -1)
    test_left = (fold.test_x[:, :, None] <= borders).reshape(len(fold.test_x), -1)
    leaves = np.stack([left, ~left], axis=-1).reshape(len(left), -1).astype(np.float64)
    n_rows, side = len(fold.y), 2.0 * fold.y - 1.0
    rate = fold.y.mean()
    start = np.log(rate / (1.0 - rate)) if variant.start == "log odds" else 0.0
    raw, test_raw = np.full(n_rows, start), np.full(len(fold.test_y), start)
    raws, test_raws = np.empty((n_steps, n_rows)), np.empty((n_steps, len(test_raw)))
    for step in range(n_steps):
        right = sigmoid(side * raw / WIDTH)
        gradient = -side / WIDTH * right * (1.0 - right)
        drawn = _counts(variant, n_rows, generator)
        estimate, size = gradient * drawn, drawn
        if variant.unbiased:
            estimate, size = estimate / variant.rate, np.ones(n_rows)
        noise = None
        if variant.random_strength:
            # CatBoost's noise, which fades as N / (N + e^(eps tau)).
            fade = n_rows / (n_rows + np.exp(min(RATE * step, 700.0)))
            spread = variant.random_strength * np.sqrt(np.mean(gradient**2)) * fade
            noise = spread * generator.standard_normal(left.shape[1])
        sums, sizes = estimate @ leaves, size @ leaves
        split = _choose(sums.reshape(-1, 2), sizes.reshape(-1, 2), noise)
        if not variant.in_leaves:
            estimate, size = gradient, np.ones(n_rows)
        goes_left = left[:, split]
        below = -RATE * estimate[goes_left].sum() / size[goes_left].sum()
        above = -RATE * estimate[~goes_left].sum() / size[~goes_left].sum()
        raw = raws[step] = raw + np.where(goes_left, below, above)
        test_raw = test_raws[step] = test_raw + np.where(test_left[:, split], below, above)
    return fold.curve(raws, test_raws)


def run_fold(number: int, n_steps: int, seed: int) -> dict[str, Curve]:
    """Boost every variant on fold `number`."""
    fold = SyntheticFold.draw(number, seed)
    return {variant.name: train(variant, fold, n_steps, seed + number) for variant in VARIANTS}
