"""The stub `_core.pyi` and the module it describes say the same."""

import ast
import re
from operator import attrgetter
from pathlib import Path

import pytest

import sglb
from sglb import _core

STUB = ast.parse((Path(sglb.__file__).parent / "_core.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
TESTING = CLASSES.pop("testing")  # a submodule, which a stub can only tell as a class
ENUMS = {"Role": CLASSES.pop("Role")}
FUNCTIONS = {
    f"{prefix}{node.name}": node
    for prefix, body in (("", STUB.body), ("testing.", TESTING.body))
    for node in body
    if isinstance(node, ast.FunctionDef)
}
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


def bound_signatures(function):
    """What nanobind bound, in the stub's words: [(argument, type)], result of each overload."""
    result = []
    for text, _, defaults in function.__nb_signature__:
        assert defaults is None
        text = text.replace("numpy.ndarray", "ndarray").replace("def (", "def getter(")
        text = re.sub(r"ndarray\[dtype=(\w+)[^\]]*\]", r"NDArray[np.\1]", text)
        text = re.sub(r"ndarray\[[^\]]*\]", "NDArray[Any]", text)
        text = (
            text.replace("np.bool]", "np.bool_]")
            .replace("sglb._core.", "")
            .replace("collections.abc.", "")
        )
        node = ast.parse(text + ": ...").body[0]
        arguments = [(a.arg, a.annotation and ast.unparse(a.annotation)) for a in node.args.args]
        result.append((arguments, ast.unparse(node.returns)))
    return result


def spelled_signature(node):
    """What the stub says: [(argument, type)], result."""
    assert not node.args.kwonlyargs
    assert not node.args.defaults
    arguments = [(a.arg, a.annotation and described(a.annotation)) for a in node.args.args]
    return arguments, described(node.returns)


def test_the_stub_names_exactly_what_the_module_has():
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert public == {name.split(".")[0] for name in FUNCTIONS} | CLASSES.keys() | ENUMS.keys()
    testing = {f"testing.{name}" for name in dir(_core.testing) if not name.startswith("_")}
    assert testing == {name for name in FUNCTIONS if "." in name}


def test_the_members_of_an_enum_are_those_of_the_module():
    for name, node in ENUMS.items():
        members = [member.name for member in getattr(_core, name)]
        assert members == [line.target.id for line in node.body if isinstance(line, ast.AnnAssign)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_and_types_of_the_stub_are_those_of_the_module(name):
    assert [spelled_signature(FUNCTIONS[name])] == bound_signatures(attrgetter(name)(_core))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_says_what_it_does_and_whether_it_fills_arrays(name):
    text = ast.get_docstring(FUNCTIONS[name])
    signature = attrgetter(name)(_core).__nb_signature__[0][0]
    arrays = re.findall(r"ndarray\[[^\]]*\]", signature.partition("->")[0])
    fills = any("writable=False" not in array for array in arrays)
    assert text
    assert ("OUT" in text) == fills


def is_setter(node):
    return any(ast.unparse(decorator).endswith(".setter") for decorator in node.decorator_list)


@pytest.mark.parametrize("name", CLASSES)
def test_methods_of_the_stub_are_those_of_the_module(name):
    methods = {}
    for node in CLASSES[name].body:
        if isinstance(node, ast.FunctionDef) and not is_setter(node):
            methods.setdefault(node.name, []).append(spelled_signature(node))
    result = getattr(_core, name)
    public = {key for key in vars(result) if not key.startswith("_")}
    assert methods.keys() - {"__iter__"} == public | {"__init__"}
    for method in methods.keys() - {"__iter__"}:
        bound = getattr(result, method)
        if isinstance(bound, property):
            bound = bound.fget
        assert methods[method] == bound_signatures(bound)


def test_no_function_has_more_than_eight_parameters():
    functions = {name: attrgetter(name)(_core) for name in FUNCTIONS}
    for name in CLASSES:
        for key, member in vars(getattr(_core, name)).items():
            if hasattr(member, "__nb_signature__"):
                functions[f"{name}.{key}"] = member
    assert {"Trees.__init__", "Trees.write", "encode"} <= functions.keys()
    for name, function in functions.items():
        for arguments, _ in bound_signatures(function):
            names = [argument for argument, _ in arguments if argument != "self"]
            assert len(names) <= 8, name
