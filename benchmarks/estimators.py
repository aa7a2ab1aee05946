"""What peers with scikit-learn manners share."""


def choose(settings, classifier, regressor):
    """The class for the task."""
    return regressor if settings.task == "regression" else classifier


def predict(model, X, **options):
    """Probability of class 1, or of each of several classes, or the number."""
    if not hasattr(model, "predict_proba"):
        return model.predict(X, **options)
    probability = model.predict_proba(X, **options)
    return probability[:, 1] if probability.shape[1] == 2 else probability
