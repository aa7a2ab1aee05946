"""What the project wants of itself, as sentences that the numbers make true or false."""

from typing import NamedTuple

from benchmarks.quality.libraries import OWN, get_library

NEAR = 1.0  # percent above the best peer
SPEED = {"catboost": 10.0, "lightgbm": 1.0}  # total fit time of a peer over that of sglb


class Goal(NamedTuple):
    text: str
    result: str
    met: bool


def goals(comparison):
    """The goals that the libraries in the comparison allow to be judged."""
    if OWN not in comparison.libraries or not comparison.peers or not comparison.cells:
        return []
    result = [_near(comparison)]
    if "catboost" in comparison.peers:
        result.append(_better(comparison, "catboost"))
    result += [_fast(comparison, peer) for peer in SPEED if peer in comparison.peers]
    return [goal for goal in result if goal is not None]


def _near(comparison):
    far = [
        table
        for table in comparison.tables
        if comparison.relative(table, OWN, comparison.best(table, comparison.peers)) > NEAR
    ]
    n_tables = len(comparison.tables)
    result = f"{n_tables - len(far)} of {n_tables} tables"
    if far:
        result += f"; not on {', '.join(far)}"
    return Goal(f"within {NEAR:g} % of the best peer on every table", result, not far)


def _better(comparison, peer):
    ahead, _ = comparison.wins(peer)
    n_tables = len(comparison.tables)
    name = get_library(peer).NAME
    text = f"better than {name} on at least half of the tables"
    return Goal(text, f"{len(ahead)} of {n_tables}", 2 * len(ahead) >= n_tables)


def _fast(comparison, peer):
    times = comparison.times(peer, OWN)
    if times is None:
        return None
    factor, name = SPEED[peer], get_library(peer).NAME
    text = f"total fit time at most {name}'s" + (f" / {factor:g}" if factor != 1.0 else "")
    theirs, ours, _ = times
    result = f"{ours:.1f} s against {theirs:.1f} s, a ratio of {theirs / ours:.2f}"
    return Goal(text, result, theirs / ours >= factor)
