"""The stub `_core.pyi` and the module it describes say the same."""

import ast
import re
from pathlib import Path

import pytest

import sglb
from sglb import _core

STUB = ast.parse((Path(sglb.__file__).parent / "_core.pyi").read_text())
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
ALIASES = {
    node.targets[0].id: ast.unparse(node.value)
    for node in STUB.body
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
}


def described(annotation):
    """An annotation of the stub with its aliases spelled out."""
    text = ast.unparse(annotation)
    for alias, meaning in ALIASES.items():
        text = re.sub(rf"\b{alias}\b", meaning, text)
    return text


def bound_signature(function):
    """What nanobind bound, in the words of the stub: [(argument, type)], result."""
    assert len(function.__nb_signature__) == 1, "one overload"
    text, _, defaults = function.__nb_signature__[0]
    assert defaults is None
    text = re.sub(r"ndarray\[dtype=(\w+)[^\]]*\]", r"NDArray[np.\1]", text)
    text = re.sub(r"ndarray\[[^\]]*\]", "NDArray[Any]", text)
    text = text.replace("np.bool]", "np.bool_]").replace("sglb._core.", "")
    node = ast.parse(text + ": ...").body[0]
    arguments = [(a.arg, ast.unparse(a.annotation)) for a in node.args.args]
    return arguments, ast.unparse(node.returns)


def test_the_stub_names_exactly_what_the_module_has():
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert public == FUNCTIONS.keys() | CLASSES.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_and_types_of_the_stub_are_those_of_the_module(name):
    node = FUNCTIONS[name]
    arguments = node.args
    assert not arguments.kwonlyargs
    assert not arguments.defaults
    spelled = [(a.arg, described(a.annotation)) for a in arguments.args]
    assert (spelled, described(node.returns)) == bound_signature(getattr(_core, name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_says_what_it_does_and_whether_it_fills_arrays(name):
    text = ast.get_docstring(FUNCTIONS[name])
    signature = getattr(_core, name).__nb_signature__[0][0]
    arrays = re.findall(r"ndarray\[[^\]]*\]", signature)
    fills = any("writable=False" not in array for array in arrays)
    assert text
    assert ("OUT" in text) == fills


@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_the_stub_can_be_made_as_it_says(name):
    assert [node.name for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)] == [
        "__init__"
    ]
    assert isinstance(getattr(_core, name)(), getattr(_core, name))
