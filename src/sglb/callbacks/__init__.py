"""Callbacks: called after each step of a chain, they may end it. One file per callback."""

from sglb.callbacks.base import (
    BaseCallback,
    Callback,
    Evaluation,
    Parameters,
    StepInfo,
    Stop,
    check_callbacks,
    check_stop,
    overrides_step,
)
from sglb.callbacks.displays import say
from sglb.callbacks.history import EvaluationSet, History
from sglb.callbacks.interrupt import KeepOnInterrupt
from sglb.callbacks.progress import Progress
from sglb.callbacks.stopping import EarlyStopping
from sglb.callbacks.time_limit import TimeLimit

__all__ = [
    "BaseCallback",
    "Callback",
    "EarlyStopping",
    "Evaluation",
    "EvaluationSet",
    "History",
    "KeepOnInterrupt",
    "Parameters",
    "Progress",
    "StepInfo",
    "Stop",
    "TimeLimit",
    "check_callbacks",
    "check_stop",
    "overrides_step",
    "say",
]
