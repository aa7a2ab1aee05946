"""Servers in processes of this machine."""

import multiprocessing
import pickle
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Lock
from types import TracebackType
from typing import Any, Self

from sglb.cluster.comm import share_of
from sglb.cluster.server import Server

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
        context = multiprocessing.get_context("spawn")
        self._connections: list[Connection] = []
        self._processes: list[Any] = []
        self._lock = Lock()
        self._n_asked = 0
        self._numbers = [list(held) for held in pieces]
        for held in pieces:
            near, far = context.Pipe()
            process = context.Process(target=_serve, args=(far, n_threads), daemon=True)
            process.start()
            far.close()
            self._connections.append(near)
            self._processes.append(process)
            near.send((0, "read" if raw else "hold", held))
        self._receive()

    def ask(
        self, question: str, *arguments: Any, shares: Mapping[int, Any] | None = None
    ) -> list[Any]:
        """Return the answer of each server; the first error of one is raised here."""
        with self._lock:  # chains may run in several threads
            return self._ask(question, arguments, shares)

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
        for process in self._processes:
            process.join(PATIENCE)
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
        answers, errors = [], []
        for number, connection in enumerate(self._connections):
            asked = -1
            try:
                while asked != self._n_asked:  # not the answer to a question that was interrupted
                    asked, answer, error = connection.recv()
            except (EOFError, OSError):
                raise self._lost(number) from None
            answers.append(answer)
            errors += [error] if error is not None else []
        if errors:
            raise errors[0]
        return answers

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
        answer, problem = None, None
        try:
            answer = getattr(server, question)(*arguments)
        except Exception as error:  # the one who asks decides what to do about it
            problem = error
        connection.send((number, answer, problem))
