"""A server of rows as an actor on a worker of Dask."""

import traceback
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from distributed.protocol.pickle import dumps, loads

from sglb.cluster import Server

# The servers in this process, by the name that their client has given them.
SERVERS: WeakValueDictionary[str, "DaskServer"] = WeakValueDictionary()


class NotServedError(Exception):
    """A server that is not there, hangs, or holds other pieces than it should."""


class DaskServer:
    """A server as an actor, which tasks on the same worker find by its name."""

    def __init__(self, name: str, n_threads: int) -> None:
        self.server = Server(n_threads=n_threads)
        self.lock = Lock()  # questions come in one thread, partitions in others
        SERVERS[name] = self

    def ask(self, message: bytes, numbers: list[int], share: bytes | None) -> tuple[Any, Any]:
        """Return an answer, or the error there was instead; `numbers` are of the pieces here."""
        try:
            question, arguments = loads(message)
            shares = () if share is None else (loads(share),)
            with self.lock:
                if self.server.numbers != set(numbers):
                    raise NotServedError("it holds other partitions: it was started anew")
                return getattr(self.server, question)(*arguments, *shares), None
        except Exception as error:  # an error that is raised would pass for one of the cluster
            error.add_note("On the worker:\n" + traceback.format_exc())
            return None, portable(error)


def hand_over(name: str, number: int, table: Any, timeout: float) -> None:
    """Give a partition to the server on the worker where this runs, unless it has it."""
    server = SERVERS.get(name)
    if server is None:
        raise NotServedError("its server is gone: it was started anew")
    if not server.lock.acquire(timeout=timeout):
        raise NotServedError(f"it has been busy with a question for {timeout:g} s")
    try:
        if number not in server.server.numbers:
            server.server.read({number: table})
    finally:
        server.lock.release()


def portable(error: Exception) -> Exception:
    """Return an error, or what it says if it cannot be sent."""
    try:
        loads(dumps(error))
    except Exception:
        return RuntimeError("\n".join([repr(error), *error.__notes__]))
    return error
