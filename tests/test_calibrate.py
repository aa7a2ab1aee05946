"""Classifiers with calibrated probabilities. Seeds are fixed; margins are those of the comments."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.calibration import CalibrationDisplay
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer, log_loss

import sglb
from sglb import SGLBClassifier
from sglb.calibration import expected_calibration_error
from sglb.estimators.calibrated import CalibratedClassifier

# Leaves of few rows and long steps: sure of itself far beyond what the rows say.
OVERCONFIDENT = {
    "n_estimators": 200, "learning_rate": 0.3, "max_depth": 6, "sampler": "plain",
    "l2_regularization": 0.0, "random_state": 0,
}  # fmt: skip
FAST = {"n_estimators": 30, "max_depth": 3, "random_state": 0}


def rows(n_rows, seed, n_classes=2):
    """Classes whose log odds are twice a feature; three more features say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    odds = np.exp(2.0 * X[:, :1] * np.linspace(-0.5, 0.5, n_classes))
    cuts = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
    label = (rng.uniform(size=(n_rows, 1)) > cuts).sum(axis=1)
    return X, np.array(["no", "or", "yes"] if n_classes == 3 else ["no", "yes"])[label]


TRAINING, CALIBRATION, TEST = rows(1000, 0), rows(500, 1), rows(4000, 2)
THREE = [rows(n, seed, 3) for n, seed in ((1000, 3), (500, 4), (4000, 5))]


@pytest.fixture(scope="module")
def sure():
    return SGLBClassifier(**OVERCONFIDENT).fit(*TRAINING)


def index_of(model, y):
    return np.searchsorted(model.classes_, y)


@pytest.mark.parametrize("way", ["calibrate", "cross_calibrate"])
def test_an_overconfident_model_becomes_honest(sure, way):
    X, y = TEST
    known = CALIBRATION if way == "calibrate" else TRAINING
    calibrated = getattr(sure, way)(*known)
    before, after = (log_loss(y, m.predict_proba(X)) for m in (sure, calibrated))
    assert after < before - 0.2  # by .32; of 4,000 rows it has an error of .02
    assert calibrated.scaling_.slope < 0.6
    event = index_of(sure, y)
    errors = [
        expected_calibration_error(m.predict_proba(X)[:, 1], event) for m in (sure, calibrated)
    ]
    assert errors[1] < 0.03 < 0.1 < errors[0]
    assert log_loss(y, calibrated.predict_proba(X)) < np.log(2.0)  # the model alone is worse


def test_the_order_of_rows_does_not_change(sure):
    X = TEST[0]
    calibrated = sure.calibrate(*CALIBRATION)
    before, after = sure.decision_function(X), calibrated.decision_function(X)
    order = np.argsort(before, kind="stable")
    assert (np.diff(after[order]) >= 0.0).all()
    scaling = calibrated.scaling_
    assert after == pytest.approx(scaling.slope * before + scaling.bias)
    probability = calibrated.predict_proba(X)
    assert probability.sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert probability[:, 1] == pytest.approx(1.0 / (1.0 + np.exp(-after)))
    assert (calibrated.predict(X) == sure.classes_[probability.argmax(axis=1)]).all()


def test_the_model_is_left_alone(sure):
    X = TEST[0]
    before = sure.predict_proba(X)
    sure.calibrate(*CALIBRATION)
    assert (sure.predict_proba(X) == before).all()


@pytest.mark.parametrize("way", ["calibrate", "cross_calibrate"])
def test_several_classes_share_a_temperature(way):
    training, calibration, (X, y) = THREE
    model = SGLBClassifier(**OVERCONFIDENT | {"n_estimators": 60}).fit(*training)
    calibrated = getattr(model, way)(*(calibration if way == "calibrate" else training))
    assert log_loss(y, calibrated.predict_proba(X)) < log_loss(y, model.predict_proba(X)) - 0.2
    assert calibrated.scaling_.bias == 0.0
    assert (calibrated.predict(X) == model.predict(X)).all()
    assert calibrated.decision_function(X).shape == (len(X), 3)
    assert calibrated.classes_.tolist() == ["no", "or", "yes"]


def test_weights_count_rows(sure):
    X, y = CALIBRATION
    count = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = sure.calibrate(X, y, count).scaling_
    repeated = sure.calibrate(np.repeat(X, count, axis=0), np.repeat(y, count)).scaling_
    assert (weighted.slope, weighted.bias) == pytest.approx((repeated.slope, repeated.bias))
    assert weighted != sure.calibrate(X, y).scaling_


