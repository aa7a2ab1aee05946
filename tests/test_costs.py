"""Costs of decisions: matrices, the loss, the cheapest decision, and what decisions cost."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold

import sglb
from sglb import SGLBClassifier
from sglb.costs import action_costs, copy_costs, read_costs, take_costs
from sglb.losses import Cost, Logistic, Softmax
from sglb.metrics import expected_cost
from sglb.target import Target

MATRIX = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [9.0, 3.0, -1.0]])


def with_costs(y, costs, weight=None):
    n_classes = np.shape(costs)[-1]
    target = Target.of(y, weight, classes=np.arange(n_classes))
    return target.with_costs(read_costs(costs, len(target), target.classes))


# --- costs ---


def test_the_costs_of_acting_by_hand():
    assert action_costs(2.0, 10.0).tolist() == [[0.0, 2.0], [0.0, -8.0]]
    costs = action_costs([1.0, 2.0], 5.0)
    assert costs.tolist() == [[[0.0, 1.0], [0.0, -4.0]], [[0.0, 2.0], [0.0, -3.0]]]


@pytest.mark.parametrize(
    ("cost", "benefit", "message"),
    [
        (np.nan, 1.0, "cost must be finite"),
        (1.0, [1.0, np.inf], "benefit must be finite"),
        ("x", 1.0, "cost must be numbers"),
        (np.ones((2, 2)), 1.0, "numbers or vectors"),
        ([1.0, 2.0], [1.0], r"of the same length, not of shapes \(2,\) and \(1,\)"),
    ],
)
def test_costs_of_acting_that_are_no_numbers_are_rejected(cost, benefit, message):
    with pytest.raises(ValueError, match=message):
        action_costs(cost, benefit)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (np.zeros((2, 2)), r"costs has the shape \(2, 2\); with 3 classes it must be \(3, 3\)"),
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((4, 3, 3)), r"or \(5, 3, 3\), such a matrix for each row"),
        (np.zeros((5, 3)), r"shape \(5, 3\)"),
        ([[0, 1, 2], [1, 0], [2, 2, 0]], "must be an array of numbers"),
        ("matrix", "must be an array of numbers"),
        (np.where(MATRIX == 9.0, np.nan, MATRIX), r"costs must be finite; costs\[2, 0\] is nan"),
        (np.full((5, 3, 3), np.inf), r"costs\[0, 0, 0\] is inf"),
    ],
)
def test_costs_of_another_shape_or_not_finite_are_rejected(costs, message):
    with pytest.raises(ValueError, match=message):
        read_costs(costs, 5, range(3))


def test_a_frame_of_costs_in_another_order_than_the_classes_is_rejected():
    classes = np.array(["bad", "good"])
    frame = pd.DataFrame([[0.0, 5.0], [1.0, 0.0]], index=["good", "bad"], columns=["good", "bad"])
    with pytest.raises(ValueError, match=r"the index of costs is \['good', 'bad'\]; put rows and"):
        read_costs(frame, 3, classes)
    assert read_costs(frame.loc[classes, classes], 3, classes)[0].tolist() == [[0, 1], [5, 0]]
    other_names = frame.set_axis(["leave", "act"], axis="columns").set_axis([7, 8], axis="index")
    assert read_costs(other_names, 3, classes)[0].tolist() == [[0, 5], [1, 0]]
    X, y = np.arange(40.0)[:, None], np.repeat(["good", "bad"], 20)
    model = SGLBClassifier(n_estimators=3, random_state=0).fit(X, y)
    for decide in (model.decide, lambda X, costs: expected_cost(y, y, costs)):
        with pytest.raises(ValueError, match="in the order of the classes"):
            decide(X, frame)


def test_costs_follow_their_rows_and_a_matrix_needs_no_memory():
    by_row = np.arange(24.0).reshape(6, 2, 2)
    rows = np.array([4, 0, 4])
    assert take_costs(by_row, rows).tolist() == by_row[rows].tolist()
    assert take_costs(by_row, slice(2, 4)).tolist() == by_row[2:4].tolist()
    assert copy_costs(by_row, 2).tolist() == np.concatenate([by_row, by_row]).tolist()
    matrix = read_costs([[0, 1], [5, 0]], 6, range(2))
    mask = np.array([True, False, True, False, False, False])
    for costs, n_rows in (
        (take_costs(matrix, rows), 3),
        (take_costs(matrix, mask), 2),
        (copy_costs(matrix, 3), 18),
    ):
        assert costs.shape == (n_rows, 2, 2)
        assert costs.strides[0] == 0


def test_a_target_takes_its_costs_along():
    rng = np.random.default_rng(0)
    y, costs = rng.integers(0, 3, 10), rng.normal(size=(10, 3, 3))
    target = with_costs(y, costs)
    assert target.realised_costs.tolist() == [costs[i, y[i]].tolist() for i in range(10)]
    several = target.take(np.array([7, 2]))
    assert several.realised_costs.tolist() == target.realised_costs[[7, 2]].tolist()
    assert target.copies(2).realised_costs.tolist() == 2 * target.realised_costs.tolist()


# --- the loss ---


def test_the_loss_of_two_classes_is_a_weighted_logistic_loss_of_the_cheaper_decision():
    rng = np.random.default_rng(1)
    y, costs, raw = rng.integers(0, 2, 50), rng.normal(size=(50, 2, 2)), rng.normal(size=50)
    target = with_costs(y, costs)
    of_row = costs[np.arange(50), y]
    saved, cheaper = np.abs(of_row[:, 0] - of_row[:, 1]), (of_row[:, 1] < of_row[:, 0]) * 1.0
    loss = Cost(2).adapt(target)
    assert loss.unit == pytest.approx(saved.mean())
    assert loss.largest == pytest.approx(saved.max() / saved.mean())
    weight = saved / saved.mean()
    np.testing.assert_allclose(loss.losses(target, raw), weight * Logistic().loss(cheaper, raw))
    np.testing.assert_allclose(
        loss.gradients(target, raw), weight * Logistic().gradient(cheaper, raw)
    )
    np.testing.assert_allclose(
        loss.curvatures(target, raw, 1.0), weight * Logistic().hessian(cheaper, raw)
    )


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_slopes_with_costs_are_the_derivatives_of_the_loss(n_classes):
    rng = np.random.default_rng(2)
    y = rng.integers(0, n_classes, 80)
    target = with_costs(y, rng.normal(0, 3, size=(80, n_classes, n_classes)))
    loss = Cost(n_classes).adapt(target)
    raw = rng.normal(size=80 if n_classes == 2 else (80, n_classes))
    gradient, step = loss.gradients(target, raw), 1e-5
    for output in range(loss.n_outputs):
        e = step * (np.eye(n_classes)[output] if raw.ndim == 2 else 1.0)
        slope = (loss.losses(target, raw + e) - loss.losses(target, raw - e)) / (2 * step)
        bend = (loss.gradients(target, raw + e) - loss.gradients(target, raw - e)) / (2 * step)
        column = (...,) if raw.ndim == 1 else (..., output)
        np.testing.assert_allclose(gradient[column], slope, rtol=1e-6, atol=1e-8)
        hessian = loss.curvatures(target, raw, 1.0)[column]
        np.testing.assert_allclose(hessian, bend[column], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_start_is_the_constant_of_least_loss(n_classes):
    rng = np.random.default_rng(3)
    weight = rng.gamma(1.0, size=60)
    costs = rng.normal(size=(60, n_classes, n_classes))
    target = with_costs(rng.integers(0, n_classes, 60), costs, weight)
    loss = Cost(n_classes).adapt(target)
    start = loss.init(target)
    raw = np.full(60, start[0]) if n_classes == 2 else np.tile(start, (60, 1))
    mean = np.average(loss.gradients(target, raw), weights=weight, axis=0)
    np.testing.assert_allclose(mean, 0.0, atol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_best_scores_of_a_distribution_choose_the_decision_of_least_expected_cost(n_classes):
    """Rows of equal features, classes with probabilities p: the minimiser is known."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        count = rng.integers(1, 30, n_classes)
        matrix = rng.normal(size=(n_classes, n_classes))
        target = with_costs(np.arange(n_classes), matrix, count.astype(float))
        start = Cost(n_classes).adapt(target).init(target)
        chosen = int(start[0] > 0) if n_classes == 2 else int(start.argmax())
        assert chosen == int((count @ matrix).argmin())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_costs_the_loss_is_the_log_loss(n_classes):
    rng = np.random.default_rng(5)
    y = rng.integers(0, n_classes, 40).astype(float)
    raw = rng.normal(size=40 if n_classes == 2 else (40, n_classes))
    log_loss = Logistic() if n_classes == 2 else Softmax(n_classes)
    zero_one = with_costs(y, 1.0 - np.eye(n_classes))
    for target in (Target.of(y), zero_one):
        np.testing.assert_allclose(Cost(n_classes).losses(target, raw), log_loss.loss(y, raw))
        np.testing.assert_allclose(
            Cost(n_classes).gradients(target, raw), log_loss.gradient(y, raw)
        )


