"""One table of options: each is a parameter of the estimators, and errors speak of options."""

import inspect

import pytest
from typer.main import get_command

from sglb import SGLBClassifier, SGLBRegressor, load
from sglb.cli.app import app
from sglb.cli.options import MODEL, RENAMED, TABLE, SamplerName
from sglb.cli.wording import in_options
from sglb.samplers import SAMPLERS
from sglb.tables import Dialect
from shell import SMALL, done, rejected, sglb


def parameters(kind):
    return {name for name in inspect.signature(kind).parameters if name != "self"}


def options(command):
    params = get_command(app).commands[command].params
    return {flag for parameter in params for flag in parameter.opts}


def test_every_parameter_of_the_estimators_is_an_option():
    assert parameters(SGLBClassifier) | parameters(SGLBRegressor) == {*MODEL, *RENAMED}
    assert {f"--{name.replace('_', '-')}" for name in MODEL} <= options("train")
    assert set(RENAMED.values()) <= options("train")


def test_every_sampler_by_name_is_a_value_of_the_option():
    assert [name.value for name in SamplerName] == list(SAMPLERS)


@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
def test_every_command_that_reads_a_table_has_the_options_of_its_format(command):
    assert {f"--{name.replace('_', '-')}" for name in TABLE} <= options(command)
    fields = {name.removesuffix("s") for name in Dialect.__dataclass_fields__}
    assert {name.removesuffix("s") for name in TABLE} == fields


GIVEN = {
    "loss": ("savage", "savage"),
    "quantile": ("0.9", 0.9),
    "tweedie_power": ("1.3", 1.3),
    "n_estimators": ("12", 12),
    "learning_rate": ("0.2", 0.2),
    "max_depth": ("2", 2),
    "max_bins": ("9", 9),
    "sampler": ("hamiltonian", "hamiltonian"),
    "temperature": ("0.01", 0.01),
    "shrink_rate": ("0", 0.0),
    "friction": ("0.2", 0.2),
    "structure_noise": ("0.5", 0.5),
    "subsample": ("0.5", 0.5),
    "structure_sample": ("150", 150),
    "random_strength": ("0.1", 0.1),
    "leaf_method": ("gradient", "gradient"),
    "leaf_steps": ("1", 1),
    "l2_regularization": ("2", 2.0),
    "init": ("zero", "zero"),
    "class_weight": ("balanced", "balanced"),
    "n_chains": ("2", 2),
    "uncertainty": ("", True),  # a flag
    "early_stopping_rounds": ("7", 7),
}
OF_NUMBERS = {"loss": ("quantile", "quantile")}
# Parameters of a single loss, tested with it.
OF_ONE_LOSS = {"tweedie_power"}


@pytest.mark.parametrize(
    ("kind", "target", "typed", "metric"),
    [
        (SGLBClassifier, "label", GIVEN, "auc"),
        (SGLBRegressor, "number", GIVEN | OF_NUMBERS, "mae"),
    ],
)
def test_train_passes_every_option_on(folder, kind, target, typed, metric):
    assert typed.keys() >= MODEL.keys()
    passed = parameters(kind) - OF_ONE_LOSS
    typed = {name: value for name, value in typed.items() if name in passed}
    words = [word for n, (text, _) in typed.items() for word in (f"--{n.replace('_', '-')}", text)]
    words = [word for word in words if word]
    words += ["--seed", "7", "--jobs", "1", "--valid-fraction", "0.2", "--eval-metric", metric]
    message = done("train", "train.csv", "-t", target, "-m", "m.sglb", "-q", *words)
    model = load("m.sglb")
    assert type(model) is kind
    stored = model.get_params()
    for name, (_, value) in typed.items():
        assert (name, stored[name]) == (name, value)
        assert type(stored[name]) is type(value)
    assert stored["random_state"] == 7
    assert f"trees: {metric} " in message


def test_automatic_values_may_be_stated(folder):
    names = ["learning-rate", "max-depth", "max-bins", "temperature", "leaf-steps", "leaf-method"]
    words = [word for name in names for word in (f"--{name}", "auto")]
    done("train", "train.csv", "-t", "label", "-m", "m.sglb", "-q", *words, "--n-estimators", 2)
    assert load("m.sglb").get_params()["temperature"] == "auto"


