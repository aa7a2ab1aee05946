"""The callback by which users ask for checkpoints; `journal` writes them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from sglb.callbacks import BaseCallback, Callback, StepInfo
from sglb.settings import POSITIVE, whole

# Seconds between two checkpoints: what a crash may cost.
INTERVAL = 30.0


class Checkpoint(BaseCallback):
    """Writes the steps taken so far to a file, from which `fit(..., resume_from=path)` goes on.

    every : steps between two checkpoints; without it `seconds` count.
    seconds : time between two checkpoints, 30 without it; longer where writing one would take more
        than 2 % of the time.
    overwrite : whether the checkpoint of an unfinished fit may be replaced by that of a new one.
    on_error : what happens when a checkpoint cannot be written, "raise" or "warn".

    A file is written whole or not at all; the one before it stays as PATH.previous.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: int | None = None,
        *,
        seconds: float | None = None,
        overwrite: bool = False,
        on_error: Literal["raise", "warn"] = "raise",
    ) -> None:
        if every is not None and not whole(1).holds(every):
            raise ValueError(f"every={every!r} is not allowed; use a number of steps, at least 1")
        if seconds is not None and not POSITIVE.holds(seconds):
            raise ValueError(f"seconds={seconds!r} is not allowed; use a number above 0")
        if every is not None and seconds is not None:
            raise ValueError(f"every={every!r} and seconds={seconds!r} exclude each other")
        if on_error not in ("raise", "warn"):
            raise ValueError(f"on_error={on_error!r} is not allowed; use 'raise' or 'warn'")
        self.path = Path(path)
        self.every = None if every is None else int(every)
        self.seconds = INTERVAL if seconds is None else float(seconds)
        self.overwrite = overwrite
        self.on_error = on_error

    def start(self, info: StepInfo) -> None:
        """Raise: fit takes checkpoints out of its list of callbacks, so this one is hidden."""
        raise RuntimeError(
            "fit must be given a Checkpoint itself, callbacks=[Checkpoint(path)]: inside another"
            " callback it cannot see all chains"
        )


def take_checkpoint(callbacks: Sequence[Callback]) -> tuple[Checkpoint | None, list[Callback]]:
    """Return the checkpoint among callbacks, None if there is none, and the others."""
    stated = [callback for callback in callbacks if isinstance(callback, Checkpoint)]
    if len(stated) > 1:
        raise ValueError(f"callbacks: {len(stated)} checkpoints; a fit writes one")
    others = [callback for callback in callbacks if not isinstance(callback, Checkpoint)]
    return (stated[0] if stated else None), others
