"""Results kept as lines of JSON while they come in, so that a run can be stopped and taken up."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Job(NamedTuple):
    part: str
    table: str
    split: int
    method: str


@dataclass
class Results:
    """Results by (part, table, split, variant); of two of the same the later counts."""

    path: Path | None = None
    commands: list[str] = field(default_factory=list)
    done: dict[Job, dict] = field(default_factory=dict)

    @classmethod
    def read(cls, *paths):
        """Results of several files together; nothing is written to them."""
        results = cls()
        for path in paths:
            results._take(path, path.read_text().split("\n")[:-1])  # what follows was cut off
        return results

    @classmethod
    def resume(cls, path):
        """Results in a file, if it exists, that grows with what is added."""
        results = cls(path)
        if path.exists():
            *lines, rest = path.read_text().split("\n")
            if rest:  # the process was killed while it wrote
                path.write_text("".join(line + "\n" for line in lines))
            results._take(path, lines)
        return results

    def begin(self, command):
        self.commands.append(command)
        self._write({"command": command})

    def add(self, job, result):
        self.done[job] = result
        self._write(job._asdict() | result)

    def column(self, part, table, method, key):
        """Values by split, of the splits that have one."""
        return {
            job.split: result[key]
            for job, result in self.done.items()
            if job[:2] + job[3:] == (part, table, method) and result.get(key) is not None
        }

    def names(self, part, position):
        """Tables or methods of a part, in the order of their first results."""
        return list(dict.fromkeys(job[position] for job in self.done if job.part == part))

    def _take(self, path, lines):
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                if "command" in row:
                    self.commands.append(row["command"])
                else:
                    self.done[Job(*(row.pop(key) for key in Job._fields))] = row
            except (ValueError, KeyError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from error

    def _write(self, line):
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as lines:
                lines.write(json.dumps(line) + "\n")
