"""Callgrind's files -> instructions by scenario, entry point and kernel.

The format: `ob=`, `fl=`, `fn=` say whose lines follow; a line of numbers is a position and what
was executed there; `calls=` announces one more such line that belongs to the function called.
Names are written once, as `(7) name`, and then as `(7)`.
"""

import re
from collections import Counter

LABEL = "desc: Trigger: Client Request: "
NAME = re.compile(r"(c?ob|c?fn|fl|fi|fe|cfl|cfi)=\((\d+)\)(?: (.*))?$")
TABLE = {"cob": "ob", "cfn": "fn", "fi": "fl", "fe": "fl", "cfl": "fl", "cfi": "fl"}

# A call's way in and out is not the kernel's: the interpreter, NumPy, the switch.
OUTSIDE = re.compile(r"python|numpy|ctypes|libffi|switch\.so|\?\?\?")
INSIDE = re.compile(r"/_core[^/]*\.so$")

# The kernel that a function belongs to, by a word in its name; the first that fits.
KERNELS = {
    "partition": ("leafrows", "partition_rows", "partition_wide", "partition_rest"),
    "sample": ("drawing", "candidate_words", "importances", "toss", "add_squares"),
    "scoring": ("score",),
    "histogram": ("histogram", "build"),
    "noise": ("draw", "words", "normal", "philox"),
    "quantise": ("quantise", "pack", "masses", "slope"),
    "leaves": ("leaf", "leaves"),
    "encode": ("encode", "search_tree"),
    "trees": ("tree", "predict"),
    "links": ("entrop", "logits", "exponential", "reduce", "softmax", "sigmoid", "finish_two"),
}
# libc's memset and memcpy, called by several kernels.
MEMORY = re.compile(r"_*mem(set|cpy|move)")
OTHER = "other"
# Functions that only hand work on; their names hold the name of the work as an argument.
CARRIERS = ("parallel_rows", "parallel_for")
PROJECT = re.compile(r"sglb::(?:\(anonymous namespace\)::)?([A-Za-z_]\w*(?:::~?\w+)*)")
CLONE = re.compile(r"\[clone \.(arch_\w+|default)")


def short(function):
    """A function's own name: no arguments, no namespace, no wrapping by std::function."""
    names = [name for name in PROJECT.findall(function) if name not in CARRIERS]
    return names[0] if names else function.partition("(")[0]


def kernel(function):
    """The kernel that a function works for."""
    if MEMORY.match(function):
        return "memory"
    name = short(function).lower() if "sglb::" in function else ""
    return next(
        (kind for kind, words in KERNELS.items() if any(word in name for word in words)), OTHER
    )


def read(path):
    """The label of a dump and its instructions by (object, function)."""
    label, names = None, {"ob": {}, "fl": {}, "fn": {}}
    now, costs, of_callee = {"ob": "", "fn": ""}, Counter(), False
    for line in path.read_text().splitlines():
        if line.startswith(LABEL):
            label = line.removeprefix(LABEL)
        elif result := NAME.match(line):
            key, number, name = result.groups()
            table = TABLE.get(key, key)
            if name is not None:
                names[table][number] = name
            if key in now:
                now[key] = names[table][number]
        elif line.startswith("calls="):
            of_callee = True
        elif line[:1] in "+-*0123456789" and line:
            if not of_callee:
                costs[now["ob"], now["fn"]] += int(line.split()[1])
            of_callee = False
    return label, costs


def total(paths):
    """Counts by "scenario/entry" and "scenario/entry/kernel", functions of each, clones seen."""
    counts, functions, clones = Counter(), {}, set()
    for path in paths:
        label, costs = read(path)
        if label is None:  # what was left at the end of the process
            continue
        for (module, function), cost in costs.items():
            if OUTSIDE.search(module) and not INSIDE.search(module):
                continue
            counts[label] += cost
            counts[f"{label}/{kernel(function)}"] += cost
            functions.setdefault(label, Counter())[short(function)] += cost
            clones.update(CLONE.findall(function))
    return counts, functions, clones
