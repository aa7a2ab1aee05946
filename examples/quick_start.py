"""Quick start: train with early stopping, look at the model, save it and load it again."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import sglb

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
X_train, X_val, y_train, y_val = train_test_split(X_train, y_train, random_state=0)

model = sglb.SGLBClassifier(early_stopping_rounds=50, random_state=0)
model.fit(X_train, y_train, eval_set=[(X_val, y_val)])
print(f"stopped after {model.n_iter_} trees, accuracy {model.score(X_test, y_test):.3f}")

names = load_breast_cancer().feature_names
for j in np.argsort(-model.feature_importances_)[:3]:
    print(f"{names[j]}: {model.feature_importances_[j]:.1%} of the gain")

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder, "model.sglb"))
    again = sglb.load(Path(folder, "model.sglb"))
assert np.array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
