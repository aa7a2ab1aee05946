"""One model of the rows of several MPI processes, the same bytes as that of one.

    pip install "sglb[mpi]"
    mpirun -n 3 python examples/mpi_fit.py

Every process makes its own third of the rows; none needs all of them but the last lines here, which
compare. Without mpirun a single process does the same.
"""

import numpy as np
from mpi4py import MPI

import sglb.mpi

rank, n_ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size


def part(number, n_rows=4000):
    """Stands for a file that this process reads."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(n_rows + 100 * number, 5))
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=len(X))


X, y = part(rank)
model = sglb.mpi.fit(sglb.SGLBRegressor(n_estimators=100, n_chains=2, random_state=0), X, y)
error = np.mean((model.predict(X) - y) ** 2)
print(f"rank {rank} of {n_ranks}: {len(y)} rows, mean squared error {error:.4f}", flush=True)

if rank == 0:
    parts = [part(number) for number in range(n_ranks)]
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    alone = sglb.SGLBRegressor(n_estimators=100, n_chains=2, random_state=0).fit(X, y)
    same = alone.trace_.values.tobytes() == model.trace_.values.tobytes()
    print(f"leaf values of one process: {'the same bytes' if same else 'DIFFERENT'}")
