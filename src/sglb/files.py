"""Files written whole or not at all: a temporary neighbour is filled, synced and renamed."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


class DestinationError(OSError):
    """A place that cannot be written to."""


def check_destination(path: Path) -> None:
    """Refuse a destination that cannot be written, before the work that would be lost."""
    if path.is_dir():
        raise DestinationError(f"{path}: is a folder, not a file to write to")
    if not path.parent.is_dir():
        raise DestinationError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DestinationError(f"{path}: may not be written")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary neighbour that takes the place of `path` if the body succeeds."""
    check_destination(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp makes private files; what is written here is as readable as any new file.
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
