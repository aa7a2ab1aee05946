"""Write a file completely or not at all: a temporary file beside it is written, then renamed."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


class DestinationError(OSError):
    """A destination that cannot be written."""


def check_destination(path: Path) -> None:
    """Reject a destination that cannot be written, before the work that would be lost."""
    if path.is_dir():
        raise DestinationError(f"{path}: is a folder, not a file to write to")
    if not path.parent.is_dir():
        raise DestinationError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DestinationError(f"{path}: no permission to write")


def is_stream(path: str | Path) -> bool:
    """Whether a path is a pipe or a device, whose content may never end."""
    mode = os.stat(path).st_mode
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside `path` that replaces it if the body succeeds."""
    check_destination(path)
    # Not mkstemp, whose files are private: this one has the permissions of any new file.
    draft = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk: only then is a new file safe."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
