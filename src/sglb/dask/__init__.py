"""Train on a Dask cluster, and predict there: the estimators of sglb for Dask's collections.

    from dask.distributed import Client
    from sglb.dask import SGLBRegressor

    model = SGLBRegressor().fit(X, y, client=Client("scheduler:8786"))
    model.predict(X)  # a Dask array, computed when it is asked for

The model is that of one machine, bit for bit, however the rows are dealt to partitions and the
partitions to workers.
"""

from sglb.dask.estimators import SGLBClassifier, SGLBRanker, SGLBRegressor

__all__ = ["SGLBClassifier", "SGLBRanker", "SGLBRegressor"]
