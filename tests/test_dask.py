"""Training on a Dask cluster gives the model of one machine, bit for bit, and leaves nothing."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
from dask.distributed import Client  # noqa: E402
from distributed.security import Security  # noqa: E402

import sglb.dask  # noqa: E402
from dask_clusters import (  # noqa: E402
    CUTS,
    cluster,
    in_partitions,
    leaving_nothing,
    parts_of,
    served,
)
from own_losses import Squared  # noqa: E402
from sglb import Checkpoint, SGLBClassifier, SGLBRanker, SGLBRegressor  # noqa: E402
from sglb.cluster.raw import RawPiece  # noqa: E402
from sglb.parquet.files import list_files  # noqa: E402
from test_held import awkward_frame, fitted, model_bytes, with_levels  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


def on_cluster(kind, X, y, *arguments, **options):
    return fitted(getattr(sglb.dask, kind.__name__), X, y, *arguments, **options)


def labelled():
    frame, y, rng = awkward_frame(one_hot=3)
    return with_levels(frame, rng), y, rng


def numbers():
    frame, y, _ = awkward_frame(one_hot=6)
    return SGLBRegressor, frame, y, {}


def categories():
    frame, y, _ = labelled()
    return SGLBClassifier, frame, np.where(y > 0, "yes", "no"), {}


def several_classes():
    frame, y, rng = labelled()
    weight = rng.integers(0, 3, len(y)).astype(float)
    classes = np.digitize(y, [-1.0, 0.5])
    fit = {"sample_weight": weight, "eval_set": [(frame[:100], classes[:100])]}
    settings = {"n_estimators": 40, "early_stopping_rounds": 3, "learning_rate": 0.5}
    return SGLBClassifier, frame, classes, {"fit": fit} | settings


def rankings():
    frame, y, _ = awkward_frame()
    group = np.searchsorted([*CUTS[2:], 500, 600], np.arange(700), "right")
    group[0] = 99
    return SGLBRanker, frame, np.digitize(y, [0, 1, 2]), {"fit": {"group": group}}


def chains():
    frame, y, _ = awkward_frame()
    return SGLBRegressor, frame, y, {"n_chains": 2, "n_jobs": 2}


KINDS = [numbers, categories, several_classes, rankings, chains]


def lazily(value):
    """A lazy collection of what is read: arrays and frames, also those in lists and tuples."""
    if isinstance(value, list | tuple):
        return type(value)(map(lazily, value))
    if isinstance(value, pd.DataFrame):
        return dd.from_pandas(value, npartitions=2, sort=False)
    return da.from_array(value, chunks=123)


@pytest.mark.parametrize("kind", KINDS)
def test_models_are_those_of_one_machine(client, kind):
    estimator, frame, y, options = kind()
    expected = fitted(estimator, frame, y, **dict(options))
    with leaving_nothing(client):
        X = in_partitions(frame)
        result = on_cluster(estimator, X, y, **dict(options))
    assert model_bytes(result) == model_bytes(expected)
    assert isinstance(pickle.loads(pickle.dumps(result)), estimator)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_any_number_of_workers_gives_the_same_model(n_workers):
    with cluster(n_workers) as client:
        for kind in (categories, rankings):
            estimator, frame, y, options = kind()
            expected = fitted(estimator, frame, y, **dict(options))
            result = on_cluster(estimator, in_partitions(frame), y, **dict(options))
            assert model_bytes(result) == model_bytes(expected)
        assert len(client.scheduler_info()["workers"]) == n_workers


def test_workers_may_share_a_process_and_be_shut_off_from_the_client(monkeypatch):
    monkeypatch.setattr("sglb.dask.comm._reaches", lambda client, address: False)
    estimator, frame, y, _ = numbers()
    with cluster(3, processes=False) as client:
        result = on_cluster(estimator, in_partitions(frame), y, fit={"client": client})
    assert model_bytes(result) == model_bytes(fitted(estimator, frame, y))


def test_coding_may_take_longer_than_an_answer(monkeypatch):
    def slowly(*arguments, encode=RawPiece.encode):
        time.sleep(1.0)
        return encode(*arguments)

    monkeypatch.setattr(RawPiece, "encode", slowly)
    estimator, frame, y, _ = numbers()
    with cluster(1, processes=False) as client:
        fit = {"client": client, "timeout": 2.0, "max_failures": 0}
        result = on_cluster(estimator, in_partitions(frame), y, fit=fit)
    assert model_bytes(result) == model_bytes(fitted(estimator, frame, y))


def test_an_encrypted_cluster():
    pytest.importorskip("cryptography")
    estimator, frame, y, _ = numbers()
    with cluster(2, security=Security.temporary(), protocol="tls") as client:
        assert client.scheduler.address.startswith("tls://")
        result = on_cluster(estimator, in_partitions(frame), y)
    assert model_bytes(result) == model_bytes(fitted(estimator, frame, y))


def test_targets_weights_and_evaluation_sets_may_be_collections(client):
    estimator, frame, y, options = several_classes()
    expected = fitted(estimator, frame, y, **dict(options))
    options["fit"] = {name: lazily(value) for name, value in options["fit"].items()}
    result = on_cluster(estimator, in_partitions(frame), lazily(y), **options)
    assert model_bytes(result) == model_bytes(expected)
    assert result.evals_result_ == expected.evals_result_


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_arrays_in_blocks_of_rows_and_columns(client, dtype):
    frame, y, _ = awkward_frame()
    X = (10 * frame.fillna(0.0).to_numpy()).astype(dtype)
    blocks = da.from_array(X, chunks=((1, 299, 400), (2, 3)))
    result = on_cluster(SGLBRegressor, blocks, y)
    assert model_bytes(result) == model_bytes(fitted(SGLBRegressor, X, y))
    predicted = result.predict(blocks)
    assert predicted.chunks == ((1, 299, 400),)
    assert np.array_equal(predicted.compute(), result.predict(X))


class Places:
    """Writes down which pieces are on which workers when training starts."""

    def __init__(self, client):
        self.client, self.homes = client, {}

    def start(self, info):
        held = served(self.client)
        self.homes = {n: a for a, servers in held.items() for each in servers for n in each}

    def step(self, info): ...

    def finish(self, info): ...


def test_partitions_stay_where_they_are_in_any_order_of_the_workers(client):
    frame, y, _ = awkward_frame()
    workers, places = list(client.scheduler_info()["workers"]), Places(client)
    chosen = [workers[k] for k in (1, 0, 0, 1, 1)]
    held = [
        client.scatter(part, workers=[worker])
        for part, worker in zip(parts_of(frame), chosen, strict=True)
    ]
    X = dd.from_delayed(held, meta=frame.iloc[:0], verify_meta=False)
    result = on_cluster(SGLBRegressor, X, y, fit={"callbacks": [places], "client": client})
    assert [places.homes[k] for k in range(5)] == chosen
    assert model_bytes(result) == model_bytes(fitted(SGLBRegressor, frame, y))
    persisted = X.persist()
    result = on_cluster(SGLBRegressor, persisted, y)
    assert model_bytes(result) == model_bytes(fitted(SGLBRegressor, frame, y))


def test_a_folder_of_parquet_with_columns_by_name(client, tmp_path):
    frame, y, rng = labelled()
    weight = rng.uniform(0.5, 2.0, len(y))
    for k, part in enumerate(parts_of(frame.assign(y=y, weight=weight), (300, 420))):
        part.to_parquet(tmp_path / f"{k}.parquet")
    result = on_cluster(SGLBRegressor, tmp_path, "y", fit={"sample_weight": "weight"})
    assert model_bytes(result) == model_bytes(fitted(SGLBRegressor, frame, y, weight))
    predicted = result.predict(tmp_path)  # y and weight are columns there, too
    assert isinstance(predicted, da.Array)
    assert np.array_equal(predicted.compute(), result.predict(frame))
    lean = tmp_path / "lean.parquet"
    frame.drop(columns="many").to_parquet(lean)
    with pytest.raises(ValueError, match=r"has no columns \['many'\], which the model was"):
        result.predict(lean)
    with pytest.raises(ValueError, match=r"y must be the name of a column .* got 'z'.*'weight'"):
        on_cluster(SGLBRegressor, tmp_path, "z")


def test_the_first_example_of_the_documentation_runs(client, tmp_path, monkeypatch):
    page = (Path(__file__).parents[1] / "docs" / "cluster.md").read_text()
    example = page.split("```python\n")[1].split("```")[0]
    frame, y, _ = labelled()
    (tmp_path / "rows").mkdir()
    for k, part in enumerate(parts_of(frame.assign(y=y))):
        part.to_parquet(tmp_path / "rows" / f"part.{k}.parquet")
    monkeypatch.chdir(tmp_path)
    example = example.replace("scheduler:8786", client.scheduler.address)
    scope = {}
    exec(example.replace("s3://bucket", str(tmp_path)), scope)
    scope["client"].close()
    expected = SGLBRegressor(random_state=0).fit(frame, y)
    predictions = pd.concat(map(pd.read_parquet, list_files(tmp_path / "predictions")))
    assert np.array_equal(predictions["prediction"], expected.predict(frame))
    assert model_bytes(sglb.load("model.sglb")) == model_bytes(expected)


def test_predictions_are_made_when_they_are_asked_for(client):
    frame, y, _ = labelled()
    X, classes = in_partitions(frame), np.digitize(y, [-1.0, 0.5])
    model = on_cluster(SGLBClassifier, X, classes)
    expected = fitted(SGLBClassifier, frame, classes)
    for method in ("predict", "predict_proba", "predict_raw", "decision_function"):
        lazy = getattr(model, method)(X)
        assert isinstance(lazy, da.Array)
        result, of_frame = lazy.compute(), getattr(expected, method)(frame)
        assert np.array_equal(result, of_frame)
        assert (lazy.dtype, lazy.ndim) == (of_frame.dtype, of_frame.ndim)
        assert np.array_equal(getattr(model, method)(frame), of_frame)
    assert model.score(X, da.from_array(classes)) == expected.score(frame, classes)
    bars = on_cluster(SGLBRegressor, X, y, uncertainty=True)
    with pytest.raises(ValueError, match="several arrays"):
        bars.predict(X, return_std=True)


def test_a_checkpoint_is_resumed(client, tmp_path):
    frame, y, _ = labelled()
    expected = fitted(SGLBRegressor, frame, y)
    path = tmp_path / "half"

    class Stopping:
        def start(self, info): ...

        def step(self, info):
            if info.step == 5:
                raise InterruptedError

        def finish(self, info): ...

    fit = {"callbacks": [Checkpoint(path, every=1), Stopping()]}
    with pytest.raises(InterruptedError):
        on_cluster(SGLBRegressor, in_partitions(frame), y, fit=fit)
    resumed = on_cluster(SGLBRegressor, in_partitions(frame), y, fit={"resume_from": path})
    assert model_bytes(resumed) == model_bytes(expected)


# --- losses of users ---


class Rowwise(Squared):
    """Rows that need not know one another."""

    row_wise = True


class Coupled(Squared):
    """Rows whose gradients depend on one another."""

    def gradient(self, y, raw):
        return raw - y + raw.mean()


class Failing(Rowwise):
    """Raises on workers."""

    def gradient(self, y, raw):
        if multiprocessing.parent_process() is not None:
            raise LookupError("a bug of mine")
        return raw - y


def test_a_loss_of_the_program_that_runs(client, monkeypatch):
    loss = type("Mine", (Rowwise,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Mine", loss, raising=False)
    _, frame, y, _ = numbers()
    result = on_cluster(SGLBRegressor, in_partitions(frame), y, loss=loss())
    assert model_bytes(result) == model_bytes(fitted(SGLBRegressor, frame, y, loss=loss()))


def test_an_error_of_a_loss_arrives_with_the_line_of_the_worker(client):
    _, frame, y, _ = numbers()
    workers = client.run(os.getpid)
    with leaving_nothing(client), pytest.raises(LookupError, match="a bug of mine") as caught:
        on_cluster(SGLBRegressor, in_partitions(frame), y, loss=Failing())
    assert 'raise LookupError("a bug of mine")' in "".join(caught.value.__notes__)
    assert client.run(os.getpid) == workers


def test_a_loss_whose_rows_depend_on_one_another_is_rejected(client):
    _, frame, y, _ = numbers()
    options = {"loss": Coupled(), "fit": {"check_gradient": False}}
    with leaving_nothing(client), pytest.raises(ValueError, match="depend on all others"):
        on_cluster(SGLBRegressor, in_partitions(frame), y, **options)


# --- what is rejected ---


def test_bad_input_is_rejected_with_its_name(client):
    frame, y, _ = awkward_frame()
    X = in_partitions(frame)
    with leaving_nothing(client):
        with pytest.raises(TypeError, match=r"X is a DataFrame, not an array or a dataframe of D"):
            on_cluster(SGLBRegressor, frame, y)
        with pytest.raises(ValueError, match="X has 700 rows but y has 699"):
            on_cluster(SGLBRegressor, X, y[:699])
        with pytest.raises(ValueError, match="X must have two axes, not 1"):
            on_cluster(SGLBRegressor, da.from_array(y), y)
        frame.loc[555, "missing"] = np.inf
        with pytest.raises(ValueError, match="infinity in column 'missing', row 555"):
            on_cluster(SGLBRegressor, in_partitions(frame), y)
        for name, value in (("timeout", 0), ("timeout", "1 s"), ("max_failures", -1)):
            with pytest.raises(ValueError, match=f"{name} must be"):
                on_cluster(SGLBRegressor, X, y, fit={name: value})


def test_a_partition_with_its_columns_in_another_order_is_rejected(client):
    frame, y, _ = awkward_frame()
    parts = [dask.delayed(frame[:300]), dask.delayed(frame[300:][frame.columns[::-1]])]
    X = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    with leaving_nothing(client), pytest.raises(ValueError, match="partition 1 of X has the col"):
        on_cluster(SGLBRegressor, X, y)


def test_a_query_in_two_partitions_is_rejected(client):
    _, frame, relevance, options = rankings()
    with pytest.raises(ValueError, match=r"query \d+ has rows in partitions \d and \d of"):
        on_cluster(SGLBRanker, in_partitions(frame, (10, 333)), relevance, **options)


def fail():
    raise OSError("the disk is gone")


def test_the_error_of_a_partition_is_that_of_the_fit(client):
    frame, y, _ = awkward_frame()
    parts = [dask.delayed(frame[:300]), dask.delayed(fail)()]
    X = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    with leaving_nothing(client), pytest.raises(OSError, match="the disk is gone"):
        on_cluster(SGLBRegressor, X, y)


def test_an_asynchronous_client_is_rejected(client):
    frame, y, _ = awkward_frame()

    async def train():
        async with Client(client.scheduler.address, asynchronous=True) as other:
            on_cluster(SGLBRegressor, in_partitions(frame), y, fit={"client": other})

    with pytest.raises(ValueError, match="asynchronous=False"):
        client.sync(train)


@contextlib.contextmanager
def ctrl_c_after(seconds):
    timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    timer.start()
    yield
    timer.join()


@pytest.mark.parametrize("n_chains", [1, 2])
def test_ctrl_c_ends_a_fit(client, n_chains):
    frame, y, _ = awkward_frame()
    long = {"n_estimators": 10**6, "n_chains": n_chains, "n_jobs": 2}
    with leaving_nothing(client), ctrl_c_after(1.0), pytest.raises(KeyboardInterrupt):
        on_cluster(SGLBRegressor, in_partitions(frame), y, **long)
    result = on_cluster(SGLBRegressor, in_partitions(frame), y)
    assert model_bytes(result) == model_bytes(fitted(SGLBRegressor, frame, y))
