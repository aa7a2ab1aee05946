"""Draws of a posterior <-> bytes: values of leaves, or chains as a model file."""

import math
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.archive.arguments import from_json, to_json
from sglb.archive.blobs import Bytes, model_of, pack, positive_numbers, require, unpack
from sglb.archive.container import Arrays
from sglb.model import Model, Record
from sglb.posterior import (
    AnyPosterior,
    ChainPosterior,
    LeafDraws,
    LongChains,
    PosteriorPlan,
    with_sampler,
)
from sglb.samplers import Langevin

_PLAN = tuple(field.name for field in fields(PosteriorPlan))


def pack_draws(drawn: AnyPosterior, model: Model, dumps: Callable[[Model], bytes]) -> Bytes:
    """Return draws of a model as bytes; `dumps` stores a model."""
    document: dict[str, Any] = {"plan": asdict(drawn.plan)}
    if isinstance(drawn, ChainPosterior):
        draws = drawn.draws
        document["mirror"] = draws.mirror
        if drawn.between_chains is not None:
            document["between_chains"] = drawn.between_chains
        if draws.relaxations is not None:
            document["relaxations"] = draws.relaxations
        return pack(document, {"values": draws.values, "stages": draws.stages})
    content = np.frombuffer(dumps(_chain_model(model, drawn)), dtype=np.uint8)
    return pack(document, {"chains": content, "watched": drawn.watched})


def _chain_model(model: Model, drawn: LongChains) -> Model:
    """Return long chains as the model in which they are stored.

    Its parameters are those that a file gives back: of what is lost there is no name either, since
    a model that was read does not know it.
    """
    recipe = with_sampler(model.recipe, drawn.sampler, drawn.plan)
    stored = {name: from_json(to_json(value)) for name, value in recipe.parameters.items()}
    recipe = replace(recipe, parameters=stored)
    return Model(recipe, drawn.traces, None, Record(), (Record(),) * len(drawn.traces))


def unpack_draws(
    name: str,
    data: Bytes,
    model: Model,
    n_leaves: NDArray[np.int64],
    loads: Callable[[memoryview], Model],
    is_file_of: Callable[[memoryview, Model], bool],
) -> AnyPosterior:
    """Return draws of a model whose trees have `n_leaves` leaves.

    `loads` reads a model, `is_file_of` tells whether it would be written as certain bytes.
    """
    document, arrays = unpack(name, data)
    plan = _plan_of(name, document.pop("plan", None))
    if plan.kind == "paper":
        require(name, not document, "unexpected fields")
        chains = _long_chains(name, plan, arrays, model, loads)
        same = is_file_of(arrays["chains"].data, _chain_model(model, chains))
        require(f"{name}.chains", same, "their recipe is not that of the model")
        return chains
    mirror, n_outputs = document.pop("mirror", None), len(model.recipe.offset)
    between, lasts = document.pop("between_chains", None), document.pop("relaxations", None)
    require(name, not document, "unexpected fields")
    require(name, mirror is (plan.kind == "laplace"), "its mirror images do not fit its kind")
    fits = _is_amount(between) if len(model.traces) > 1 else between is None
    require(f"{name}.between_chains", fits, f"{between!r} is not a variance of chains")
    fits = lasts is None or _is_amount(lasts)
    require(f"{name}.relaxations", fits, f"{lasts!r} is not a number of relaxation times")
    draws = _leaf_draws(name, plan, arrays, n_leaves, n_outputs)
    return ChainPosterior(replace(draws, relaxations=lasts), plan, between)


def _is_amount(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value >= 0.0


def _plan_of(name: str, plan: Any) -> PosteriorPlan:
    require(name, isinstance(plan, dict) and set(plan) == set(_PLAN), "its plan is another")
    kind = plan["kind"]
    is_kind = isinstance(kind, str) and kind in ("laplace", "full", "paper")
    require(f"{name}.kind", is_kind, f"{kind!r} is no kind")
    for field in ("n_draws", "n_steps", "seed"):
        value = plan[field]
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        require(f"{name}.{field}", is_count, f"{value!r} is not a count")
    numbers = {key: plan[key] for key in ("prior_variance", "temperature")}
    numbers = positive_numbers(name, numbers, set(numbers))
    require(name, all(map(math.isfinite, numbers.values())), "its numbers are not finite")
    return PosteriorPlan(**plan)


def _leaf_draws(
    name: str, plan: PosteriorPlan, arrays: Arrays, n_leaves: NDArray[np.int64], n_outputs: int
) -> LeafDraws:
    require(name, set(arrays) == {"values", "stages"}, "its arrays are others")
    values, stages, mirror = arrays["values"], arrays["stages"], plan.kind == "laplace"
    even = plan.n_draws >= 2 and plan.n_draws % 2 == 0
    require(f"{name}.n_draws", even, f"{plan.n_draws} is not an even number of draws")
    n_values = plan.n_draws // 2 if mirror else plan.n_draws
    expected = int(n_leaves.sum()), n_outputs, n_values
    is_float = values.dtype == np.float32 and stages.dtype == np.float64
    require(f"{name}.values", is_float and values.shape == expected, "it has another shape")
    watched = stages.ndim == 4 and stages.shape[:2] == (2, n_outputs) and stages.shape[2] > 0
    whole = watched and stages.shape[3] == plan.n_draws
    require(f"{name}.stages", whole, "it has another shape")
    is_finite = bool(np.isfinite(values).all() and np.isfinite(stages).all())
    require(f"{name}.values", is_finite, "a value is not finite")
    return LeafDraws(n_leaves, np.array(values), mirror, np.array(stages), plan.n_steps)


def _long_chains(
    name: str,
    plan: PosteriorPlan,
    arrays: Arrays,
    model: Model,
    loads: Callable[[memoryview], Model],
) -> LongChains:
    require(name, set(arrays) == {"chains", "watched"}, "its arrays are others")
    content, watched = arrays["chains"], arrays["watched"]
    chains = model_of(f"{name}.chains", content, loads)
    traces, sampler = chains.traces, chains.recipe.settings.sampler
    n_features, n_outputs = model.recipe.bins.n_features, len(model.recipe.offset)
    fits = chains.recipe.bins.n_features == n_features and len(chains.recipe.offset) == n_outputs
    require(f"{name}.chains", fits, "they are not chains of this model")
    is_langevin = isinstance(sampler, Langevin) and sampler.temperature == plan.temperature
    require(f"{name}.chains", is_langevin, "they have another sampler")
    assert isinstance(sampler, Langevin)
    same_length = all(len(trace) == plan.n_steps for trace in traces)
    require(f"{name}.n_steps", same_length, f"the chains do not have {plan.n_steps} steps")
    n_each, remainder = divmod(plan.n_draws, len(traces))
    in_second_half = 1 <= n_each <= plan.n_steps - plan.n_steps // 2 and not remainder
    require(f"{name}.n_draws", in_second_half, f"{plan.n_draws} are not states of these chains")
    is_float = watched.dtype == np.float64 and watched.ndim == 4 and watched.shape[1] >= 4
    whole = is_float and (watched.shape[0], watched.shape[2]) == (len(traces), n_outputs)
    require(f"{name}.watched", whole, "it has another shape")
    require(f"{name}.watched", bool(np.isfinite(watched).all()), "a value is not finite")
    return LongChains(traces, sampler, plan, np.array(watched))
