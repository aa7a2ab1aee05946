"""What `import sglb` offers, and what it does not need."""

import subprocess
import sys

import pytest

import sglb


def test_every_public_name_is_there():
    for name in sglb.__all__:
        assert getattr(sglb, name) is not None
    assert set(sglb.__all__) == set(dir(sglb))
    assert sglb.__version__[0].isdigit()


def test_ranking_is_announced_as_not_available_yet():
    with pytest.raises(ImportError, match="ranking is not available yet"):
        from sglb import SGLBRanker  # noqa: F401
    with pytest.raises(AttributeError, match="no attribute 'SGLBForest'"):
        _ = sglb.SGLBForest


def test_importing_the_library_imports_nothing_else():
    code = "import sys, sglb; print(sorted(set(sys.modules) & {'numpy', 'sklearn', 'rich'}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_public_modules_are_there_when_only_sglb_is_imported():
    code = "import sglb; sglb.integrations.OptunaPruning, sglb.losses.Huber, sglb.plots.save"
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_training_needs_none_of_the_optional_libraries():
    code = (
        "import sys;"
        "sys.modules.update({name: None for name in ('rich', 'matplotlib', 'typer', 'pyarrow')});"
        "import numpy as np; from sglb import SGLBRegressor; x = np.arange(20.0)[:, None];"
        "SGLBRegressor(n_estimators=3, verbose=1).fit(x, x[:, 0]).predict(x)"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
