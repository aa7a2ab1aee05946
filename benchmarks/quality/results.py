"""Results kept as lines of JSON while they come in, so that a run can be stopped and taken up.

A line is either a run (its command, machine and conditions) or one result: table, seed, library
and numbers, or the error. Of two results of the same job the later counts.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.quality.protocol import MAX_ROUNDS, PATIENCE


class Job(NamedTuple):
    table: str
    seed: int
    library: str


@dataclass(frozen=True)
class Conditions:
    """What must be equal for results to stand in one table."""

    threads: int
    max_rounds: int = MAX_ROUNDS
    patience: int = PATIENCE
    max_rows: int | None = None


@dataclass(frozen=True)
class Run:
    command: str
    conditions: Conditions
    machine: list[str] = field(default_factory=list)


@dataclass
class Results:
    path: Path | None = None
    runs: list[Run] = field(default_factory=list)
    done: dict[Job, dict] = field(default_factory=dict)

    @classmethod
    def read(cls, *paths):
        """Results of several files together; nothing is written to them."""
        results = cls()
        for path in paths:
            results._take(path)
        return results

    @classmethod
    def resume(cls, path):
        """Results in a file, if it exists, that grows with what is added."""
        results = cls(path)
        if path.exists():
            text = path.read_text()
            if not text.endswith("\n"):  # the process was killed while it wrote
                path.write_text(text[: text.rfind("\n") + 1])
            results._take(path)
        return results

    def begin(self, run):
        self._hold(run)
        self._write({"run": asdict(run)})

    def add(self, job, result):
        self.done[job] = result
        self._write(job._asdict() | result)

    def _take(self, path):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                row = json.loads(line)
                if "run" in row:
                    row = row["run"]
                    self._hold(Run(row["command"], Conditions(**row["conditions"]), row["machine"]))
                else:
                    self.done[Job(*(row.pop(key) for key in Job._fields))] = row
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from error

    def _hold(self, run):
        if self.runs and self.runs[0].conditions != run.conditions:
            raise ValueError(
                f"results under {self.runs[0].conditions} and under {run.conditions} cannot stand"
                " in one table; use another file"
            )
        self.runs.append(run)

    def _write(self, line):
        if self.path is not None:
            with self.path.open("a") as lines:
                lines.write(json.dumps(line) + "\n")
