"""What one checkpoint holds <-> bytes: a model file whose trees are those of all chains."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sglb import archive
from sglb.archive.blobs import require
from sglb.checkpoints.fingerprint import Fingerprint
from sglb.model import Model, Record
from sglb.recipe import Recipe
from sglb.trace import Trace

RESULTS = attrgetter(
    "residual_variance", "record", "chain_records", "outcomes", "posterior", "exchange"
)


@dataclass(frozen=True)
class Snapshot:
    """The steps of chains by their names, and what they depend on.

    `is_finished` says that the fit has ended, and `recipe` is what a model file holds of it.
    """

    recipe: Recipe
    fingerprint: Fingerprint
    traces: dict[str, Trace]
    is_finished: bool = False

    @property
    def n_steps(self) -> int:
        """Steps of all chains."""
        return sum(len(trace) for trace in self.traces.values())

    def to_bytes(self) -> bytes:
        """Return the content of a file."""
        begun = {name: trace for name, trace in self.traces.items() if len(trace)}
        model = _without_results(self.recipe, tuple(begun.values()) or (self.recipe.start_trace(),))
        document = {
            "names": list(begun),
            "fingerprint": self.fingerprint,
            "is_finished": self.is_finished,
        }
        return archive.dumps(model, checkpoint=document)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Snapshot":
        """Return what `to_bytes` was called on, or raise `ModelFormatError`."""
        model, document = archive.loads_checkpoint(data)
        fields = {"names", "fingerprint", "is_finished"}
        require("checkpoint", set(document) == fields, "unexpected fields")
        names, sections = document["names"], document["fingerprint"]
        _check_names(names, model)
        has_none = RESULTS(model) == RESULTS(_without_results(model.recipe, model.traces))
        require("checkpoint", has_none, "it has results, which only a fit that has ended has")
        is_plain = isinstance(sections, dict) and all(
            isinstance(section, dict) for section in sections.values()
        )
        require("checkpoint.fingerprint", is_plain, "it is not a list of values by name")
        finished = document["is_finished"]
        require("checkpoint.is_finished", isinstance(finished, bool), f"{finished!r} is no answer")
        traces = dict(zip(names, model.traces, strict=False))
        return cls(model.recipe, sections, traces, finished)


def _without_results(recipe: Recipe, traces: tuple[Trace, ...]) -> Model:
    """A model of trees alone, without what is learned when a fit has ended."""
    return Model(recipe, traces, None, Record(), (Record(),) * len(traces))


def _check_names(names: Any, model: Model) -> None:
    is_text = isinstance(names, list) and all(isinstance(name, str) for name in names)
    require("checkpoint.names", is_text and len(set(names)) == len(names), "they are not names")
    is_empty = not names and model.n_steps == 0
    fits = is_empty or len(names) == len(model.traces)
    require("checkpoint.names", fits, f"{len(names)} names of {len(model.traces)} chains")
