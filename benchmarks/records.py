"""Results of one run or several, kept as lines of JSON while they come in.

A line is either a run (its command, threads, ...) or one result: problem, library, numbers.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Run:
    command: str
    threads: int
    rows: int | None = None  # problems were cut to so many rows
    trees: int | None = None
    machine: dict = field(default_factory=dict)  # `machine.facts`


@dataclass
class Records:
    path: Path | None = None
    runs: list[Run] = field(default_factory=list)
    results: dict[str, dict[str, list[dict]]] = field(default_factory=dict)

    @classmethod
    def read(cls, path):
        records = cls()
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if "command" in row:
                records.begin(Run(**row))
            else:
                records.add(row.pop("problem"), row.pop("library"), row)
        return records

    def begin(self, run):
        self.runs.append(run)
        self._write(asdict(run))

    def add(self, problem, library, result):
        self.results.setdefault(problem, {}).setdefault(library, []).append(result)
        self._write({"problem": problem, "library": library} | result)

    def _write(self, line):
        if self.path is not None:
            with self.path.open("a") as lines:
                lines.write(json.dumps(line) + "\n")