def test_rates_may_be_schedules(folder):
    words = ["--sampler", "hamiltonian", "--friction", ".2", "--temperature", "geometric(1,1e-4)"]
    words += ["--learning-rate", "cosine(.1, .01)", "--n-estimators", 10, "-q"]
    done("train", "train.csv", "-t", "label", "-m", "m.sglb", *words)
    model = load("m.sglb")
    assert model.get_params()["temperature"] == "geometric(1,1e-4)"
    assert model.trace_.temperatures[5] == pytest.approx(1e-2)


def test_a_share_of_the_rows_is_a_fraction_and_a_number_of_them_is_whole(folder):
    common = ["train", "train.csv", "-t", "label", "-m", "m.sglb", *SMALL]
    done(*common, "--structure-sample", "0.5")
    assert load("m.sglb").structure_sample == 0.5


def write_counts(folder):
    rows = [f"{row},{row % 4}" for row in range(40)]
    (folder / "counts.csv").write_text("\n".join(["a,y", *rows]) + "\n")


def test_the_loss_decides_the_task(folder):
    write_counts(folder)
    common = ["train", "counts.csv", "-t", "y", "-m", "m.sglb", *SMALL]
    assert "task: regression (--loss poisson)" in done(*common, "--loss", "poisson")
    assert "task: classification (4 different whole numbers)" in done(*common)
    message = done(*common[:3], "a", *common[4:], "--loss", "softmax", "--n-estimators", 2)
    assert "task: classification (--loss softmax)" in message


def test_the_power_of_tweedie_is_passed_on(folder):
    write_counts(folder)
    words = ["--loss", "tweedie", "--tweedie-power", GIVEN["tweedie_power"][0]]
    done("train", "counts.csv", "-t", "y", "-m", "m.sglb", *SMALL, *words)
    assert load("m.sglb").loss_.power == GIVEN["tweedie_power"][1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--loss", "poisson", "--task", "classification"],
            "error: --loss poisson is for regression; use --task regression",
        ),
        (
            ["--loss", "logistic", "--task", "regression"],
            "error: --loss logistic is for classification; use --task classification",
        ),
        (["--loss", "savage"], "use --loss softmax"),
        (["--task", "regression", "--class-weight", "balanced"], "--class-weight has no effect in"),
        (["--leaf-method", "gradient", "--leaf-steps", "3"], "--leaf-steps 3 needs --leaf-method"),
        (
            ["--sampler", "plain", "--temperature", "1"],
            "--temperature 1.0 has no effect: --sampler",
        ),
        (
            ["--valid-fraction", "0.2", "--eval-metric", "best"],
            "--eval-metric best is not a metric",
        ),
        (["--eval-metric", "auc"], "--eval-metric needs --valid or --valid-fraction"),
        (["--max-depth", "2.5"], "'2.5' is neither a whole number nor auto"),
        (["--learning-rate", "fast"], "'fast' is neither a number nor auto"),
        (["--learning-rate", "sine(1)"], "--learning-rate sine(1) is not allowed; use 'auto'"),
        (["--init", "nowhere"], "Invalid value for '--init'"),
        (["--separator", "::"], "--separator must be one character"),
    ],
)
def test_errors_name_options(folder, words, message):
    write_counts(folder)
    error = rejected("train", "counts.csv", "-t", "y", "-m", "m.sglb", *SMALL, *words)
    assert message in error
    for word in ("SGLB", "=", "_"):
        assert word not in error


@pytest.mark.filterwarnings("default")
def test_warnings_name_options(folder):
    rows = [f"{row},{1000 + row},{row % 2}" for row in range(40)]
    (folder / "t.csv").write_text("\n".join(["a,w,y", *rows]) + "\n")
    result = sglb("train", "t.csv", "-t", "y", "-m", "m.sglb", "--weight", "w", *SMALL)
    assert result.exit_code == 0
    assert "warning: --weight has the mean" in result.stderr


def test_words_that_are_not_parameters_stay():
    message = "the loss gives NaN there; the subsample and init are fine, learning_rate is not"
    assert in_options(message) == message.replace("learning_rate", "--learning-rate")


def test_the_help_of_temperature_states_the_limits_of_uncertainty():
    message = " ".join(done("train", "--help").split())
    assert "Low temperatures, the default, are for accuracy" in message
    assert "its uncertainty should not be trusted yet" in message


@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
def test_the_help_fits_80_columns_and_groups_options(command):
    message = done(command, "--help")
    assert max(map(len, message.splitlines())) <= 80
    assert "Reading text files (detected by default):" in message