def test_out_of_fold_scores_count_with_the_stated_weights_alone():
    # A class that counts ten times in the fits is as frequent as it is after calibration.
    X, y = TRAINING
    heavy = SGLBClassifier(class_weight={"no": 1.0, "yes": 10.0}, **FAST).fit(X, y)
    calibrated = heavy.cross_calibrate(X, y)
    share = np.mean(TEST[1] == "yes")
    assert heavy.predict_proba(TEST[0])[:, 1].mean() > share + 0.2
    # 1,000 rows: a standard error of .016.
    assert calibrated.predict_proba(TEST[0])[:, 1].mean() == pytest.approx(share, abs=0.064)


class Cauchit:
    """A loss of the user's with a link that is not the sigmoid."""

    name = "cauchit"

    def link(self, raw):
        return 0.5 + np.arctan(raw) / np.pi

    def loss(self, y, raw):
        p = self.link(raw)
        return -np.where(y == 1, np.log(p), np.log1p(-p))

    def gradient(self, y, raw):
        p, slope = self.link(raw), 1.0 / (np.pi * (1.0 + raw**2))
        return np.where(y == 1, -slope / p, slope / (1.0 - p))


@pytest.mark.parametrize("loss", ["sla", "savage", "softmax", Cauchit()])
def test_no_change_is_the_model_itself_whatever_its_link(loss):
    model = SGLBClassifier(loss=loss, **FAST).fit(*TRAINING)
    calibrated = model.calibrate(*CALIBRATION)
    calibrated.scaling_ = sglb.scaling.ProbabilityScaling()
    X = TEST[0]
    assert calibrated.predict_proba(X) == pytest.approx(model.predict_proba(X), abs=1e-9)
    assert (calibrated.predict(X) == model.predict(X)).mean() > 0.999


def test_a_model_without_its_loss_has_probabilities_again(tmp_path):
    model = SGLBClassifier(loss=Cauchit(), **FAST).fit(*TRAINING)
    with pytest.warns(UserWarning, match="the link of loss 'cauchit' is code"):
        model.save(tmp_path / "model.sglb")
    calibrated = sglb.load(tmp_path / "model.sglb").calibrate(*CALIBRATION)
    assert log_loss(TEST[1], calibrated.predict_proba(TEST[0])) < 0.68


def test_it_is_a_classifier_to_scikit_learn(sure):
    X, y = TEST
    calibrated = sure.calibrate(*CALIBRATION)
    assert is_classifier(calibrated)
    score = get_scorer("neg_log_loss")(calibrated, X, y)
    assert score == pytest.approx(-log_loss(y, calibrated.predict_proba(X)))
    assert calibrated.score(X, y) == np.mean(calibrated.predict(X) == y)
    shown = CalibrationDisplay.from_estimator(calibrated, X, y, n_bins=5)
    assert shown.prob_pred == pytest.approx(shown.prob_true, abs=0.1)
    again = pickle.loads(pickle.dumps(calibrated))
    assert (again.predict_proba(X) == calibrated.predict_proba(X)).all()


def test_frames_are_read_by_the_names_of_their_columns():
    X, y = TRAINING
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = SGLBClassifier(**FAST).fit(frame, y)
    calibrated = model.cross_calibrate(frame, y)
    assert calibrated.feature_names_in_.tolist() == list("abcd")
    assert calibrated.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names"):
        calibrated.predict_proba(frame[list("abdc")])


def test_what_cannot_be_calibrated_says_why(sure):
    X, y = CALIBRATION
    with pytest.raises(ValueError, match="X has 500 rows but y has 3"):
        sure.calibrate(X, y[:3])
    with pytest.raises(ValueError, match="there are no calibration rows"):
        sure.calibrate(X[:0], y[:0])
    with pytest.raises(ValueError, match=r"do not occur in the training rows: \['never'\]"):
        sure.calibrate(X, np.where(np.arange(500) == 7, "never", y))
    with pytest.raises(ValueError, match=r"sample_weight must be at least 0; row 0 is -1"):
        sure.calibrate(X, y, -np.ones(500))
    for way in ("calibrate", "cross_calibrate"):
        with pytest.raises(NotFittedError):
            getattr(SGLBClassifier(), way)(X, y)
        single = SGLBClassifier(n_estimators=5).fit(X, np.ones(500))
        with pytest.raises(ValueError, match=r"a single class, 1\.0"):
            getattr(single, way)(X, np.ones(500))
    with pytest.raises(ValueError, match=r"y has the classes \['no', 'or', 'yes'\], the model"):
        sure.cross_calibrate(*THREE[0])
    with pytest.raises(NotFittedError):
        CalibratedClassifier(sure).predict_proba(X)