def test_costs_that_decide_nothing_are_rejected():
    with pytest.raises(ValueError, match="all decisions about a row cost the same"):
        SGLBClassifier(loss="cost").fit([[0.0], [1.0]], [0, 1], costs=[[1, 1], [3, 3]])


# --- fits ---


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = (X[:, 0] + rng.normal(size=500) > 1.0).astype(int)
    benefit = np.exp(X[:, 1]) * 5.0
    return X, y, action_costs(1.0, benefit)


def small(**parameters):
    return SGLBClassifier(loss="cost", n_estimators=20, random_state=0, **parameters)


def test_a_model_of_two_classes_is_that_of_weights_and_cheaper_decisions(rows):
    X, y, costs = rows
    of_row = costs[np.arange(500), y]
    saved, cheaper = np.abs(of_row[:, 0] - of_row[:, 1]), (of_row[:, 1] < of_row[:, 0]).astype(int)
    options = {"sampler": "plain", "n_estimators": 20, "learning_rate": 0.1, "random_strength": 0}
    options |= {"l2_regularization": 3.0, "max_bins": 64, "random_state": 0}
    model = SGLBClassifier(loss="cost", **options).fit(X, y, costs=costs)
    twin = SGLBClassifier(loss="logistic", **options).fit(X, cheaper, saved / saved.mean())
    np.testing.assert_allclose(model.decision_function(X), twin.decision_function(X), rtol=1e-6)


