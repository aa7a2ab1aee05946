"""The package as others get it: a wheel for old processors, installed into an empty environment.

The environment's packages come from the index.
"""

import json
import os
import subprocess
import sys
import textwrap
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel

REPOSITORY = Path(__file__).parent.parent


def run(*command, cwd):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build_wheel(folder, *options):
    # A build directory of its own: the editable install's must not be touched.
    here = f"--config-settings=build-dir={folder / 'build'}"
    wheels = folder / "wheels"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps")
    run(*pip, "--wheel-dir", wheels, here, *options, REPOSITORY, cwd=folder)
    (wheel,) = wheels.glob("*.whl")
    return wheel


TRAIN = """
    import json
    import numpy as np
    import sglb
    from sglb import _core, SGLBClassifier, SGLBRegressor, load
    X = np.random.default_rng(0).normal(size=(500, 4))
    model = SGLBClassifier(n_estimators=50, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    model.save("model.sglb")
    accuracy = load("model.sglb").score(X, X[:, 0] * X[:, 1] > 0)
    r2 = SGLBRegressor(n_estimators=50, random_state=0).fit(X, X[:, 0]).score(X, X[:, 0])
    print(json.dumps([sglb.__file__, _core.__file__, accuracy > 0.8, r2 > 0.5]))
"""


def check_environment(wheel, tmp_path):
    """Install a wheel where nothing else is, and train."""
    files = zipfile.ZipFile(wheel).namelist()
    assert {"sglb/py.typed", "sglb/_core.pyi", "sglb/__init__.py"} <= set(files)
    assert not [name for name in files if not name.startswith(("sglb/", "sglb-"))]
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, wheel, cwd=tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    answer = run(python, "-c", textwrap.dedent(TRAIN), cwd=outside)
    package, core, *good = json.loads(answer)
    assert Path(package).is_relative_to(environment)
    assert Path(core).is_relative_to(environment)
    assert good == [True, True]


DIGEST = """
    import hashlib, importlib.util, sys
    import numpy as np
    import sglb
    if len(sys.argv) > 1:
        spec = importlib.util.spec_from_file_location("sglb._core", sys.argv[1])
        core = importlib.util.module_from_spec(spec)
        sys.modules["sglb._core"] = sglb._core = core
        spec.loader.exec_module(core)
    from sglb import _core
    from sglb.boosting import boost
    from sglb.chain import Chain
    from sglb.shard import Shard
    from sglb.target import Target
    from sglb.leaves import LeafRule
    from sglb.bins import Bins
    from sglb.trace import Trace
    from sglb.losses import LOSSES, get_loss
    from sglb.samplers import Langevin
    from sglb.structure import GreedySearch
    from sglb import elementary, sums
    from sglb.training_set import TrainingSet
    assert len(sys.argv) == 1 or _core.__file__ == sys.argv[1]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1003, 5))
    bins = Bins.fit(X, 32)
    y = (X[:, 0] + X[:, 1] > 0).astype(float)
    for name in LOSSES:
        y = (X[:, 0] + X[:, 1] > 0) + 0.5 * (name == "gamma")
        width = {"width": 0.1} if name in ("absolute", "quantile") else {}
        loss = get_loss(name, n_classes=2, **width)
        for method in ("gradient", "newton") if loss.has_hessian else ("gradient",):
            data = TrainingSet.build(bins.encode(X), bins.n_codes, Target.of(y, 0.5 + y))
            trace = Trace(bins, 5, np.zeros(loss.n_outputs))
            rows = Shard.start(data, loss, trace, newton=method == "newton")
            sampler, leaves = Langevin(0.1, 1.0, 0.01, subsample=0.8), LeafRule(method)
            boost(Chain(rows, sampler, GreedySearch(5), leaves, trace, seed=1), 20)
            digest = hashlib.sha256(trace.predict(X).tobytes())
            for array in trace.arrays().values():
                digest.update(array.tobytes())
            print(name, method, digest.hexdigest())
        # What a chain starts from, and what it is stopped and chosen by.
        weight, raw = 0.5 + X[:, 4] ** 2, np.ascontiguousarray(X[:, : loss.n_outputs])
        values = loss.loss(y, raw[:, 0] if loss.n_outputs == 1 else raw)
        numbers = [*loss.init(Target.of(y, weight)), sums.mean(values, weight), sums.total(values)]
        print(name, [float(number).hex() for number in numbers])
    for function in (elementary.exp, elementary.log, elementary.log1p, elementary.expm1):
        x = np.concatenate([function(scale * np.abs(X)) for scale in (1e-3, 1.0, 1e2)])
        print(hashlib.sha256(x.tobytes()).hexdigest())
    print(sums.total(X * np.exp(20.0 * X)).hex())
"""


# One wheel serves both, because a build takes most of a minute: for old processors, and with less
# optimisation, on which no bit must depend either.
OPTIONS = [
    f"--config-settings=cmake.define.{option}"
    for option in ("SGLB_BASELINE=ON", "SGLB_OPTIMISE=-O1")
]


def test_a_wheel_works_in_an_empty_environment_and_gives_the_same_bits(tmp_path):
    wheel = build_wheel(tmp_path, *OPTIONS)
    check_environment(wheel, tmp_path)
    zipfile.ZipFile(wheel).extractall(tmp_path)
    (core,) = (tmp_path / "sglb").glob("_core*.so")
    script = textwrap.dedent(DIGEST)
    expected = run(sys.executable, "-c", script, cwd=tmp_path.parent)
    assert len(expected.splitlines()) >= 11
    assert run(sys.executable, "-c", script, core, cwd=tmp_path.parent) == expected
