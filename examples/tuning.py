"""Tuning with Optuna: trials that fall behind the others end before their last step."""

import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import sglb
from sglb.integrations import OptunaPruning

X, y = load_breast_cancer(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0, stratify=y)


def objective(trial):
    """Return the log loss of the best iterate of a chain."""
    model = sglb.SGLBClassifier(
        learning_rate=trial.suggest_float("learning_rate", 0.005, 0.2, log=True),
        max_depth=trial.suggest_int("max_depth", 2, 8),
        n_estimators=300,
        random_state=0,
    )
    pruning = OptunaPruning(trial)
    model.fit(X_train, y_train, X_val=X_val, y_val=y_val, eval_metric="logloss", callbacks=pruning)
    return model.best_score_


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(
    direction="minimize",
    sampler=optuna.samplers.RandomSampler(seed=0),
    pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=30),
)
study.optimize(objective, n_trials=20)
pruned = study.get_trials(states=[optuna.trial.TrialState.PRUNED])
print(f"{len(pruned)} of {len(study.trials)} trials were pruned")
print(f"best log loss {study.best_value:.4f} with {study.best_params}")