def test_costs_in_another_currency_give_the_same_model(rows):
    X, y, costs = rows
    raw = small().fit(X, y, costs=costs).decision_function(X)
    assert small().fit(X, y, costs=1024.0 * costs).decision_function(X).tobytes() == raw.tobytes()


def test_threads_do_not_change_a_bit(rows):
    X, y, costs = rows
    raw = [small(n_jobs=n).fit(X, y, costs=costs).decision_function(X) for n in (1, 3)]
    assert raw[0].tobytes() == raw[1].tobytes()


def test_a_matrix_and_the_same_matrix_for_each_row_are_the_same(rows):
    X, y, _ = rows
    matrix = np.array([[0.0, 1.0], [7.0, 0.0]])
    once = small().fit(X, y, costs=matrix, eval_set=[(X, y)], eval_metric="expected_cost")
    each = small().fit(
        X, y, costs=np.tile(matrix, (500, 1, 1)), eval_set=[(X, y)],
        eval_costs=[np.tile(matrix, (500, 1, 1))], eval_metric="expected_cost",
    )  # fmt: skip
    assert once.decision_function(X).tobytes() == each.decision_function(X).tobytes()
    assert once.evals_result_ == each.evals_result_
    paid = expected_cost(y, once.predict(X), matrix)
    assert once.evals_result_["validation_0"]["expected_cost"][-1] == pytest.approx(paid)


def test_the_length_is_cross_validated_with_the_costs_of_each_fold(rows):
    X, y, costs = rows
    model = SGLBClassifier(loss="cost", random_state=0).fit(X, y, costs=costs)
    assert 1 <= model.n_iter_ < 1000


