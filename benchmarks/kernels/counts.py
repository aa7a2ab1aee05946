"""Counts on file and how a new set differs from them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from sglb.files import whole_file

FILE = Path(__file__).parent / "counts.json"
ALLOWED = 0.05  # growth that --check lets pass
# Parts below this share of the largest entry of their scenario are noise of the layout, not work.
SMALL = 0.01
# A part that is nearly all of its entry says nothing more.
WHOLE = 0.97


@dataclass(frozen=True)
class Counts:
    compiler: str
    valgrind: str
    clones: list[str]  # instruction sets that target_clones chose under valgrind
    instructions: dict[str, int]  # by scenario/entry and scenario/entry/kernel

    @classmethod
    def read(cls, path):
        return cls(**json.loads(path.read_text()))

    def write(self, path):
        with whole_file(path) as draft:
            draft.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n")

    def differs_in(self, other):
        """What makes two sets of counts not comparable."""
        return [
            f"{name} was {getattr(self, name)!r}, is {getattr(other, name)!r}"
            for name in ("compiler", "clones")
            if getattr(self, name) != getattr(other, name)
        ]


def large(instructions):
    """The entries and parts worth a line: those that do a share of their scenario's work."""
    most = {}
    for name, count in instructions.items():
        scenario = name.partition("/")[0]
        most[scenario] = max(most.get(scenario, 0), count)

    def counts(name, count):
        scenario, entry, *part = name.split("/")
        whole = instructions[f"{scenario}/{entry}"]
        return count >= SMALL * most[scenario] and not (part and count > WHOLE * whole)

    return {name: count for name, count in instructions.items() if counts(name, count)}


@dataclass(frozen=True)
class Change:
    name: str
    recorded: int | None
    now: int | None

    @property
    def growth(self):
        return None if self.recorded is None or self.now is None else self.now / self.recorded - 1

    @property
    def too_much(self):
        return self.growth is not None and self.growth > ALLOWED


def compare(recorded, now):
    """One change a name, in the order of the names; those on one side only have no growth."""
    return [Change(name, recorded.get(name), now.get(name)) for name in sorted({*recorded, *now})]
