"""What distributions learned from the residuals of fewer folds cost.

    python -m benchmarks.uncertainty.folds california_housing uci_kin40k uci_protein --splits 2

Prints minus the log likelihood and the coverage of 90 % intervals of test rows, by the number of
folds. Needs SGLB_DATA.
"""

import argparse
from unittest.mock import patch

import numpy as np

from benchmarks.uncertainty.methods import COVERAGE
from benchmarks.uncertainty.regression import is_test, load
from sglb import SGLBRegressor

FOLDS = (5, 4, 3, 2, 1)


def measure(X, y, test, seed, n_folds):
    """Minus log likelihood of standardised y, coverage, and coverage by quintile of width."""
    centre, unit = y[~test].mean(), y[~test].std()
    model = SGLBRegressor(uncertainty=True, random_state=seed, n_jobs=1)
    with patch.multiple("sglb.folds", RESIDUAL_FOLDS=(), FEWEST_FOLDS=n_folds):
        model.fit(X[~test], (y[~test] - centre) / unit)
    distribution, z = model.predict_distribution(X[test]), (y[test] - centre) / unit
    low, high = distribution.interval(COVERAGE).T
    inside = (low <= z) & (z <= high)
    quintiles = np.array_split(np.argsort(high - low), 5)
    nll = np.log(unit) - np.mean(distribution.logpdf(z))
    return nll, inside.mean(), [inside[rows].mean() for rows in quintiles]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--splits", type=int, default=1)
    options = parser.parse_args()
    for name in options.sets:
        X, y = load(name)
        for split in range(options.splits):
            test = is_test(name, len(y), split)
            for n_folds in FOLDS:
                nll, coverage, by_scale = measure(X, y, test, split, n_folds)
                shares = " ".join(f"{100.0 * share:.0f}" for share in by_scale)
                print(
                    f"{name} {split}, {n_folds} folds: {nll:.4f}, {100.0 * coverage:.1f} %"
                    f" ({shares})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
