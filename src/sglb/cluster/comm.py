"""How a chain reaches the servers that hold its rows.

A question goes to all servers, and all their answers come back: sums, maxima and lists of them are
made by the one who asks. A new way to reach servers has one method to write.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sglb.cluster.server import Server


class Comm(Protocol):
    """Servers that hold all pieces of a table between them.

    `epoch` counts how often pieces have moved.
    """

    epoch: int

    def ask(
        self, question: str, *arguments: Any, shares: Mapping[int, Any] | None = None
    ) -> list[Any]:
        """Return what a method of each server answers; raise Moved if one was lost and replaced.

        Of `shares`, by piece, a server gets those of its own pieces as one more argument.
        """
        ...


class SerialComm:
    """Servers in this process, one after the other."""

    epoch = 0

    def __init__(self, servers: Iterable[Server]) -> None:
        self.servers = list(servers)

    def ask(
        self, question: str, *arguments: Any, shares: Mapping[int, Any] | None = None
    ) -> list[Any]:
        """Return the answer of each server."""
        return [
            getattr(server, question)(*arguments, *share_of(server.numbers, shares))
            for server in self.servers
        ]


def share_of(
    numbers: Iterable[int], shares: Mapping[int, Any] | None
) -> tuple[dict[int, Any], ...]:
    """Return the shares of some pieces as an argument, none if there are no shares."""
    return () if shares is None else ({number: shares[number] for number in numbers},)
