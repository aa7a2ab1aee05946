"""Where checkpoints are: a file, the one before it, and a lock that one process holds.

A crash of the program, the machine or the disk at any moment leaves one of the last two whole.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from sglb.archive import read_bytes
from sglb.checkpoints.snapshot import Snapshot
from sglb.errors import CheckpointError, ModelFormatError, warn
from sglb.files import check_destination, sync_folder

# What this process writes to, and its number: a fork has its parent's table, but not its locks.
_held: dict[Path, int] = {}
_guard = threading.Lock()


class Store:
    """The checkpoints at a path."""

    def __init__(self, path: Path) -> None:
        self.stated = path
        self.path = Path(os.path.realpath(path))
        self.previous = self.path.with_name(f"{self.path.name}.previous")
        self._draft = self.path.with_name(f"{self.path.name}.part")
        self._is_valid = False  # whether the newest is, and may become the previous one

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other fits from writing here."""
        check_destination(self.path)
        with _guard:
            if _held.get(self.path) == os.getpid():
                raise CheckpointError(self.stated, "another fit of this process writes there")
            _held[self.path] = os.getpid()
        lock = self.path.with_name(f"{self.path.name}.lock")
        try:
            handle = self._lock(lock)
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
                os.close(handle)
        finally:
            with _guard:
                del _held[self.path]

    def _lock(self, path: Path) -> int:
        """Lock a file, which the system releases when this process ends in whatever way."""
        while True:
            try:
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise CheckpointError(self.stated, f"no lock beside it: {error}") from error
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(handle, 0)
                os.write(handle, str(os.getpid()).encode())
                # The one who held the lock has removed the file, and somebody else may have made
                # a new one.
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), os.stat(path)):
                        return handle
            except OSError as error:
                holder = os.read(handle, 20).decode(errors="replace")
                os.close(handle)
                if not isinstance(error, BlockingIOError | PermissionError):
                    raise CheckpointError(self.stated, f"no lock beside it: {error}") from error
                raise CheckpointError(
                    self.stated, f"process {holder} writes its checkpoints there; use another path"
                ) from None
            os.close(handle)

    def read(self) -> Snapshot | None:
        """Return the newest valid checkpoint, None where there is none; warn of damaged files."""
        damages = []
        for path in (self.path, self.previous):
            try:
                snapshot = Snapshot.from_bytes(read_bytes(path))
            except FileNotFoundError:
                continue
            except ModelFormatError as error:
                if error.field in ("checkpoint", "version", "file"):  # it is something else
                    raise
                damages.append(f"{path} ({error})")
                continue
            self._is_valid = path == self.path
            if damages:
                warn(
                    f"the checkpoint {damages[0]} is damaged; the one before it is used, with"
                    f" {snapshot.n_steps:,} steps",
                )
            return snapshot
        if damages:
            raise CheckpointError(self.stated, f"damaged: {', '.join(damages)}; remove the file")
        return None

    def write(self, content: bytes) -> None:
        """Write a checkpoint, whole or not at all, and keep the one before it."""
        try:
            with self._draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if self._is_valid:
                # It has no name of its own from here until the draft has it, and users move files.
                self._is_valid = False
                with contextlib.suppress(FileNotFoundError):
                    self.path.replace(self.previous)
            self._draft.replace(self.path)
            self._is_valid = True
            sync_folder(self.path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._draft.unlink(missing_ok=True)
            raise CheckpointError(self.stated, f"it cannot be written: {error}") from error
