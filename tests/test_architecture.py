"""The architecture as data: who may import whom, what is public, and what may be missing."""

import ast
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import sglb
from sglb import samplers, tables
from sglb.samplers import SAMPLERS

PACKAGE = Path(sglb.__file__).parent
REPOSITORY = Path(__file__).parent.parent

# From the street to the cellar. A room may import every room on a lower floor.
FLOORS = [
    {"cli", "dask", "experiments", "integrations", "mpi", "peers", "plots"},
    {"estimators"},
    {"checkpoints"},
    {"archive"},
    {"outcomes"},
    {"posterior", "prepare"},
    {"model"},
    {"chains", "recipe", "tempering"},
    {"boosting", "defaults", "folds", "rates", "settings", "uncertainty"},
    {"callbacks", "chain", "cluster"},
    {"growth", "metrics", "replay", "shard"},
    {"rows"},
    {"capacity", "ranking_metrics", "thresholds"},
    {"slopes"},
    {"trace", "leaves"},
    {"losses", "samplers", "structure"},
    {"schedules"},
    {"parquet"},
    {"pages", "totals"},
    {"training_set"},
    {"code_layout"},
    {"bins", "bundles", "categories", "conformal", "likelihood", "scaling", "transition"},
    {"datasets", "frame", "gains", "labels", "layouts", "noise", "tables", "target"},
    {"costs", "elementary", "queries", "row_numbers", "sums"},
    {"calibration", "diagnostics", "distributions"},
    {"tasks", "weights"},
    {"_core", "caching", "columns", "errors", "files", "held", "threads"},
]

# Doors between rooms of one floor, one way only.
DOORS = {
    ("cli", "experiments"),
    ("experiments", "plots"),
    ("settings", "defaults"),
    ("settings", "rates"),
    ("rates", "defaults"),
    ("datasets", "tables"),
    ("categories", "bins"),
    ("frame", "labels"),
    ("frame", "layouts"),
    ("layouts", "labels"),
}

# Each of these can be replaced without a look at the others.
STRANGERS = {"losses", "samplers", "metrics"}

# Packages that need not be installed, and the rooms that cannot do without them.
OPTIONAL = {
    "IPython", "arviz", "catboost", "dask", "distributed", "lightgbm", "matplotlib", "mlflow",
    "mpi4py", "optuna", "pandas", "polars", "pyarrow", "rich", "typer", "xgboost",
}  # fmt: skip
NEED_OPTIONAL = {"cli", "dask", "experiments", "mpi", "parquet", "tables"}
# Rooms that import them inside a function, when they are asked for what needs them.
ASK_LATE = {
    ("callbacks", "IPython"),
    ("callbacks", "rich"),
    ("datasets", "pyarrow"),
    ("estimators", "arviz"),
    ("integrations", "mlflow"),
    ("integrations", "optuna"),
    ("peers", "xgboost"),
    ("plots", "matplotlib"),
}
# Used only if the program that runs, or the model passed in, is theirs: nobody has to install them.
PRESENT_OR_UNUSED = {"IPython", "xgboost"}

# Extras that users install.
OPTIONS = ("cli", "dask", "integrations", "mpi", "paper")
IMPORT_NAMES = {"scikit-learn": {"sklearn"}, "mlflow-skinny": {"mlflow"}}


# Rooms that were made for the command line: `tables` by its exported names, `experiments` as it is.
FOR_THE_COMMAND_LINE = {"cli", "experiments"}


class Import(NamedTuple):
    room: str  # who imports
    target: str  # a dotted module
    late: bool  # inside a function
    names: tuple[str, ...] = ()  # what is taken from the module, none if it is the module itself

    @property
    def package(self):
        return self.target.split(".")[0]


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py").removesuffix(".pyi")


def home_of(name):
    """The module below sglb that a name imported from sglb comes from."""
    return f"{sglb._HOMES[name]}.{name}" if name in sglb._HOMES else name


