"""A server of rows as an actor on a worker of Dask."""

import asyncio
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from distributed.protocol.pickle import dumps, loads
from numpy.typing import NDArray

from sglb.cluster import Server
from sglb.errors import portable

# The servers in this process, by the name that their client has given them.
SERVERS: WeakValueDictionary[str, "DaskServer"] = WeakValueDictionary()


class NotServedError(Exception):
    """A server that is not there, hangs, or holds other pieces than it should."""


class Packed(NamedTuple):
    """A value as bytes and arrays, which Dask can unpack whatever the value is."""

    pickled: bytes
    buffers: list[NDArray[np.uint8]]

    def unpack(self) -> Any:
        """Return the value."""
        return loads(self.pickled, buffers=self.buffers)


def pack(value: Any) -> Packed:
    """Pack a value; arrays in it are not copied."""
    buffers: list[Any] = []
    pickled = dumps(value, buffer_callback=buffers.append)
    return Packed(pickled, [np.asarray(buffer.raw()) for buffer in buffers])


class DaskServer:
    """A server as an actor, which tasks on the same worker find by its name.

    Questions are answered in a thread of its own: those to another server on this worker, of
    another fit, do not wait for them.
    """

    def __init__(self, name: str, n_threads: int) -> None:
        self.server = Server(n_threads=n_threads)
        self.lock = Lock()  # questions come in one thread, partitions in others
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        SERVERS[name] = self

    async def ask(self, message: bytes, numbers: list[int], share: bytes | None) -> Packed:
        """Return an answer and None, or None and the error; `numbers` are of the pieces here."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._answer, message, numbers, share)

    def _answer(self, message: bytes, numbers: list[int], share: bytes | None) -> Packed:
        def answer() -> Any:
            question, arguments = loads(message)
            shares = () if share is None else (loads(share),)
            with self.lock:
                if self.server.numbers != set(numbers):
                    raise NotServedError("it holds other partitions: it was started anew")
                return getattr(self.server, question)(*arguments, *shares)

        return _packed_answer(answer)


def _packed_answer(answer: Callable[[], Any]) -> Packed:
    """Pack an answer, or the error: one that is raised would pass for an error of the cluster."""
    try:
        return pack((answer(), None))
    except Exception as error:
        error.add_note("On the worker:\n" + traceback.format_exc())
        return pack((None, portable(error, dumps, loads)))


def hand_over(name: str, number: int, table: Any) -> None:
    """Give a partition to the server on the worker where this runs, unless it has it.

    The server may be busy with a question that takes long; who waits for this looks after the
    worker.
    """
    server = SERVERS.get(name)
    if server is None:
        raise NotServedError("its server is gone: it was started anew")
    with server.lock:
        if number not in server.server.numbers:
            server.server.read({number: table})