def test_rows_of_weight_zero_and_repeated_rows(rows):
    X, y, costs = rows
    X = X.round(1)  # bins of few values do not depend on how often each is there
    options = {"sampler": "plain", "l2_regularization": 3.0, "learning_rate": 0.1}
    count = np.random.default_rng(1).integers(0, 3, 500)
    weighted = small(**options).fit(X, y, count.astype(float), costs=costs)
    again = np.repeat(np.arange(500), count)
    repeated = small(**options).fit(X[again], y[again], costs=costs[again])
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=1e-5, atol=1e-7
    )


def test_models_with_costs_are_stored_pickled_and_cloned(rows, tmp_path):
    X, y, costs = rows
    model = small().fit(X, y, costs=costs)
    model.save(tmp_path / "model.sglb")
    stored = sglb.load(tmp_path / "model.sglb")
    assert stored.loss_ == model.loss_
    for other in (stored, pickle.loads(pickle.dumps(model)), clone(model).fit(X, y, costs=costs)):
        assert other.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def test_costs_reach_the_folds_of_a_grid_search(rows):
    X, y, costs = rows
    scorer = make_scorer(expected_cost, greater_is_better=False)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = scorer.set_score_request(costs=True)
        model = small().set_fit_request(costs=True)
        search = GridSearchCV(model, {"max_depth": [1, 3]}, scoring=scorer, cv=KFold(3))
        search.fit(X, y, costs=costs)
    train, test = next(KFold(3).split(X))
    alone = clone(model).set_params(max_depth=1).fit(X[train], y[train], costs=costs[train])
    paid = expected_cost(y[test], alone.predict(X[test]), costs[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(-paid)


def test_several_classes_learn_the_cheapest_decision():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * rng.normal(size=1500), [-0.5, 0.5])]
    model = small().fit(X, y, costs=MATRIX)
    by_likelihood = SGLBClassifier(n_estimators=20, random_state=0).fit(X, y)
    paid = [expected_cost(y, m.predict(X), MATRIX) for m in (model, by_likelihood)]
    assert paid[0] < paid[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"loss='cost' needs the costs of decisions: fit\(X, y, costs=costs\)"),
        ({"costs": np.zeros((3, 3))}, "with 2 classes it must be"),
        ({"costs": "rows", "eval": True}, r"eval_set\[0\] has no costs, which loss='cost' needs"),
        ({"costs": "rows", "eval": True, "eval_costs": []}, "eval_costs has 0 entries, eval_set 1"),
        ({"costs": "rows", "eval": True, "eval_costs": [np.eye(3)]}, r"eval_set\[0\]: costs has"),
    ],
)
def test_missing_costs_are_rejected_before_any_work(rows, options, message):
    X, y, costs = rows
    options = dict(options)
    if isinstance(options.get("costs"), str):
        options["costs"] = costs
    if options.pop("eval", False):
        options["eval_set"] = [(X, y)]
    with pytest.raises(ValueError, match=message):
        small().fit(X, y, **options)


def test_a_loss_of_costs_has_no_posterior(rows):
    X, y, costs = rows
    with pytest.raises(ValueError, match="no posterior"):
        small(uncertainty=True).fit(X, y, costs=costs)
    with pytest.raises(ValueError, match="no posterior"):
        small().fit(X, y, costs=costs).posterior(X, y)


def test_shards_give_the_slopes_of_the_whole(rows):
    _, y, costs = rows
    target = with_costs(y, costs)
    loss = Cost(2).adapt(target)
    raw = np.random.default_rng(3).normal(size=500)
    whole = loss.gradients(target, raw)
    parts = [
        loss.gradients(target.take(rows), raw[rows]) for rows in (slice(0, 90), slice(90, 500))
    ]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


# --- decisions ---


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 4))
def test_the_cheapest_decision_is_that_of_an_enumeration(seed, n_classes):
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.ones(n_classes), 20)
    costs = rng.normal(size=(20, n_classes, n_classes))
    expected = [
        min(range(n_classes), key=lambda d: sum(p[y] * c[y, d] for y in range(n_classes)))
        for p, c in zip(probability, costs, strict=True)
    ]
    assert sglb.costs.cheapest(costs, probability).tolist() == expected


