"""What the innermost kernels do in a clock cycle, and what the processor could do.

    python -m benchmarks.kernels.cycles

Compiles `cycles.cpp` with the sources and flags of the extension and runs it on one thread.
"""

import json
import sys
from pathlib import Path

from benchmarks.kernels import build

# What is counted, where it comes from, and what limits it.
KERNELS = (
    ("histogram: additions", "addition", "a store each: 1 a cycle on most processors"),
    ("scores: codes of a feature and a leaf", "step", "4 instructions each, a division for 16"),
    ("noise: counters of Philox", "counter", "10 rounds of 2 multiplications, 8 at a time"),
    (
        "prediction: trees of depth 6 at a row",
        "tree",
        "6 compares of 64 bytes, 4 look-ups of 32 rows",
    ),
    (
        "prediction: sums of 5 such trees at a row",
        "stretch",
        "these, and 4 digits put together to a double",
    ),
    (
        "uncertainty: states of two classes at a row",
        "state",
        "12 multiplications, 15 additions, a division, for 8",
    ),
    (
        "uncertainty: five numbers of a row",
        "entropy",
        "3 logarithms, 3 divisions",
    ),
)


def table(result):
    """Markdown of what `cycles.cpp` printed."""
    lines = [
        f"A cycle takes {result['clock']:.3f} ns ({1.0 / result['clock']:.2f} GHz).",
        "",
        "| | ns each | in a cycle | limit |",
        "|---|--:|--:|---|",
    ]
    for description, key, limit in KERNELS:
        if result[key]:
            rate = result["clock"] / result[key]
            lines.append(f"| {description} | {result[key]:.3f} | {rate:.2f} | {limit} |")
        else:
            lines.append(f"| {description} | – | – | needs AVX-512 |")
    return lines


def main():
    try:
        print("\n".join(table(json.loads(build.run_program(Path(__file__).parent / "cycles.cpp")))))
    except build.NotReadyError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
