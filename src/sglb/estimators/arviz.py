"""Draws for ArviZ, both its kinds of containers."""

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def to_arviz(raw: Floats, prediction: Floats, classes: NDArray[Any], n_chains: int = 1) -> Any:
    """Return variables `raw` and `prediction` (chain, draw, row[, output or class]).

    Both are (n_draws, n_rows[, ...]), the draws of one chain after those of another.
    """
    try:
        import arviz
    except ModuleNotFoundError as error:
        raise ImportError('to_arviz needs ArviZ: pip install "sglb[integrations]"') from error
    variables = {"raw": raw, "prediction": prediction}
    coords: dict[str, Any] = {"row": np.arange(raw.shape[1])}
    dims = {name: ["row"] for name in variables}
    for name, axis in (("raw", "output"), ("prediction", "class" if len(classes) else "output")):
        if variables[name].ndim > 2:
            dims[name].append(axis)
            is_class = axis == "class" or len(classes) == variables[name].shape[2]
            coords[axis] = classes if is_class else np.arange(variables[name].shape[2])
    by_chain = {
        name: values.reshape(n_chains, -1, *values.shape[1:]) for name, values in variables.items()
    }
    groups: Any = {"posterior": by_chain}
    if "posterior" in signature(arviz.from_dict).parameters:  # ArviZ 0.2x has an argument a group
        return arviz.from_dict(**groups, coords=coords, dims=dims)
    return arviz.from_dict(groups, coords=coords, dims=dims)
