"""Servers in processes of this machine."""

import multiprocessing
import pickle
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Lock
from types import TracebackType
from typing import Any, Self

from sglb.cluster.comm import share_of
from sglb.cluster.server import Server
from sglb.errors import portable

# Seconds in which a process that is told to end does.
PATIENCE = 5.0


class LostServerError(RuntimeError):
    """A server that no longer answers."""


class LocalProcesses:
    """Servers in processes of their own, which end with the block: `with LocalProcesses(...)`.

    `pieces` are those of each process: `raw` tables, or ready for chains. What a process held is
    gone if it ends before: nothing moves.
    """

    epoch = 0

    def __init__(
        self,
        pieces: Sequence[Mapping[int, Any]],
        n_threads: int = 1,
        *,
        raw: bool = False,
    ) -> None:
        self._connections: list[Connection] = []
        self._processes: list[Any] = []
        self._lock = Lock()
        self._n_asked = 0
        self._is_broken = False
        self._numbers = [list(held) for held in pieces]
        try:
            for held in pieces:
                self._start(n_threads, "read" if raw else "hold", held)
            self._receive()
        except BaseException:
            self.close()
            raise

    def _start(self, n_threads: int, question: str, held: Mapping[int, Any]) -> None:
        context = multiprocessing.get_context("spawn")
        near, far = context.Pipe()
        process = context.Process(target=_serve, args=(far, n_threads), daemon=True)
        process.start()
        far.close()
        self._connections.append(near)
        self._processes.append(process)
        near.send((0, question, held))

    def ask(
        self, question: str, *arguments: Any, shares: Mapping[int, Any] | None = None
    ) -> list[Any]:
        """Return the answer of each server; the first error of one is raised here."""
        with self._lock:  # chains may run in several threads
            if self._is_broken:
                raise LostServerError("a question was interrupted, and the rest of it is unknown")
            try:
                return self._ask(question, arguments, shares)
            except KeyboardInterrupt:  # half a message may be on its way
                self._is_broken = True
                raise

    def _ask(
        self, question: str, arguments: tuple[Any, ...], shares: Mapping[int, Any] | None
    ) -> list[Any]:
        self._n_asked += 1
        message = pickle.dumps((self._n_asked, question, *arguments), pickle.HIGHEST_PROTOCOL)
        for number, connection in enumerate(self._connections):
            if shares is not None:
                share = share_of(self._numbers[number], shares)
                message = pickle.dumps((self._n_asked, question, *arguments, *share), -1)
            try:
                connection.send_bytes(message)
            except OSError:
                raise self._lost(number) from None
        return self._receive()

    def close(self) -> None:
        """End the processes."""
        for connection in self._connections:
            with suppress(OSError):
                connection.send(None)
            connection.close()
        end = time.monotonic() + PATIENCE
        for process in self._processes:
            process.join(max(end - time.monotonic(), 0.0))
            if process.is_alive():
                process.kill()
                process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _receive(self) -> list[Any]:
        """Return the answers; all are read even if one is an error."""
        packed = []
        for number, connection in enumerate(self._connections):
            asked = -1
            try:
                while asked != self._n_asked:  # not the answer to an earlier question
                    asked, answer = connection.recv()
            except (EOFError, OSError):
                raise self._lost(number) from None
            packed.append(answer)
        answers = [pickle.loads(answer) for answer in packed]
        for _, error in answers:
            if error is not None:
                raise error
        return [answer for answer, _ in answers]

    def _lost(self, number: int) -> LostServerError:
        process = self._processes[number]
        process.join(PATIENCE)
        return LostServerError(
            f"server process {number} has ended with exit code {process.exitcode}, perhaps for"
            " lack of memory; its rows are lost. Train again, with a Checkpoint to go on from"
        )


def _serve(connection: Connection, n_threads: int) -> None:
    """Answer questions until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    server = Server(n_threads=n_threads)
    while True:
        try:
            message = connection.recv()
        except EOFError:
            return
        if message is None:
            return
        number, question, *arguments = message
        connection.send((number, _answer(server, question, arguments)))


def _answer(server: Server, question: str, arguments: list[Any]) -> bytes:
    """Return an answer and None, or None and the error, for the one who asks to decide upon."""
    try:
        return pickle.dumps((getattr(server, question)(*arguments), None), -1)
    except Exception as error:
        return pickle.dumps((None, portable(error)), -1)
