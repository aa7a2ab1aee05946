"""Stochastic Gradient Langevin Boosting: the public names.

Each name is imported when it is first used, so `import sglb` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sglb import costs as costs
    from sglb import integrations as integrations
    from sglb import losses as losses
    from sglb import metrics as metrics
    from sglb import plots as plots
    from sglb import schedules as schedules
    from sglb import thresholds as thresholds
    from sglb.callbacks import BaseCallback as BaseCallback
    from sglb.callbacks import EarlyStopping as EarlyStopping
    from sglb.callbacks import History as History
    from sglb.callbacks import KeepOnInterrupt as KeepOnInterrupt
    from sglb.callbacks import Progress as Progress
    from sglb.callbacks import StepInfo as StepInfo
    from sglb.callbacks import Stop as Stop
    from sglb.callbacks import TimeLimit as TimeLimit
    from sglb.checkpoints import Checkpoint as Checkpoint
    from sglb.errors import ChainDiverged as ChainDiverged
    from sglb.errors import ChangedChain as ChangedChain
    from sglb.errors import CheckpointError as CheckpointError
    from sglb.errors import ModelFormatError as ModelFormatError
    from sglb.errors import NonFiniteGradient as NonFiniteGradient
    from sglb.errors import StepTooLong as StepTooLong
    from sglb.estimators import SGLBClassifier as SGLBClassifier
    from sglb.estimators import SGLBRanker as SGLBRanker
    from sglb.estimators import SGLBRegressor as SGLBRegressor
    from sglb.estimators import load as load
    from sglb.estimators import sklearn_expected_failed_checks as sklearn_expected_failed_checks
    from sglb.losses import check_loss as check_loss
    from sglb.parquet import ParquetTable as ParquetTable
    from sglb.peers import posterior_of as posterior_of
    from sglb.samplers import Langevin as Langevin
    from sglb.samplers import Plain as Plain
    from sglb.samplers import Stochastic as Stochastic
    from sglb.target import Target as Target

    __version__: str

_HOMES = {
    "BaseCallback": "callbacks",
    "ChainDiverged": "errors",
    "ChangedChain": "errors",
    "Checkpoint": "checkpoints",
    "CheckpointError": "errors",
    "EarlyStopping": "callbacks",
    "History": "callbacks",
    "KeepOnInterrupt": "callbacks",
    "Langevin": "samplers",
    "ModelFormatError": "errors",
    "NonFiniteGradient": "errors",
    "ParquetTable": "parquet",
    "Plain": "samplers",
    "Progress": "callbacks",
    "SGLBClassifier": "estimators",
    "SGLBRanker": "estimators",
    "SGLBRegressor": "estimators",
    "StepInfo": "callbacks",
    "StepTooLong": "errors",
    "Stochastic": "samplers",
    "Stop": "callbacks",
    "Target": "target",
    "TimeLimit": "callbacks",
    "check_loss": "losses",
    "load": "estimators",
    "posterior_of": "peers",
    "sklearn_expected_failed_checks": "estimators",
}

_MODULES = ("costs", "integrations", "losses", "metrics", "plots", "schedules", "thresholds")

__all__ = [*sorted(_HOMES), "__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("sglb")
    if name in _MODULES:
        return import_module(f"sglb.{name}")
    if name in _HOMES:
        return getattr(import_module(f"sglb.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'sglb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