def walk(node, late=False):
    """Every import statement below a node that runs, and whether a function holds it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        else:
            yield from walk(child, late or isinstance(child, ast.FunctionDef))


def imports():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node, late in walk(ast.parse(path.read_text())):
            names = tuple(alias.name for alias in node.names)
            if isinstance(node, ast.Import):
                targets = [(name, ()) for name in names]
            elif node.module == "sglb":
                targets = [(f"sglb.{home_of(name)}", ()) for name in names]
            else:
                assert node.level == 0, f"{path}: imports are absolute"
                targets = [(node.module, names)]
            for target, taken in targets:
                yield Import(room_of(path), target, late, taken)


IMPORTS = list(imports())
INSIDE = [i for i in IMPORTS if i.package == "sglb" and i.room != "__init__"]
OUTSIDE = [i for i in IMPORTS if i.package != "sglb" and i.package not in sys.stdlib_module_names]
PUBLIC_TARGETS = {f"sglb.{home_of(name)}" for name in sglb.__all__}
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def test_the_picture_shows_every_room():
    rooms = {room_of(path) for path in PACKAGE.rglob("*.py*") if path.suffix in {".py", ".pyi"}}
    assert rooms - {"__init__"} == FLOOR.keys()


def test_every_import_goes_down_or_through_a_door():
    for i in INSIDE:
        target = i.target.split(".")[1]
        assert target in FLOOR, f"{i.room} imports {i.target}, which is not a room"
        down = FLOOR[i.room] < FLOOR[target]
        assert down or i.room == target or (i.room, target) in DOORS, f"{i.room} imports {target}"


def test_every_door_is_used_and_joins_rooms_of_one_floor():
    used = {(i.room, i.target.split(".")[1]) for i in INSIDE}
    for room, other in DOORS:
        assert FLOOR[room] == FLOOR[other]
        assert (room, other) in used
        assert (other, room) not in DOORS


def test_integrations_stand_on_public_names_alone():
    others = {i.target for i in INSIDE if i.room == "integrations"} - PUBLIC_TARGETS
    assert {target.split(".")[1] for target in others} == {"integrations"}


def is_public(i):
    """Whether an import by the command line is of public names or of a room made for it."""
    if any(name.startswith("_") for name in i.names):
        return False
    if i.target == "sglb.tables":
        return set(i.names) <= set(tables.__all__)
    return i.target in PUBLIC_TARGETS or i.target.split(".")[1] in FOR_THE_COMMAND_LINE


def test_the_command_line_stands_on_public_names_and_its_own_rooms():
    imports_of_cli = [i for i in INSIDE if i.room == "cli"]
    assert {"sglb.tables", "sglb.estimators.load"} <= {i.target for i in imports_of_cli}
    for i in imports_of_cli:
        assert is_public(i), f"cli imports {i.target} {i.names}"


@pytest.mark.parametrize(
    "i",
    [
        Import("cli", "sglb.settings", True, ("n_threads",)),
        Import("cli", "sglb.tables.dates", False, ("split_dates",)),
        Import("cli", "sglb.tables", False, ("reading",)),
        Import("cli", "sglb.metrics", False, ("_auc",)),
    ],
)
def test_internals_are_not_public(i):
    assert not is_public(i)


def test_the_command_line_reads_no_private_attribute():
    for path in (PACKAGE / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and not node.attr.endswith("__"):
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                private = node.attr.startswith("_") and owner not in {"self", "cls"}
                assert not private, f"{path.name}: {ast.unparse(node)}"


def test_losses_samplers_and_metrics_never_import_one_another():
    for i in INSIDE:
        target = i.target.split(".")[1]
        assert not (i.room in STRANGERS and target in STRANGERS - {i.room}), i


def test_only_the_frame_knows_narwhals():
    assert {i.room for i in OUTSIDE if i.package == "narwhals"} == {"frame"}


def test_only_the_bindings_know_python():
    knowing = {
        path.parent.name
        for path in (REPOSITORY / "src").glob("*/*.*")
        if path.suffix in {".h", ".cpp"}
        and re.search(r"#include\s*<(nanobind|Python\.h)", path.read_text())
    }
    assert knowing == {"bindings"}


def test_optional_packages_are_imported_only_where_they_may_be():
    for i in OUTSIDE:
        if i.package in OPTIONAL and i.room not in NEED_OPTIONAL:
            assert i.late, f"{i.room} imports {i.package} at once"
            assert (i.room, i.package) in ASK_LATE, f"{i.room} imports {i.package}"


def test_what_only_a_few_need_is_asked_for_late():
    for i in OUTSIDE:
        few = i.package in {"arviz", "catboost", "mlflow", "optuna", "xgboost"}
        assert i.late or not few, f"{i.room} imports {i.package}"


def test_nothing_below_the_estimators_needs_a_room_that_needs_an_option():
    for i in INSIDE:
        needs = i.target.split(".")[1] in NEED_OPTIONAL
        assert not needs or i.late or i.room in NEED_OPTIONAL, i


def test_every_package_imported_is_declared():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]

    def names(requirements):
        bare = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
        return set().union(*(IMPORT_NAMES.get(name, {name}) for name in bare))

    always = names(project["dependencies"])
    extras = project["optional-dependencies"]
    options = names([name for extra in OPTIONS for name in extras[extra]]) | PRESENT_OR_UNUSED
    for i in OUTSIDE:
        allowed = always | options if i.package in OPTIONAL else always
        assert i.package in allowed, f"{i.room} imports {i.package}"


def run(script, tmp_path):
    """Run a script in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_imports_nothing_heavy(tmp_path):
    script = """
        import sys
        import sglb
        print(sorted({"numpy", "scipy", "sklearn", "rich"} & set(sys.modules)))
    """
    assert run(script, tmp_path) == "[]"


