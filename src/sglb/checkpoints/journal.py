"""The chains of a fit by name: the steps that they repeat, and those that are written down."""

import contextlib
import math
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from sglb.callbacks import BaseCallback, Callback, StepInfo, Stop
from sglb.chain import Chain
from sglb.checkpoints.checkpoint import Checkpoint
from sglb.checkpoints.fingerprint import Fingerprint, describe_settings, differences
from sglb.checkpoints.snapshot import Snapshot
from sglb.checkpoints.store import Store
from sglb.errors import CheckpointError, ModelFormatError, warn
from sglb.recipe import Recipe
from sglb.replay import Replay
from sglb.trace import Trace

# Largest share of the time that checkpoints may take.
SHARE = 0.02


class Journal:
    """What chains repeat of an earlier run, and what a checkpoint stores of them.

    `inherited` are the traces of a model that is continued, `before` is what a run that was
    interrupted has left behind. Chains are followed under the same names in every run.
    """

    def __init__(
        self,
        inherited: Mapping[str, Trace] | None = None,
        before: Snapshot | None = None,
        checkpoint: Checkpoint | None = None,
        store: Store | None = None,
    ) -> None:
        self.inherited = dict(inherited or {})
        self.before = before
        self.checkpoint = checkpoint
        self._store = store
        self._chains: dict[str, Chain] = {}
        self._snapshot: Snapshot | None = None  # the newest one that is written
        self._next = 0.0  # time of the next checkpoint
        self._lock = threading.Lock()  # chains may run in several threads

    @property
    def is_kept(self) -> bool:
        """Whether a checkpoint is read or written."""
        return self.before is not None or self._store is not None

    @property
    def seed(self) -> int | None:
        """The seed of the run that is resumed, None if none is."""
        return None if self.before is None else self.before.recipe.settings.seed

    def begin(self, recipe: Recipe, fingerprint: Fingerprint) -> None:
        """Reject a run that is not the one to resume; write a first checkpoint.

        So a destination that cannot be written is known before the work that would be lost.
        """
        fingerprint = fingerprint | {"settings": describe_settings(recipe)}
        if self.before is not None:
            check_same(fingerprint, self.before)
        traces = {} if self.before is None else self.before.traces
        self._snapshot = Snapshot(recipe, fingerprint, traces)
        if self._store is not None:
            self._write(self._snapshot)

    def follow(self, name: str, chain: Chain) -> None:
        """Let a chain begin with the steps that are known of it, and write down those after."""
        inherited = self.inherited.get(name)
        repeated = None if self.before is None else self.before.traces.get(name)
        if inherited is not None and (repeated is None or len(repeated) < len(inherited)):
            repeated = inherited  # the run has ended among the steps that it inherited
        chain.replay = Replay(repeated, 0 if inherited is None else len(inherited))
        self._chains[name] = chain

    def watching(self) -> list[Callback]:
        """Return what is to look at each chain after its steps."""
        return [] if self._store is None else [_Watch(self)]

    def look(self, n_steps: int, n_before: int = 0) -> None:
        """Write a checkpoint if it is time, after steps of a chain that had `n_before` just now."""
        if self.checkpoint is None:
            return
        every = self.checkpoint.every
        if every is None:
            if time.monotonic() >= self._next:
                self._next = math.inf  # for other threads, until this one has written
                self._save()
                if self._next == math.inf:  # there were no new steps to write
                    self._next = time.monotonic() + self.checkpoint.seconds
        elif n_steps // every > n_before // every:
            self._save()

    def finish(self) -> None:
        """Write that the fit has ended."""
        self._save(is_finished=True)

    def save(self) -> None:
        """Write the steps that chains have taken."""
        self._save()

    def interrupt(self) -> None:
        """Write the last steps, of chains that have ended before their time."""
        with contextlib.suppress(CheckpointError):
            self._save()

    def _save(self, *, is_finished: bool = False) -> None:
        if self._store is None or self._snapshot is None:
            return
        with self._lock:
            last = self._snapshot
            traces = last.traces | {
                name: chain.trace.at(len(chain.trace))
                for name, chain in self._chains.items()
                if len(chain.trace) > len(last.traces.get(name, ()))
            }
            new = Snapshot(last.recipe, last.fingerprint, traces, is_finished)
            if new.n_steps > last.n_steps or is_finished:
                self._write(new)

    def _write(self, snapshot: Snapshot) -> None:
        assert self._store is not None
        assert self.checkpoint is not None
        started = time.monotonic()
        try:
            self._store.write(snapshot.to_bytes())
        except CheckpointError as error:
            if self.checkpoint.on_error == "raise":
                raise
            warn(f"{error}; training goes on")
        else:
            self._snapshot = snapshot
        written = time.monotonic()
        self._next = written + max(self.checkpoint.seconds, (written - started) / SHARE)


class _Watch(BaseCallback):
    """Looks at a chain for its journal."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def step(self, info: StepInfo) -> Stop | None:
        """Let the journal write a checkpoint, but not of steps that it has read from one."""
        if info.step > info.n_replayed:
            self.journal.look(info.step, info.step - 1)
        return None


def check_same(fingerprint: Fingerprint, before: Snapshot) -> None:
    """Reject a fit that is not the one of a checkpoint, with what differs."""
    if different := differences(fingerprint, before.fingerprint):
        raise ValueError(f"resume_from: the checkpoint is of another fit: {'; '.join(different)}")


@contextlib.contextmanager
def open_journal(
    checkpoint: Checkpoint | None,
    resume_from: str | Path | None,
    parameters: Fingerprint,
    inherited: Mapping[str, Trace] | None = None,
) -> Iterator[Journal]:
    """Yield the journal of a fit with these parameters; its path is locked as long."""
    with contextlib.ExitStack() as stack:
        store, before = None, None
        if checkpoint is not None:
            store = Store(checkpoint.path)
            stack.enter_context(store.locked())
        if resume_from is not None:
            source = Store(Path(resume_from))
            is_same = store is not None and store.path == source.path
            before = (store if store is not None and is_same else source).read()
            if before is None and not is_same:
                raise FileNotFoundError(
                    f"resume_from={str(resume_from)!r}: there is no checkpoint. A fit that writes"
                    " its checkpoints there too, callbacks=Checkpoint(path), starts from the"
                    " beginning then"
                )
            if before is not None:
                check_same(parameters, before)
        if store is not None and checkpoint is not None and (before is None or not is_same):
            _check_free(store, checkpoint)
        journal = Journal(inherited, before, checkpoint, store)
        try:
            yield journal
        except KeyboardInterrupt:
            journal.interrupt()
            raise


def _check_free(store: Store, checkpoint: Checkpoint) -> None:
    """Reject a path where the steps of an unfinished fit would be lost."""
    if checkpoint.overwrite:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            present = store.read()
        except CheckpointError:  # damaged files are no loss
            return
        except ModelFormatError as error:  # whole, but of another format or no checkpoint
            raise CheckpointError(
                checkpoint.path, f"{error}; or replace it: Checkpoint(path, overwrite=True)"
            ) from error
    if present is not None and present.n_steps and not present.is_finished:
        raise CheckpointError(
            checkpoint.path,
            f"it holds {present.n_steps:,} steps of a fit that has not ended; pass"
            " resume_from=path to continue that one, or Checkpoint(path, overwrite=True)",
        )
