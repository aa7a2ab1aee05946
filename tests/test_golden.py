"""Models of every format that was ever kept load, and predict what they predicted, to the bit."""

import json

import pytest

import golden
import sglb
from sglb.checkpoints.snapshot import Snapshot

FILES = sorted(golden.FOLDER.glob("*.sglb"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_kept_model_predicts_what_it_predicted(path):
    name = path.stem.rsplit("_", 1)[0]
    expected = json.loads(path.with_suffix(".json").read_text())
    assert golden.predictions(sglb.load(path), name) == expected


def test_a_kept_checkpoint_is_read_and_written_as_it_is_now(tmp_path):
    path = golden.FOLDER / f"two_chains_{golden.FORMAT}.checkpoint"
    golden.write_checkpoint(tmp_path / "new")
    assert Snapshot.from_bytes(path.read_bytes()).n_steps == 2 * golden.TINY["n_estimators"]
    assert (tmp_path / "new").read_bytes() == path.read_bytes()


def test_every_kind_of_model_is_kept_in_this_format():
    kept = {path.stem for path in FILES}
    assert {f"{name}_{golden.FORMAT}" for name in golden.MODELS} <= kept


def test_a_kept_model_of_this_format_is_written_as_it_was_read(tmp_path):
    for path in FILES:
        if path.stem.endswith(f"_{golden.FORMAT}") and not path.stem.startswith("momentum"):
            sglb.load(path).save(tmp_path / "again.sglb")
            assert (tmp_path / "again.sglb").read_bytes() == path.read_bytes(), path.stem
