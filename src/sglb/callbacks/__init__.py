"""Callbacks: they look at the chain after each step and may ask it to stop. One file a callback."""

from sglb.callbacks.base import (
    BaseCallback,
    Callback,
    Evaluation,
    Parameters,
    StepInfo,
    Stop,
    check_answer,
    check_callbacks,
    watches_steps,
)
from sglb.callbacks.displays import say
from sglb.callbacks.history import EvaluationSet, History
from sglb.callbacks.progress import Progress
from sglb.callbacks.stopping import EarlyStopping

__all__ = [
    "BaseCallback",
    "Callback",
    "EarlyStopping",
    "Evaluation",
    "EvaluationSet",
    "History",
    "Parameters",
    "Progress",
    "StepInfo",
    "Stop",
    "check_answer",
    "check_callbacks",
    "say",
    "watches_steps",
]
