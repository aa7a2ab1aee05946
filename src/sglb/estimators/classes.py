"""Classes of a target: the numbers of their labels, and what each weighs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_sample_weight

from sglb import sums
from sglb.frame import read_weight

Array = NDArray[Any]
Floats = NDArray[np.float64]


def number_labels(labels: Array) -> tuple[Floats, Array]:
    """Return the number of each label among the classes, and the classes, sorted."""
    if labels.dtype.kind in "biu" and len(labels):
        first, last = int(labels.min()), int(labels.max())
        if last - first < 2**16:  # counting costs less than sorting
            wide = np.uint64 if labels.dtype == np.uint64 else np.int64
            offset = labels.astype(wide) - wide(first)
            is_label = np.bincount(offset.astype(np.int64, copy=False)) > 0
            numbers = np.cumsum(is_label, dtype=np.float64) - 1.0
            label_values = np.flatnonzero(is_label).astype(wide) + wide(first)
            return numbers[offset], label_values.astype(labels.dtype)
    classes, index = np.unique(labels, return_inverse=True)
    return index.astype(np.float64), classes


def numbers_of(labels: Array, classes: Array) -> Floats:
    """Return the number of each label among known classes."""
    different, index = np.unique(labels, return_inverse=True)
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    unknown = [label for label in different.tolist() if label not in numbers]
    if unknown:
        raise ValueError(f"y has labels that do not occur in the training rows: {unknown}")
    return np.array([numbers[label] for label in different.tolist()], dtype=np.float64)[index]


def weigh_classes(
    class_weight: Mapping[Any, float] | str | None, labels: Array, weight: Floats
) -> Floats:
    """Return the weight of each row, by its class too."""
    if class_weight is None:
        return weight
    share = read_weight(compute_sample_weight(class_weight, labels), labels, "class_weight")
    both = weight * share
    read_weight(both, labels, "sample_weight times class_weight")
    # Weights of classes say which one matters more, not how many rows there are.
    return np.asarray(both / sums.mean(share, weight), dtype=np.float64)
