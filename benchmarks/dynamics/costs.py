"""Processor time of a step: all that are compared take turns, and the fastest turn of each counts.

A machine with other work makes steps slower and never faster, and it makes those of one turn slower
alike. What is left is about as large as `spread`, the median turn over the fastest, less 1.
"""

import time

import numpy as np

N_TURNS = 20


def in_turns(steppers, n_steps, n_turns=N_TURNS):
    """Name -> seconds of a step and its spread; a stepper takes a number of steps."""
    measured = {name: [] for name in steppers}
    for _ in range(n_turns):
        for name, take in steppers.items():
            begun = time.process_time()
            take(n_steps)
            measured[name].append((time.process_time() - begun) / n_steps)
    return {
        name: {"seconds": min(turns), "spread": float(np.median(turns)) / min(turns) - 1.0}
        for name, turns in measured.items()
    }


def of(results, workload):
    """Method -> seconds of a step of a workload, as far as they have been measured."""
    return {
        job.method: row["seconds"]
        for job, row in results.done.items()
        if (job.part, job.table) == ("costs", workload)
    }
