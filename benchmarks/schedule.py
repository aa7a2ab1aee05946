"""Which library runs on which problem, and in which order."""

import math
from statistics import median

from benchmarks.peers import OWN, get_peer

QUICK_PROBLEMS = ("stumps_1k", "deep_1k", "rows_10k", "rows_100k")
QUICK_LIBRARIES = (
    "sglb_langevin",
    "sglb_gradient",
    "catboost_sglb",
    "lightgbm_plain",
    "xgboost_hist",
    "hessboost_plain",
)
# On 1M rows of a machine with two cores; measured anew where a run holds that problem too.
FASTEST = ("hessboost_plain", "lightgbm_quantised")

# Another process of a library on a problem only while those before took less, seconds together.
ENOUGH = 20.0

# What a peer must have to enter.
NEEDS = {"custom": "fit_custom", "states": "predict_states"}


def entrants(problem, chosen, results):
    """The chosen libraries that run on a problem, given the results so far."""
    names = [name for name in chosen if _can(name, problem)]
    if problem.measure == "imports":
        first = {}
        for name in names:
            first.setdefault(get_peer(name).PACKAGE, name)
        return list(first.values())
    if problem.fastest_of is not None:
        kept = {*OWN, *_fastest(results.get(problem.fastest_of, {}))}
        return [name for name in names if name in kept]
    return names


def in_turn(names, repeat):
    """Another one begins in each repeat, so that none is always first after a pause."""
    start = repeat % len(names) if names else 0
    return names[start:] + names[:start]


def again(spent, asked=None, enough=None):
    """Whether a library enters for another time, having spent so many seconds on the problem."""
    if enough is None:
        enough = ENOUGH if asked is None else math.inf
    return spent < enough


def _can(name, problem):
    if problem.libraries is not None and name not in problem.libraries:
        return False
    peer, need = get_peer(name), NEEDS.get(problem.measure)
    if hasattr(peer, "enters") and not peer.enters(problem):
        return False
    return need is None or hasattr(peer, need)


def _fastest(by_library):
    """The two fastest libraries but sglb; by_library: name -> list of results."""
    times = {
        name: median(result["seconds"] for result in rows if "seconds" in result)
        for name, rows in by_library.items()
        if name not in OWN and any("seconds" in result for result in rows)
    }
    return sorted(times, key=times.get)[:2] or FASTEST
