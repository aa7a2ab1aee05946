"""Callbacks for other libraries, which are imported when a callback is made.

They use public names of sglb only, as a user's callback would.
"""

from sglb.integrations.mlflow import MLflowLogging
from sglb.integrations.optuna import OptunaPruning

__all__ = ["MLflowLogging", "OptunaPruning"]
