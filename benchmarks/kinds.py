"""The command line of a measurement on several kinds of table, each in a process of its own."""

import argparse
import json
import subprocess
import sys


def measured(module, measure, kinds, *, description, n_columns, heads):
    """Print the head of a Markdown table; yield (kind, what `measure` returned, its error or None).

    `measure` is a function of (kind, n_rows, n_columns) in the module that calls; `description` is
    that of the columns.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=n_columns)
    parser.add_argument("--kind", choices=kinds, help="print one measurement as JSON")
    options = parser.parse_args()
    if options.kind:
        print(json.dumps(measure(options.kind, options.rows, options.columns)))
        return
    print(
        "| "
        + " | ".join([f"{options.rows:,} rows, {options.columns} {description}", *heads])
        + " |"
    )
    print("|---|" + "--:|" * len(heads), flush=True)
    sizes = "--rows", str(options.rows), "--columns", str(options.columns)
    for kind in kinds:
        call = [sys.executable, "-m", module, "--kind", kind, *sizes]
        done = subprocess.run(call, capture_output=True, text=True)
        if done.returncode == 0:
            yield kind, json.loads(done.stdout), None
        else:
            yield kind, None, (done.stderr.strip().splitlines() or ["no answer"])[-1]
