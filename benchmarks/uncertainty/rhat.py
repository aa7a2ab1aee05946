"""How many draws it takes that R-hat is below 1.01 in nearly all rows, and how long.

    python -m benchmarks.uncertainty.rhat

Independent draws first, which is chance alone, then draws around a classifier of 20,000 rows with
two threads. Seconds are those of the processor, of both threads together.
"""

import time

import numpy as np

from benchmarks.uncertainty.known import simulate
from sglb import SGLBClassifier, diagnostics

N_ROWS, N_SIMULATED, THREADS = 20_000, 4000, 2
DRAWS = (450, 900, 1600)


def main():
    rng = np.random.default_rng(0)
    for n_draws in DRAWS:  # a draw and its mirror image count once
        rhat = diagnostics.rhat(rng.normal(size=(2, n_draws // 2, N_SIMULATED)))
        print(f"{n_draws} independent draws: {100.0 * np.mean(rhat < 1.01):.1f} % below 1.01")
    X, y, _, _ = simulate("classes", N_ROWS, 0)
    model = SGLBClassifier(random_state=0, n_jobs=THREADS).fit(X, y)
    for n_draws in DRAWS:
        start = time.process_time()
        posterior = model.posterior(X, y, n_draws=n_draws)
        seconds, summary = time.process_time() - start, posterior.summary()
        print(
            f"{n_draws} draws, {posterior.plan.n_steps} steps, {seconds:.1f} s:"
            f" {100.0 * np.mean(summary.rhat < 1.01):.1f} % below 1.01,"
            f" {np.median(summary.ess_bulk):.0f} effective draws",
            flush=True,
        )


if __name__ == "__main__":
    main()
