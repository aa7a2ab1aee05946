"""Ranks of an MPI program, each with a part of the rows, have the model of all rows."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
PLACES = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
MPIRUN = shutil.which("mpirun", path=PLACES)
RANKS = Path(__file__).parent / "mpi_ranks.py"

# What every rank says of fits on rows that are wrong on one of them.
ERRORS = {
    "infinity": "infinity in column 1, row 800",
    "no rows": "X of rank 0 must be an array or a frame, maybe empty",
    "some weights": "sample_weight is None on ranks [1] and stated on others",
    "other weights": "sample_weight is None on ranks [0] and stated on others",
    "lengths": "on rank 0 X has 340 rows but y has 350",
    "columns": "rank 2 of X has the columns of the table in another order",
    "odd error": "RuntimeError: OddError('this and that')",
    "unpicklable": "TypeError: the estimator cannot be sent to all ranks",
    "interrupt 0": "KeyboardInterrupt",
    "interrupt 2": "KeyboardInterrupt",
    "afterwards": "no error",
}


def reports(*command):
    """What the ranks of a program say."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    environment |= {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    environment |= {"OMPI_MCA_mpi_yield_when_idle": "1"}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        [*command, sys.executable, str(RANKS)],
        capture_output=True,
        text=True,
        timeout=180,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return [ast.literal_eval(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(MPIRUN is None, reason="needs mpirun")
def test_three_ranks_have_the_model_of_all_rows_and_its_errors():
    every = reports(MPIRUN, "-n", "3")
    assert len(every) == 3
    for report in every:
        for name, message in ERRORS.items():
            assert message in report.pop(name), name
        assert report == dict.fromkeys(["numbers", "weights", "labels", "queries"], True)
