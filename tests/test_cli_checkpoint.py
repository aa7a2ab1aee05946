"""`sglb train` that is interrupted, limited in time, or continues a model."""

import math

import pytest

from interrupted import killed_after
from sglb import load
from sglb.checkpoints import checkpoint, journal
from shell import SMALL, done, rejected, sglb

TRAIN = ["train", "train.csv", "-t", "number", "--drop", "label", "--drop", "w", "-q", *SMALL]


def content(path):
    return path.read_bytes()


def test_a_command_that_was_killed_is_repeated_and_goes_on(folder):
    done(*TRAIN, "-m", "whole.sglb")
    words = ["-m", "m.sglb", "--checkpoint", "c", "--resume"]
    with killed_after(5):
        sglb(*TRAIN, *words)
    assert not (folder / "m.sglb").exists()
    done(*TRAIN, *words)
    assert content(folder / "m.sglb") == content(folder / "whole.sglb")
    done(*TRAIN, *words)  # once more is the same
    assert content(folder / "m.sglb") == content(folder / "whole.sglb")


def test_other_options_and_an_unfinished_checkpoint_are_rejected_in_words_of_options(
    folder, monkeypatch
):
    monkeypatch.setattr(checkpoint, "INTERVAL", 1e-6)
    monkeypatch.setattr(journal, "SHARE", math.inf)  # write after every step
    words = ["-m", "m.sglb", "--checkpoint", "c"]
    with killed_after(5):
        sglb(*TRAIN, *words)
    message = rejected(*TRAIN, *words, "--resume", "--max-bins", 9)
    assert "--resume: the checkpoint is of another fit: --max-bins is 9, not 'auto'" in message
    message = rejected(*TRAIN, *words)
    assert "pass --resume to continue that one, or remove the file" in message
    assert "--resume needs --checkpoint" in rejected(*TRAIN, "-m", "m.sglb", "--resume")
    message = rejected(*TRAIN, "-m", "c", "--checkpoint", "c")
    assert "is an input and would be overwritten" in message


def test_a_model_is_continued_for_a_time(folder):
    done(*TRAIN, "-m", "m.sglb")
    n_steps = load("m.sglb").n_iter_
    done(*TRAIN, "-m", "more.sglb", "--init-model", "m.sglb")
    assert load("more.sglb").n_iter_ == 2 * n_steps
    done(*TRAIN, "-m", "short.sglb", "--time-limit", 0)
    assert load("short.sglb").n_iter_ == 1


@pytest.mark.parametrize("seconds", ["-1", "soon"])
def test_a_time_limit_is_a_number(folder, seconds):
    assert "--time-limit" in rejected(*TRAIN, "-m", "m.sglb", "--time-limit", seconds)
