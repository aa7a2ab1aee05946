"""What every library is asked to do, in words that every peer translates."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    task: str  # "binary", "multiclass" or "regression"
    n_classes: int  # 0 in regression
    n_trees: int  # boosting rounds; a round of a 10-class problem may be one tree or ten
    depth: int  # at most 2^depth leaves
    learning_rate: float
    max_bins: int  # per feature, missing values apart
    threads: int | None  # None: as many as the library takes by itself
    seed: int
