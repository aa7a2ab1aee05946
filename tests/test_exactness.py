"""The numbers of a model come from operations that have the same bits everywhere."""

import ast
import re
from pathlib import Path

import pytest

import sglb

PACKAGE = Path(sglb.__file__).parent

# Functions and operations whose last bits depend on the order of rows, on the processor or on a
# library's version: all of scipy and np.linalg, products of matrices, powers, and
LAST_BITS = {
    "np": {"average", "convolve", "cov", "cumprod", "cumsum", "dot", "einsum", "exp", "exp2"}
    | {"expm1", "geomspace", "hypot", "inner", "interp", "log", "log10", "log1p", "log2"}
    | {"logaddexp", "logspace", "matmul", "mean", "nanmean", "nansum", "power", "prod"}
    | {"cos", "sin", "std", "sum", "tan", "tanh", "tensordot", "trapezoid", "var", "vdot"},
    "math": {"acos", "asin", "atan", "cos", "cosh", "erf", "erfc", "exp", "expm1", "gamma"}
    | {"hypot", "lgamma", "log10", "log1p", "log2", "pow", "sin", "sinh", "tan", "tanh"},
    # of arrays
    "": {"cumprod", "cumsum", "dot", "mean", "prod", "std", "sum", "trace", "var"},
}
# Rooms whose numbers neither reach a model file nor choose a model.
SHOWN_ONLY = {
    "calibration", "cli", "diagnostics", "distributions", "experiments", "integrations", "peers",
    "plots", "uncertainty",
}  # fmt: skip
# Whose `sum` and `mean` are exact: `sums.py`, targets and rows, and kernels.
EXACT = re.compile(r"(sums|[tT]arget|rows|States|self\._sums|pc)$")
# Where they are allowed, with the reason.
WHOLE, LIMIT, FIXED = "whole numbers", "a limit that is far off", "entries of a fixed order"
ADVICE = "a number of steps in the text of a warning"
ALLOWED = {
    "archive/validation.py (weights * largest).sum": LIMIT,
    "archive/validation.py trace.feature_gains().sum": LIMIT,
    "bundles.py is_on @ is_on.T": WHOLE,
    "categories/combinations.py np.prod": LIMIT,
    "categories/encoder.py np.cumsum": WHOLE,
    "categories/storage.py np.cumsum": WHOLE,
    "categories/vocabulary.py np.cumsum": WHOLE,
    "cluster/parts.py np.sum": WHOLE,  # also of pilots, where all shards but one have 0
    "cluster/rows.py np.cumsum": WHOLE,
    "cluster/table.py np.cumsum": WHOLE,
    "conformal/classes.py self.members.sum": WHOLE,
    "conformal/classes.py table.sum": LIMIT,
    "conformal/cross_classes.py np.array(count, dtype=np.int64).sum": WHOLE,
    "datasets.py np.sin": "data, not a model",
    "datasets.py x.prod": "data, not a model",
    "estimators/classes.py np.cumsum": WHOLE,
    "estimators/posterior.py draws.mean": FIXED,
    "estimators/posterior.py draws.std": FIXED,
    "estimators/summary.py scipy.stats": "limits of warnings",
    "estimators/summary.py math.log10": ADVICE,
    "estimators/summary.py 10.0 ** max(math.floor(math.log10(n_steps)) - 1, 0)": ADVICE,
    "losses/constants.py scipy.optimize": "of one number, without sums",
    "losses/trial.py np.prod": WHOLE,
    "transition.py C[:, 0, 0].prod": FIXED,  # of steps
    "transition.py np.cumprod": FIXED,
    "transition.py np.linalg.eigvals": "rejects states of three parts, which users make",
}


def in_last_bits(node):
    """The operation of a node whose last bits may differ, None if they cannot."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return ast.unparse(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        # 2^n and x^2 are exact, and so is what Python folds.
        exact = any(getattr(side, "value", None) in (2, 2.0) for side in (node.left, node.right))
        return None if exact else ast.unparse(node)
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scipy"):
        return node.module
    if isinstance(node, ast.ImportFrom) and node.module in ("math", "numpy"):
        module = {"math": "math", "numpy": "np"}[node.module]
        forbidden = [alias.name for alias in node.names if alias.name in LAST_BITS[module]]
        return f"{module}.{forbidden[0]}" if forbidden else None
    if not isinstance(node, ast.Attribute):
        return None
    owner = ast.unparse(node.value)
    if owner == "np.linalg":
        return ast.unparse(node)
    if owner in ("np", "math"):
        return ast.unparse(node) if node.attr in LAST_BITS[owner] else None
    return ast.unparse(node) if node.attr in LAST_BITS[""] and not EXACT.search(owner) else None


def inexact_operations(path):
    tree = ast.parse(path.read_text())
    # int(...sum()) counts, and the keyword `dtype` of whole numbers is seen in the list above.
    counts = {
        node.args[0].func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "int" and node.args
        and isinstance(node.args[0], ast.Call)
    }  # fmt: skip
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        is_method = isinstance(node, ast.Attribute) and ast.unparse(node.value) not in (
            "np",
            "math",
        )
        is_plain = is_method and "linalg" not in ast.unparse(node)
        if node in counts or (is_plain and node not in called):
            continue
        operation = in_last_bits(node)
        if operation is not None:
            yield operation


def test_numbers_of_a_model_come_from_functions_that_are_the_same_bits_everywhere():
    used = {
        f"{path.relative_to(PACKAGE).as_posix()} {operation}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") not in SHOWN_ONLY
        for operation in inexact_operations(path)
    }
    assert used == ALLOWED.keys()


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        ("np.exp(x)", "np.exp"),
        ("raws.var(axis=0, ddof=1).mean()", "raws.var"),
        ("gradient @ direction", "gradient @ direction"),
        ("np.linalg.det(C)", "np.linalg.det"),
        ("math.lgamma(0.5 * df)", "math.lgamma"),
        ("from math import lgamma", "math.lgamma"),
        ("from scipy.optimize import minimize", "scipy.optimize"),
        ("n_rows ** 0.5", "n_rows ** 0.5"),
        ("functools.reduce(np.sum, x)", "np.sum"),
    ],
)
def test_inexact_operations_are_seen(line, operation, tmp_path):
    (tmp_path / "room.py").write_text(f"x = {line}" if "import" not in line else line)
    assert operation in set(inexact_operations(tmp_path / "room.py"))


@pytest.mark.parametrize(
    "line", ["sums.mean(x)", "target.mean(x)", "int(counts.sum())", "2.0**-20", "np.sqrt(x)"]
)
def test_exact_operations_are_allowed(line, tmp_path):
    (tmp_path / "room.py").write_text(line)
    assert not set(inexact_operations(tmp_path / "room.py"))
