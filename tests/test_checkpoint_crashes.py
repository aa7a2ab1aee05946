"""Checkpoints when processes are killed, disks are full, files are damaged, or two fits write.

SGLB_KILLS=20 kills more often.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from interrupted import content, fitted, killed_after
from sglb import BaseCallback, Checkpoint, CheckpointError
from sglb.checkpoints.store import Store

CRASHES = Path(__file__).parent / "crashes.py"


def run(*words):
    command = [sys.executable, CRASHES, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_fits_that_are_killed_again_and_again_end_with_the_bytes_of_those_that_are_not(tmp_path):
    n_kills = int(os.environ.get("SGLB_KILLS", "5"))
    for result in run("kills", n_kills, tmp_path):
        assert result["same bytes"], result
        assert sum(result["kills in a row"]) == n_kills, result
        assert result["steps"][-1] > 0, result


def test_a_disk_that_is_full_after_any_byte_leaves_the_checkpoints_before(tmp_path):
    result = run("disk", tmp_path)
    assert result["failed"] == result["bytes"] > 4000


def full_disk(path):
    """Let all that is written for a checkpoint go to a device that is always full."""
    path.with_name(f"{path.name}.part").symlink_to("/dev/full")


def test_a_checkpoint_that_cannot_be_written_ends_the_fit_before_its_first_step(tmp_path):
    class Witness(BaseCallback):
        steps = 0

        def step(self, info):
            self.steps += 1

    path, seen = tmp_path / "c", Witness()
    full_disk(path)
    with pytest.raises(CheckpointError, match=r"cannot be written: .*No space left"):
        fitted("numbers", callbacks=[Checkpoint(path), seen])
    assert seen.steps == 0
    assert os.listdir(tmp_path) == []


def test_a_disk_that_fills_up_during_a_fit_ends_it_and_keeps_what_was_written(tmp_path):
    path = tmp_path / "c"

    class Fill(BaseCallback):
        def step(self, info):
            if info.step == 11:
                full_disk(path)

    with pytest.raises(CheckpointError, match=r"cannot be written: .*No space left"):
        fitted("numbers", callbacks=[Fill(), Checkpoint(path, 5)])
    assert Store(path).read().n_steps == 10
    assert content(fitted("numbers", resume_from=path)) == content(fitted("numbers"))


class At(BaseCallback):
    """Does something after a step."""

    def __init__(self, step, action):
        self.at, self.action = step, action

    def step(self, info):
        if info.step == self.at:
            self.action()


@pytest.mark.parametrize("action", [Path.unlink, lambda path: path.rename(path.parent / "mine")])
def test_a_checkpoint_that_is_moved_or_removed_during_a_fit_is_written_again(action, tmp_path):
    path = tmp_path / "c"
    with killed_after(17):
        fitted("numbers", callbacks=[At(11, lambda: action(path)), Checkpoint(path, 5)])
    assert Store(path).read().n_steps == 15
    assert content(fitted("numbers", resume_from=path)) == content(fitted("numbers"))


def test_a_folder_that_is_removed_during_a_fit_is_told(tmp_path):
    path = tmp_path / "folder" / "c"
    path.parent.mkdir()
    callbacks = [At(11, lambda: shutil.rmtree(path.parent)), Checkpoint(path, 5)]
    with pytest.raises(CheckpointError, match=r"folder/c.*cannot be written: .*No such file"):
        fitted("numbers", callbacks=callbacks)


@pytest.mark.parametrize("error", [OSError("the disk is gone"), KeyboardInterrupt()])
def test_between_its_two_names_a_checkpoint_is_not_lost(error, tmp_path, monkeypatch):
    """The newest has become the one before, and the draft cannot take its name."""
    path, replace, failed = tmp_path / "c", Path.replace, []

    def fails_once(source, destination):
        if source.name == "c.part" and path.with_name("c.previous").exists() and not failed:
            failed.append(error)
            assert not path.exists()
            raise error
        return replace(source, destination)

    monkeypatch.setattr(Path, "replace", fails_once)
    if isinstance(error, OSError):
        checkpoint = Checkpoint(path, 5, on_error="warn")
        with pytest.warns(UserWarning, match="the disk is gone") as warned, killed_after(17):
            fitted("numbers", callbacks=checkpoint)
        assert len(warned) == 1
    else:
        with pytest.raises(KeyboardInterrupt):
            fitted("numbers", callbacks=Checkpoint(path, 5))
    assert failed == [error]
    assert Store(path).read().n_steps == (15 if isinstance(error, OSError) else 5)
    assert path.exists()
    assert not path.with_name("c.part").exists()
    assert content(fitted("numbers", resume_from=path)) == content(fitted("numbers"))


RACE = """
import sys
from pathlib import Path
from interrupted import content, fitted
from sglb import Checkpoint, CheckpointError
path = Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    model = fitted("numbers", callbacks=Checkpoint(path, 1, overwrite=True))
except CheckpointError as error:
    print("rejected" if "writes its checkpoints there" in str(error) else error)
else:
    path.with_name(sys.argv[2]).write_bytes(content(model))
    print("fitted")
