"""The logistic loss as a user would write it in NumPy; y is 0 or 1."""

import numpy as np


def sigmoid(raw):
    return 1.0 / (1.0 + np.exp(-raw))


def gradient(y, raw):
    return sigmoid(raw) - y


def hessian(y, raw):
    probability = sigmoid(raw)
    return probability * (1.0 - probability)


def derivatives(y, raw):
    probability = sigmoid(raw)
    return probability - y, probability * (1.0 - probability)


def loss(y, raw):
    return np.logaddexp(0.0, raw) - y * raw
