"""Schedules and samplers of a model that is continued: they go on where it left them."""

import pickle

import numpy as np
import pytest

from interrupted import NUMBERS, SMALL, TWO, X, content, killed_after
from sglb import Checkpoint, SGLBClassifier, SGLBRegressor
from sglb.losses import Sla
from sglb.samplers import Langevin
from sglb.schedules import StepFunction


def test_planned_schedules_stay_as_they_were_planned():
    model = SGLBRegressor(**SMALL | {"sampler": "annealed"}).fit(X, NUMBERS)
    last = model.trace_.temperatures[-1]
    warm = model.set_params(warm_start=True, n_estimators=30).fit(X, NUMBERS)
    assert set(warm.trace_.temperatures[24:]) == {last}


def test_a_sampler_object_goes_on_with_the_schedule_it_had(tmp_path):
    falling = SMALL | {"sampler": Langevin("cosine(0.1, 0.05)", 1.0, 0.01)}
    first = SGLBRegressor(**falling).fit(X, NUMBERS)
    first.save(tmp_path / "m")
    warm = SGLBRegressor(**falling, warm_start=True).fit(X, NUMBERS)
    for n_steps in (30, 48):  # of which the second continues what has been continued
        warm.set_params(n_estimators=n_steps).fit(X, NUMBERS)
    for origin in (first, tmp_path / "m"):
        more = SGLBRegressor(**falling).fit(X, NUMBERS, init_model=origin)
        assert content(more) == content(warm)
    sampler = warm._model.recipe.settings.sampler
    rates = [sampler.move(step).learning_rate for step in (0, 12, 24, 47)]
    np.testing.assert_allclose(rates, [0.1, 0.075, 0.05, 0.05])


def test_steps_beyond_the_plan_are_checked_for_stability_before_they_are_taken(tmp_path):
    rising = SMALL | {"n_estimators": 5, "learning_rate": "linear(.1, 3, 20)"}
    first = SGLBRegressor(**rising).fit(X, NUMBERS)
    more = SGLBRegressor(**rising | {"n_estimators": 100})
    with pytest.raises(ValueError, match="learning_rate=3 makes the chain diverge"):
        more.fit(X, NUMBERS, init_model=first, callbacks=Checkpoint(tmp_path / "c"))
    assert not (tmp_path / "c").exists()
    negative = rising | {"learning_rate": "linear(.1, -.1, 20)"}
    first = SGLBRegressor(**negative).fit(X, NUMBERS)
    with pytest.raises(ValueError, match=r"learning_rate='linear.*above 0"):
        SGLBRegressor(**negative | {"n_estimators": 9}).fit(X, NUMBERS, init_model=first)


def slowly(step):
    """A learning rate of the user's own."""
    return 0.1 / (1.0 + 0.05 * step)


def test_a_pickle_keeps_the_model_as_it_is_whatever_the_parameters_have_become():
    rate = StepFunction(slowly, 30)
    first = SGLBRegressor(**SMALL | {"learning_rate": rate}).fit(X, NUMBERS)
    more = SGLBRegressor(**first.get_params() | {"n_estimators": 6})
    more.fit(X, NUMBERS, init_model=first)
    changed = SGLBRegressor(**SMALL).fit(X, NUMBERS)
    changed.set_params(max_depth=2, quantile=0.3)
    for model in (first[:5], more, changed):
        again = pickle.loads(pickle.dumps(model))
        assert content(again) == content(model)
        assert again._model.recipe.parameters["learning_rate"] == model.learning_rate
        assert again.get_params() == model.get_params()


@pytest.mark.parametrize(
    "moving",
    [
        {"learning_rate": StepFunction(slowly, 30)},
        {"sampler": Langevin(StepFunction(slowly, 30), 1.0, 0.01)},
    ],
)
def test_a_function_of_the_step_is_continued_after_a_pickle(moving):
    whole = SGLBRegressor(**SMALL | moving | {"n_estimators": 40}).fit(X, NUMBERS)
    model = SGLBRegressor(**SMALL | moving, warm_start=True).fit(X, NUMBERS)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model))))
    assert content(again.set_params(n_estimators=40).fit(X, NUMBERS)) == content(whole)


def other(step):
    """Agrees with `slowly` at the beginning and after its end."""
    return slowly(step) * (1.0 if step in (0, 29, 30) else 0.9)


@pytest.mark.parametrize(
    ("name", "moving"),
    [
        ("learning_rate", lambda function: function),
        ("sampler", lambda function: Langevin(function, 1.0, 0.01)),
        ("loss", lambda function: Sla(function)),
    ],
)
def test_functions_of_the_step_are_compared_by_their_values(name, moving, tmp_path):
    kind, y = (SGLBClassifier, TWO) if name == "loss" else (SGLBRegressor, NUMBERS)
    model, same, changed = (
        kind(**SMALL | {name: moving(StepFunction(function, 30))})
        for function in (slowly, lambda step: slowly(step), other)
    )
    with killed_after(10):
        model.fit(X, y, callbacks=Checkpoint(tmp_path / "c", 1))
    whole = content(model.fit(X, y))
    assert content(same.fit(X, y, resume_from=tmp_path / "c")) == whole
    assert same.fit(X, y, init_model=model).n_iter_ == 48
    with pytest.raises(ValueError, match=f"another fit: {name} differs"):
        changed.fit(X, y, resume_from=tmp_path / "c")
    with pytest.raises(ValueError, match=f"init_model: {name}=.* differs from the"):
        changed.fit(X, y, init_model=model)


def test_what_a_file_does_not_hold_of_a_sampler_is_named(tmp_path):
    moving = StepFunction(slowly, 30)
    model = SGLBRegressor(**SMALL | {"learning_rate": moving}).fit(X, NUMBERS)
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"init_model: .* not hold learning_rate where .*pickle"):
        SGLBRegressor(**model.get_params()).fit(X, NUMBERS, init_model=tmp_path / "m")
    stated = SMALL | {"sampler": Langevin(moving, 1.0, 0.01)}
    model = SGLBRegressor(**stated).fit(X, NUMBERS)
    model.save(tmp_path / "n")
    with pytest.raises(ValueError, match=r"init_model: .*set_params\(sampler=...\)"):
        SGLBRegressor(**SMALL).fit(X, NUMBERS, init_model=tmp_path / "n")
    more = SGLBRegressor(**stated).fit(X, NUMBERS, init_model=tmp_path / "n")
    assert content(more) == content(SGLBRegressor(**stated | {"n_estimators": 48}).fit(X, NUMBERS))
