"""Links: raw scores to predictions, without overflow at any score."""

import numpy as np

from sglb.losses.base import Floats


def sigmoid(z: Floats) -> Floats:
    """s(z) = 1 / (1 + exp(-z)). Clipped at 700, where s differs from 0 and 1 by 1e-304."""
    return 1.0 / (1.0 + np.exp(-np.clip(z, -700.0, 700.0)))


def softplus(z: Floats) -> Floats:
    """log(1 + exp(z)), the integral of the sigmoid."""
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))


def softmax(z: Floats) -> Floats:
    """p_k = exp(z_k) / sum over j of exp(z_j), over the last axis."""
    p: Floats = np.exp(z - z.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p