"""


def test_of_two_fits_that_race_for_one_path_one_at_a_time_writes(tmp_path):
    path, expected = tmp_path / "c", content(fitted("numbers"))
    for number in range(3):
        racers = [
            subprocess.Popen(
                [sys.executable, "-c", RACE, path, f"model{i}"],
                cwd=CRASHES.parent,
                env=os.environ | {"PYTHONPATH": str(CRASHES.parent)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for i in range(2)
        ]
        for racer in racers:
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            racer.stdin.write("\n")
            racer.stdin.flush()
        endings = [racer.communicate(timeout=500)[0].strip() for racer in racers]
        assert "fitted" in endings, (number, endings)
        assert set(endings) <= {"fitted", "rejected"}, (number, endings)
        for i, ending in enumerate(endings):
            if ending == "fitted":
                assert (tmp_path / f"model{i}").read_bytes() == expected
        assert Store(path).read().is_finished
        assert not (tmp_path / "c.lock").exists()
        assert not (tmp_path / "c.part").exists()


def test_on_request_a_fit_goes_on_without_checkpoints(tmp_path):
    path = tmp_path / "c"
    full_disk(path)
    with pytest.warns(UserWarning, match=r"cannot be written.*training goes on"):
        model = fitted("numbers", callbacks=Checkpoint(path, 30, on_error="warn"))
    assert content(model) == content(fitted("numbers"))


def test_paths_that_cannot_be_written_are_rejected_before_a_row_is_read(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "c.lock").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for path, words in (
        (tmp_path / "folder", "is a folder"),
        (tmp_path / "nowhere" / "c", "does not exist"),
        (tmp_path / "file" / "c", "does not exist"),
        (tmp_path / "c", "no lock beside it"),
    ):
        with pytest.raises(OSError, match=words):
            fitted("numbers", X=None, callbacks=Checkpoint(path))


def test_a_folder_that_is_read_only_is_rejected_before_a_row_is_read(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):  # root may write everywhere; a file system may not
        folder = Path("/proc/self")
        if not folder.is_dir():
            pytest.skip("nothing here is read-only")
    with pytest.raises(OSError, match=r"no permission|no lock beside it"):
        fitted("numbers", X=None, callbacks=Checkpoint(folder / "c"))


def test_two_fits_of_a_process_cannot_write_to_one_path(tmp_path):
    class Second(BaseCallback):
        def start(self, info):
            fitted("weights", callbacks=Checkpoint(tmp_path / "other" / ".." / "c"))

    (tmp_path / "other").mkdir()
    with pytest.raises(CheckpointError, match="another fit of this process"):
        fitted("numbers", callbacks=[Checkpoint(tmp_path / "c"), Second()])
    fitted("numbers", callbacks=Checkpoint(tmp_path / "c", overwrite=True))  # it is free again


HOLD = """
import sys
from sglb.checkpoints.store import Store
from pathlib import Path
with Store(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_processes_cannot_write_to_one_path_and_a_dead_one_holds_nothing(tmp_path):
    path = tmp_path / "c"
    command = [sys.executable, "-c", HOLD, path]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CheckpointError, match=f"process {other.pid} writes its checkpoints"):
            fitted("numbers", callbacks=Checkpoint(path))
    finally:
        other.kill()
        other.wait()
        other.stdin.close()
        other.stdout.close()
    assert (tmp_path / "c.lock").exists()
    fitted("numbers", callbacks=Checkpoint(path))
    assert not (tmp_path / "c.lock").exists()


def test_a_lock_is_held_by_one_of_many_threads_at_a_time(tmp_path):
    store, holding, most, refused = Store(tmp_path / "c"), [], [], []

    def work():
        for _ in range(50):
            try:
                with Store(tmp_path / "c").locked():
                    holding.append(1)
                    most.append(len(holding))
                    holding.pop()
            except CheckpointError as error:
                refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert len(most) + len(refused) == 200
    with store.locked():
        pass


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The bytes of the last two checkpoints of a fit that was killed."""
    path = tmp_path_factory.mktemp("two") / "c"
    with killed_after(14):
        fitted("three classes", callbacks=Checkpoint(path, 4))
    return path.read_bytes(), path.with_name("c.previous").read_bytes()


def damaged(folder, newest, previous):
    path = folder / "c"
    path.write_bytes(newest)
    path.with_name("c.previous").write_bytes(previous)
    return path


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999, None])
def test_of_a_damaged_newest_checkpoint_the_one_before_is_used(two, share, tmp_path):
    newest, previous = two
    cut = newest[: int(share * len(newest))] if share is not None else bytes(len(newest))
    path = damaged(tmp_path, cut, previous)
    with pytest.warns(UserWarning, match=r"c .*is damaged; the one before it is used, with 8 st"):
        model = fitted("three classes", callbacks=Checkpoint(path, 30), resume_from=path)
    assert content(model) == content(fitted("three classes"))
    assert Store(path).read().is_finished
    assert path.with_name("c.previous").read_bytes() != cut  # a damaged file is not kept


def test_a_newest_checkpoint_that_is_missing_is_the_one_before(two, tmp_path):
    path = damaged(tmp_path, *two)
    path.unlink()
    assert Store(path).read().n_steps == 8
    assert content(fitted("three classes", resume_from=path)) == content(fitted("three classes"))


def test_two_damaged_checkpoints_are_an_error(two, tmp_path):
    newest, previous = two
    path = damaged(tmp_path, newest[:-1], previous[1:])
    with pytest.raises(CheckpointError, match=r"damaged: .*c \(.*c\.previous .*remove the file"):
        fitted("three classes", callbacks=Checkpoint(path), resume_from=path)
    with pytest.raises(CheckpointError, match="damaged"):
        fitted("three classes", resume_from=path)
    fitted("three classes", callbacks=Checkpoint(path))  # a new fit replaces them


def test_links_to_a_checkpoint_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "there" / "c")
    with killed_after(10):
        fitted("numbers", callbacks=Checkpoint(tmp_path / "c", 1))
    assert (tmp_path / "c").is_symlink()
    assert Store(tmp_path / "there" / "c").read().n_steps == 10
