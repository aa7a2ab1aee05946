"""What a prediction is worth: `loss` is the log loss or the root of the mean squared error."""

import numpy as np

# A probability of 0 for what happened would cost infinity; float32 rounds to 0 below 1e-45.
LEAST = 1e-15


def scores(task, y, prediction, weight=None):
    """Scores of probabilities (n_rows, n_classes) of labels 0, 1, ..., or of numbers (n_rows,)."""
    if task == "regression":
        return {"loss": float(np.sqrt(_mean((prediction - y) ** 2, weight)))}
    probability = np.asarray(prediction, dtype=np.float64)
    probability = probability / probability.sum(axis=1, keepdims=True)  # float32 sums to almost 1
    happened = probability[np.arange(len(y)), y]
    result = {
        "loss": _mean(-np.log(np.maximum(happened, LEAST)), weight),
        "error_rate": _mean(probability.argmax(axis=1) != y, weight),
    }
    if task == "binary":
        from sklearn.metrics import roc_auc_score

        result["auc"] = float(roc_auc_score(y, probability[:, 1], sample_weight=weight))
    return result


def _mean(values, weight):
    return float(np.average(values, weights=weight))
