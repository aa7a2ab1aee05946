"""NumPy twins of the loss and link kernels, straight from the formulas.

Losses: gradient and second derivative, y (n,), z (n,) or (n, n_classes); each takes its loss's
parameters by name. Links: predictions (n, n_columns) of z (n_outputs, n).
"""

import numpy as np
from scipy.special import expit
from scipy.special import softmax as softmax_of


def squared(y, z):
    return z - y, np.ones_like(z)


def logistic(y, z):
    m = 2 * y - 1
    return -m * expit(-m * z), expit(z) * expit(-z)


def softmax(y, z, n_classes):
    p = softmax_of(z, axis=1)
    return p - (y[:, None] == np.arange(n_classes)), p * (1 - p)


def cost(y, z, n_classes, unit, largest):
    """Where a wrong decision costs 1."""
    return logistic(y, z) if n_classes == 2 else softmax(y, z, n_classes)


def sla(y, z, width):
    m = 2 * y - 1
    x = m * z / width
    slope = expit(x) * expit(-x)
    return -m / width * slope, -(slope * (1 - 2 * expit(x))) / width**2


def savage(y, z):
    p = expit(z)
    slope = p * expit(-z)
    return 2 * (p - y) * slope, 2 * slope**2 + 2 * (p - y) * slope * (1 - 2 * p)


def absolute(y, z, width):
    r = z - y
    return r / np.hypot(r, width), width**2 / np.hypot(r, width) ** 3


def huber(y, z, delta):
    r = z - y
    return np.clip(r, -delta, delta), (np.abs(r) <= delta).astype(float)


def quantile(y, z, level, width):
    """Several levels are weighted such that their gradients have the same mean square."""
    level, factor = np.array(level), 1.0
    if level.ndim:
        y, factor = y[:, None], 0.5 / np.sqrt(level * (1 - level))
    x = (z - y) / width
    return factor * (expit(x) - level), factor * expit(x) * expit(-x) / width


def poisson(y, z):
    curvature = np.exp(np.minimum(z, 30))
    return curvature * (1 + np.maximum(z - 30, 0)) - y, curvature


def exponential_slope(x):
    return np.exp(np.minimum(x, 200)) * (1 + np.maximum(x - 200, 0))


def gamma(y, z):
    falling = y * exponential_slope(-z)
    return 1 - falling, (1 + falling) / 2


def tweedie(y, z, power):
    falling, rising = y * exponential_slope((1 - power) * z), exponential_slope((2 - power) * z)
    return rising - falling, (rising + falling) / 2


def cauchy(y, z, scale):
    r = z - y
    t = r / scale
    return r / (1 + t**2), (1 - t**2) / (1 + t**2) ** 2


def welsch(y, z, scale):
    r = z - y
    t = r / scale
    return r * np.exp(-(t**2)), (1 - 2 * t**2) * np.exp(-(t**2))


def identity_link(z, parameter):
    return z.T


def sigmoid_link(z, width):
    """Both probabilities; a quotient beyond the range of doubles is flat anyway."""
    with np.errstate(over="ignore"):
        return np.stack([expit(-z[0] / width), expit(z[0] / width)], axis=1)


def softmax_link(z, parameter):
    """The distance of two scores may leave the range of doubles, where nothing is left to tell."""
    with np.errstate(over="ignore"):
        return softmax_of(z.T, axis=1)


def exponential_link(z, limit):
    return (np.exp(np.minimum(z, limit)) * (1 + np.maximum(z - limit, 0))).T


def sorted_link(z, parameter):
    return np.sort(z.T, axis=1)


LINKS = {
    "identity": identity_link,
    "sigmoid": sigmoid_link,
    "softmax": softmax_link,
    "exponential": exponential_link,
    "sorted": sorted_link,
}
