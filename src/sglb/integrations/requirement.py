"""The guard around imports of the libraries that callbacks need."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def required_by(callback: str, library: str) -> Iterator[None]:
    """Turn a failed import of a library into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f'{callback} needs {library}: pip install "sglb[integrations]"'
        ) from error
