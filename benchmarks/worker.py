"""One library on one problem, alone in a process.

    python -m benchmarks.worker '{"problem": "rows_10k", "library": "sglb_langevin"}'

prints one line of JSON on stdout; whatever a library prints goes to stderr. Further keys:
threads (1), seed (0), rows and trees (no more than so many).
"""

import json
import os
import sys

from benchmarks.measures import MEASURES
from benchmarks.peers import get_peer
from benchmarks.problems import get_problem


def measure(request):
    problem = get_problem(request["problem"]).smaller(request.get("rows"), request.get("trees"))
    peer = get_peer(request["library"])
    by_class = getattr(peer, "BY_CLASS", False)
    settings = problem.settings(request.get("threads", 1), request.get("seed", 0), by_class)
    return MEASURES[problem.measure](problem, peer, settings)


def main():
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    result = measure(json.loads(sys.argv[1]))
    with os.fdopen(answer, "w") as stdout:
        print(json.dumps(result), file=stdout)


if __name__ == "__main__":
    main()
