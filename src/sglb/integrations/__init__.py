"""Callbacks for other libraries, which are imported when a callback is made.

They stand on the public names of sglb alone, as a callback of yours would.
"""

from sglb.integrations.mlflow import MLflowLogging
from sglb.integrations.optuna import OptunaPruning

__all__ = ["MLflowLogging", "OptunaPruning"]
