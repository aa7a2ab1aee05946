"""Predict on Spark: each executor gets the model once, and a pandas UDF predicts batch by batch.

    pip install sglb pandas pyarrow pyspark    # needs Java 17 or newer; sglb on every executor
    python examples/spark_predict.py           # local mode, two cores
    spark-submit examples/spark_predict.py     # on a cluster: leave out master(...) below

The predictions are those of the driver, bit for bit.
"""

import os
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf, struct

import sglb

rng = np.random.default_rng(0)
table = pd.DataFrame(rng.normal(size=(20_000, 4)), columns=["age", "income", "debt", "balance"])
table["city"] = rng.choice(["Oslo", "Rome", "Lima"], len(table))
is_lost = table["debt"] - table["income"] + (table["city"] == "Rome") + rng.normal(size=20_000) > 1
columns = list(table.columns)


def as_trained(batch: pd.DataFrame) -> pd.DataFrame:
    """Columns and types as fit had them; Spark passes categories as text."""
    return batch[columns].astype({"city": "category"})


model = sglb.SGLBClassifier(uncertainty=True, random_state=0)
model.fit(as_trained(table[:5000]), is_lost[:5000])

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the first python3 of the PATH
spark = SparkSession.builder.master("local[2]").appName("sglb").getOrCreate()
sent = spark.sparkContext.broadcast(model.set_params(n_jobs=1))  # Spark runs a task on each core


@pandas_udf("probability double, data double, knowledge double")
def predict(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Return the probability of the second class, and how uncertain the model is, of each row."""
    here = sent.value
    for batch in batches:
        of_rows = here.predict_uncertainty(as_trained(batch))
        yield pd.DataFrame(
            {
                "probability": here.predict_proba(as_trained(batch))[:, 1],
                "data": of_rows.data,
                "knowledge": of_rows.knowledge,
            }
        )


rows = spark.createDataFrame(table.assign(row=range(len(table)))).repartition(4)
result = rows.select("row", predict(struct(*columns)).alias("p")).select("row", "p.*")
predicted = result.toPandas().sort_values("row")
spark.stop()

print(predicted.head(3).to_string(index=False))
expected = model.predict_uncertainty(as_trained(table))
same = (
    np.array_equal(predicted["probability"], model.predict_proba(as_trained(table))[:, 1])
    and np.array_equal(predicted["data"], expected.data)
    and np.array_equal(predicted["knowledge"], expected.knowledge)
)
print(f"{len(predicted):,} rows on Spark: {'the same bits' if same else 'DIFFERENT'} as here")
