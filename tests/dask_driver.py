"""A program that trains on a cluster and writes checkpoints: python tests/dask_driver.py ADDRESS
PATH.
"""

import sys
import time

from dask.distributed import Client

import sglb.dask
from dask_clusters import in_partitions
from sglb import BaseCallback, Checkpoint
from small_tables import FAST
from test_held import awkward_frame


class Slow(BaseCallback):
    def step(self, info):
        time.sleep(0.1)


def train(client, path=None, callbacks=(), **options):
    frame, y, _ = awkward_frame()
    watching = [*callbacks, *([] if path is None else [Checkpoint(path, 1)])]
    model = sglb.dask.SGLBRegressor(**FAST)
    return model.fit(in_partitions(frame), y, client=client, callbacks=watching, **options)


if __name__ == "__main__":
    with Client(sys.argv[1]) as client:
        train(client, sys.argv[2], [Slow()])
