"""Scikit-learn's small tables, and parameters that fit them in no time."""

from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import train_test_split

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
FAST = {"n_estimators": 40, "max_depth": 3, "learning_rate": 0.2, "random_state": 0, "n_jobs": 1}


def split(data):
    """Rows to train on and to test on: X, X_test, y, y_test."""
    return train_test_split(*data, random_state=0)