def test_models_are_fitted_and_saved_without_any_optional_package(tmp_path):
    script = f"""
        import sys

        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in {sorted(OPTIONAL)}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

        sys.meta_path.insert(0, Missing())
        import numpy as np
        import sglb

        X = np.random.default_rng(0).normal(size=(200, 3))
        for model, y in (
            (sglb.SGLBRegressor(n_estimators=20, verbose=1), X[:, 0]),
            (sglb.SGLBClassifier(n_estimators=20), X[:, 0] > 0),
        ):
            model.fit(X, y, eval_set=[(X, y)])
            model.save("model.sglb")
            same = sglb.load("model.sglb").predict(X) == model.predict(X)
            print(bool(np.all(same)), model.score(X, y) > 0.5)
    """
    assert run(script, tmp_path).split() == ["True"] * 4


def test_no_code_asks_for_a_loss_a_link_or_a_sampler_by_its_name():
    """What depends on them are their properties: `Loss`, `Link`, and `Preset` of samplers."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                of_name = any(re.search(r"(loss|link)_?\.name$", ast.unparse(s)) for s in sides)
                of_sampler = any(getattr(side, "value", "") in SAMPLERS for side in sides)
                of_sampler &= "sampler" in ast.unparse(node) or room_of(path) == "rates"
                assert not of_name | of_sampler, f"{path.name}: {ast.unparse(node)}"


def test_a_new_sampler_is_a_file_and_a_line():
    names = {name for name in SAMPLERS if f'"{name}"' in (PACKAGE / "rates.py").read_text()}
    names -= {"langevin", "annealed"}  # advice of a message
    assert not names
    for name, preset in SAMPLERS.items():
        assert preset is import_module(f"sglb.samplers.{name}").PRESET
        assert preset.uses <= set(samplers.OPTIONAL)
        assert preset.for_barriers in {None, *SAMPLERS}


MOST_PARAMETERS, MOST_LINES = 8, 60
# Every further parameter is an option that users type: arguments of fit, keywords of a figure or of
# a posterior, options of a command. Constructors of estimators are excepted too.
USERS_OPTIONS = {
    "cli/app.py train",
    "cli/paper.py logloss",
    "cli/paper.py synthetic",
    "cli/paper.py zero_one",
    "estimators/base.py fit",
    "estimators/classifier.py __init__",
    "estimators/classifier.py fit",
    "estimators/ranker.py __init__",
    "estimators/ranker.py fit",
    "estimators/regressor.py __init__",
    "peers/source.py posterior_of",
    "plots/calibration.py fan_chart",
    "plots/draws.py partial_dependence_posterior",
}


def functions():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(PACKAGE).as_posix()} {node.name}", node


def test_functions_are_short_and_have_few_parameters():
    many = set()
    for name, node in functions():
        assert node.end_lineno - node.lineno < MOST_LINES, name
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if len([a for a in arguments if a.arg not in {"self", "cls"}]) > MOST_PARAMETERS:
            many.add(name)
    assert many == USERS_OPTIONS


MOST_LINES_OF_A_FILE = {".py": 400, ".h": 300, ".cpp": 300}


def test_files_are_short():
    for folder in ("src/sglb", "src/core", "src/bindings"):
        for path in (REPOSITORY / folder).rglob("*.*"):
            most = MOST_LINES_OF_A_FILE.get(path.suffix)
            if most is not None:
                n_lines = len(path.read_text().splitlines())
                assert n_lines <= most, f"{path.name} has {n_lines} lines"


# Definitions begin without an indentation, or with that of a class, and end with a brace below.
DEFINITION = re.compile(
    r"^( {4})?(?!namespace|class|struct|enum|union|extern)[\w:<>*&~, ]*\b(?P<name>\w+)\([^;{}]*\)"
    r"(?: const| noexcept)*(?:\s*:[^;{}]*)?\s*\{\n.*?^(?(1) {4})\}$",
    re.M | re.S,
)
KEYWORDS = {"for", "if", "switch", "while"}


def definitions():
    """Name and lines of every function of the core and its bindings."""
    for path in sorted((REPOSITORY / "src").glob("*/*.*")):
        if path.suffix in {".h", ".cpp"}:
            for match in DEFINITION.finditer(path.read_text()):
                if match["name"] not in KEYWORDS:
                    yield f"{path.parent.name}/{path.name} {match['name']}", match[0].splitlines()


def test_functions_of_the_core_are_short():
    functions_of_the_core = list(definitions())
    assert len(functions_of_the_core) > 500
    for name, lines in functions_of_the_core:
        assert len(lines) <= MOST_LINES, f"{name} has {len(lines)} lines"


def test_kernels_have_few_parameters():
    for node in ast.walk(ast.parse((PACKAGE / "_core.pyi").read_text())):
        if isinstance(node, ast.FunctionDef):
            names = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)} - {"self", "cls"}
            assert len(names) <= MOST_PARAMETERS, node.name


# A loss and the distribution that it is minus the log likelihood of; estimators, and those on a
# cluster.
SAME_NAME = {"Gamma", "Poisson", "Tweedie"} | {"SGLBClassifier", "SGLBRanker", "SGLBRegressor"}


def test_no_two_classes_have_the_same_name():
    homes = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.name)
    assert {name for name, files in homes.items() if len(files) > 1} == SAME_NAME


# Pronouns and participles, which name nothing (CONTRIBUTING, Vocabulary).
NO_NAMES = {"found", "given", "it", "one", "own", "place", "some", "them", "there", "told", "what"}


@pytest.mark.parametrize("folder", ["src/sglb", "benchmarks", "tests"])
def test_names_are_nouns(folder):
    for path in sorted((REPOSITORY / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            fields = ("id", "arg", "attr", "name")
            names = {getattr(node, field, None) for field in fields} & NO_NAMES
            names -= {"given"} if folder == "tests" else set()  # Hypothesis
            assert not names, f"{path.name}:{node.lineno}: {names}"


# Where users state weights, or none; everywhere else rows without a weight weigh 1.
WEIGHTS_ARE_READ = {"cli", "datasets", "frame", "weights"}


def test_weights_and_classes_are_never_none_inside():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
                left = ast.unparse(node.left).split(".")[-1]
                optional = {"weight", "weights", "kernel_weight", "classes"}
                allowed = left not in optional or room_of(path) in WEIGHTS_ARE_READ
                assert allowed, f"{path.name}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("name", sorted(set(sglb.__all__)))
def test_every_public_name_exists(name):
    assert getattr(sglb, name) is not None


def test_the_public_names_are_what_dir_lists():
    assert set(sglb.__all__) == set(dir(sglb))
    assert sglb.__version__[0].isdigit()


def test_public_modules_are_imported_when_only_sglb_is(tmp_path):
    script = """
        import sglb
        print(sglb.integrations.OptunaPruning.__name__, sglb.losses.Huber.__name__)
        print(sglb.metrics.METRICS["auc"].name, sglb.plots.save.__name__)
    """
    assert run(script, tmp_path).split() == ["OptunaPruning", "Huber", "auc", "save"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SGLBForest", "no attribute 'SGLBForest'$"),
    ],
)
def test_a_name_that_does_not_exist_is_a_missing_attribute(name, message):
    assert not hasattr(sglb, name)
    with pytest.raises(AttributeError, match=message):
        getattr(sglb, name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}'"):
        exec(f"from sglb import {name}")