def test_of_equally_cheap_decisions_the_first_is_made():
    costs = read_costs([[0, 1], [1, 0]], 3, range(2))
    probability = np.array([[0.5, 0.5], [0.4, 0.6], [0.6, 0.4]])
    assert sglb.costs.cheapest(costs, probability).tolist() == [0, 1, 0]


@pytest.fixture(scope="module")
def fitted(rows):
    X, y, _ = rows
    labels = np.where(y, "yes", "no")
    return SGLBClassifier(n_estimators=20, random_state=0).fit(X, labels), labels


def test_two_classes_are_decided_at_the_threshold_of_their_costs(rows, fitted):
    X, _, costs = rows
    model, labels = fitted
    p = model.predict_proba(X)[:, 1]
    assert (model.decide(X, [[0, 1], [4, 0]]) == np.where(p > 0.2, "yes", "no")).all()
    benefit = costs[:, 0, 1] - costs[:, 1, 1]
    assert (model.decide(X, costs) == np.where(p * benefit > 1.0, "yes", "no")).all()
    calibrated = model.calibrate(X, labels)
    q = calibrated.predict_proba(X)[:, 1]
    assert (calibrated.decide(X, [[0, 1], [4, 0]]) == np.where(q > 0.2, "yes", "no")).all()


@pytest.mark.parametrize(
    "costs", [np.zeros((3, 3)), [[0, np.nan], [1, 0]], np.zeros((9, 2, 2)), None]
)
def test_decisions_with_invalid_costs_are_rejected(rows, fitted, costs):
    with pytest.raises(ValueError, match="costs"):
        fitted[0].decide(rows[0], costs)


@pytest.mark.parametrize(
    ("parameters", "culprit"),
    [({"loss": "sla"}, "loss='sla'"), ({"class_weight": "balanced"}, "class_weight='balanced'")],
)
def test_a_model_without_probabilities_does_not_decide_before_it_is_calibrated(
    rows, parameters, culprit
):
    X, y, costs = rows
    model = SGLBClassifier(n_estimators=5, random_state=0, **parameters).fit(X, y)
    with pytest.raises(ValueError, match=f"with {culprit} predict_proba has no probabilities"):
        model.decide(X, costs)
    assert len(model.calibrate(X, y).decide(X, costs)) == 500


def test_a_model_of_costs_has_decided_already(rows):
    X, y, costs = rows
    with pytest.raises(ValueError, match=r"with loss='cost'.*has decided already: predict"):
        small().fit(X, y, costs=costs).decide(X, costs)


# --- what decisions cost ---


def test_the_mean_cost_of_decisions_by_hand():
    y, made = [0, 0, 1, 2], [0, 2, 0, 2]
    assert expected_cost(y, made, MATRIX) == (0.0 + 4.0 + 2.0 - 1.0) / 4
    assert expected_cost(y, made, MATRIX, [1, 3, 0, 0]) == 3.0
    labels = np.array(["a", "b", "c"])
    assert expected_cost(labels[y], labels[made], MATRIX) == 1.25
    by_row = np.arange(16.0).reshape(4, 2, 2)
    assert expected_cost([0, 1, 1, 0], [1, 0, 1, 0], by_row) == (1.0 + 6.0 + 11.0 + 12.0) / 4


def test_the_order_of_the_rows_does_not_change_a_bit_of_a_cost():
    rng = np.random.default_rng(6)
    y, made, costs = rng.integers(0, 2, 999), rng.integers(0, 2, 999), rng.normal(size=(999, 2, 2))
    order = rng.permutation(999)
    assert expected_cost(y, made, costs) == expected_cost(y[order], made[order], costs[order])


@pytest.mark.parametrize(
    ("y", "made", "costs", "message"),
    [
        ([0, 1], [0], np.eye(2), "same length"),
        ([0, 3], [0, 1], np.eye(2), "number the classes 0, 1, ..."),
        (["a", "a"], ["a", "a"], np.eye(2), "number the classes"),
        ([0, 1], [0, 1], np.ones((2, 3)), "costs has the shape"),
        ([0, 1], [0, 1], 5.0, "number the classes"),
    ],
)
def test_decisions_that_do_not_go_with_costs_are_rejected(y, made, costs, message):
    with pytest.raises(ValueError, match=message):
        expected_cost(y, made, costs)
