"""Progress: lines in a log, a bar in a terminal and in a notebook, the reason of an early end."""

import builtins
import io
import os
import pty
import re
import subprocess
import sys
import types

import numpy as np
import pytest

from sglb import BaseCallback, Progress, SGLBRegressor, Stop
from sglb.callbacks import displays, progress
from sglb.callbacks.displays import duration

rng = np.random.default_rng(1)
X, X_VAL = rng.normal(size=(300, 4)), rng.normal(size=(200, 4))
Y, Y_VAL = (x[:, 0] * x[:, 1] + rng.normal(size=len(x)) for x in (X, X_VAL))
FAST = {"n_estimators": 60, "max_depth": 3, "learning_rate": 0.3, "random_state": 0, "n_jobs": 1}
WATCHED = {"eval_set": [(X_VAL, Y_VAL)], "eval_metric": "mae"}
LINE = re.compile(
    r"sglb: step +\d+/60  loss [\d.]+  validation_0 mae [\d.]+  "
    r"[\d.]+ s (elapsed, [\d.]+ s left|in all)"
)


class After(BaseCallback):
    def __init__(self, last):
        self.last = last

    def step(self, info):
        return Stop("I have seen <enough>") if info.step == self.last else None


def steps_of(lines):
    return [int(re.search(r"step +(\d+)/", line)[1]) for line in lines]


@pytest.fixture
def frozen_clock(monkeypatch):
    """No time passes, on however busy a machine."""
    monkeypatch.setattr(progress.time, "monotonic", lambda: 0.0)


@pytest.mark.usefixtures("frozen_clock")
def test_a_log_has_a_line_for_the_first_and_the_last_step(capfd):
    SGLBRegressor(**FAST, verbose=1).fit(X, Y, **WATCHED)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert all(LINE.fullmatch(line) for line in lines), lines
    assert steps_of(lines) == [1, 60]
    assert lines[0].endswith("left")
    assert lines[-1].endswith("in all")


def test_a_log_has_a_line_every_five_seconds(capfd, monkeypatch):
    clock = iter(range(10_000))  # a second passes whenever somebody looks
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(progress, "SHARE", 1.0)
    SGLBRegressor(**FAST, verbose=1).fit(X, Y)
    lines = capfd.readouterr().err.splitlines()
    # A report looks three times: is it due, when does it begin, when does it end.
    assert steps_of(lines) == [1, *range(6, 61, 5), 60][: len(lines)]
    assert len(lines) == 13


def test_reports_are_rarer_where_they_take_long(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    shown = []

    class Slow:
        interval = 1.0

        def show(self, report):
            shown.append(report.step)
            now[0] += 2.0  # 2 % of the time at most: the next report is due 100 seconds later

        def close(self):
            pass

    class Clock(BaseCallback):
        def step(self, info):
            now[0] += 10.0

    monkeypatch.setattr(progress, "open_display", lambda n_steps: Slow())
    SGLBRegressor(**FAST, verbose=1).fit(X, Y, callbacks=[Clock()])
    assert shown == [1, 11, 21, 31, 41, 51, 60]


@pytest.mark.parametrize(
    ("every", "steps"), [(20, [1, 20, 40, 60]), (25, [1, 25, 50, 60]), (99, [1, 60])]
)
def test_verbose_above_one_is_a_line_every_so_many_steps(capfd, every, steps):
    SGLBRegressor(**FAST, verbose=every).fit(X, Y, **WATCHED)
    lines = capfd.readouterr().err.splitlines()
    assert all(LINE.fullmatch(line) for line in lines), lines
    assert steps_of(lines) == steps


def test_progress_is_also_a_callback(capfd):
    SGLBRegressor(**FAST).fit(X, Y, callbacks=Progress(every=30), **WATCHED)
    assert steps_of(capfd.readouterr().err.splitlines()) == [1, 30, 60]


def test_every_line_is_flushed_at_once(monkeypatch):
    class Buffered(io.StringIO):
        flushed = 0

        def flush(self):
            self.flushed += 1

    stream = Buffered()
    monkeypatch.setattr(sys, "stderr", stream)
    SGLBRegressor(**FAST, verbose=20).fit(X, Y)
    assert stream.flushed == len(stream.getvalue().splitlines()) == 4


def test_a_program_without_a_console_shows_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    SGLBRegressor(**FAST, verbose=1).fit(X, Y)
    assert capsys.readouterr().out == ""


def test_the_reason_of_early_stopping_is_said(capfd):
    model = SGLBRegressor(**FAST, verbose=1, early_stopping_rounds=10)
    model.fit(X, Y, **WATCHED)
    lines = capfd.readouterr().err.splitlines()
    last = model.best_iteration_ + 10
    assert steps_of(lines) == [1, last, last]
    assert lines[-1] == (
        f"sglb: stopped after step {last}/60: mae on validation_0 has not improved for 10 steps; "
        f"best {model.best_score_:.6g} after {model.best_iteration_} steps"
    )


def test_the_reason_of_a_callback_is_said_once_and_its_step_shown_once(capfd):
    SGLBRegressor(**FAST, verbose=5).fit(X, Y, callbacks=After(10))
    lines = capfd.readouterr().err.splitlines()
    assert steps_of(lines) == [1, 5, 10, 10]
    assert lines[-1] == "sglb: stopped after step 10/60: I have seen <enough>"


def in_terminal(script, **environment):
    """What a script writes to a terminal of 100 columns, its control characters taken out."""
    master, slave = pty.openpty()
    # CI and the like may speak for or against colours and terminals.
    ours = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "CI")}
    ours |= {"TERM": "xterm", "COLUMNS": "100"} | environment
    process = subprocess.Popen([sys.executable, "-c", script], stderr=slave, env=ours)
    os.close(slave)
    written = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        written += part
    os.close(master)
    assert process.wait() == 0, written.decode()
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", written.decode())


SETUP = """
import numpy as np
from sglb import BaseCallback, SGLBRegressor, Stop

x = np.random.default_rng(0).normal(size=(100, 2))

class Enough(BaseCallback):
    def step(self, info):
        return Stop("enough seen") if info.step == 40 else None

class Broken(BaseCallback):
    def step(self, info):
        raise RuntimeError("broken")
"""
FIT = SETUP + "SGLBRegressor(n_estimators=60, verbose=1).fit(x, x[:, 0], callbacks=Enough())"


def test_a_terminal_shows_a_bar_and_below_it_why_the_chain_ended():
    text = in_terminal(FIT)
    assert "━" in text
    assert re.search(r"40/60 loss [\d.e-]+ [\d.]+ s in all", text)
    assert text.splitlines()[-1] == "sglb: stopped after step 40/60: enough seen"
    assert text.count("sglb:") == 1


@pytest.mark.parametrize(
    ("script", "environment"),
    [
        ("import sys; sys.modules['rich'] = None" + FIT, {}),
        (FIT, {"TERM": "dumb"}),
        (FIT.replace("verbose=1", "verbose=100"), {}),
    ],
    ids=["without rich", "dumb", "every 100 steps"],
)
def test_a_terminal_that_shows_no_bar_has_lines(script, environment):
    lines = in_terminal(script, **environment).splitlines()
    assert steps_of(lines) == [1, 40, 40]
    assert all(line.startswith("sglb: ") for line in lines)


def test_a_log_has_lines_even_where_rich_is_told_to_take_it_for_a_terminal(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    SGLBRegressor(**FAST, verbose=1).fit(X, Y)
    assert steps_of(capfd.readouterr().err.splitlines()) == [1, 60]


TAKEN = """
from rich.errors import LiveError
from rich.progress import Progress

def start(bar):
    raise LiveError("another bar is open")

Progress.start = start
"""


def test_a_terminal_that_another_bar_has_taken_has_lines():
    assert steps_of(in_terminal(TAKEN + FIT).splitlines()) == [1, 40, 40]


BREAK = """
try:
    SGLBRegressor(n_estimators=60, verbose=1).fit(x, x[:, 0], callbacks=Broken())
except RuntimeError:
    import sys, threading, time
    for _ in range(300):  # the thread of a closed bar ends with its next look at the clock
        if threading.active_count() == 1:
            break
        time.sleep(0.1)
    print(f"still running: {threading.active_count()} thread", file=sys.stderr)
"""


def test_a_broken_chain_gives_the_terminal_back():
    lines = in_terminal(SETUP + BREAK).splitlines()
    assert lines[-1] == "still running: 1 thread"  # an open bar of rich has a thread of its own


class Notebook:
    """A stand-in for IPython in a kernel: keeps what was displayed, and in which order."""

    def __init__(self, monkeypatch, kernel):
        self.shown = []  # one list of bundles a display
        module = types.ModuleType("IPython")
        module.get_ipython = lambda: types.SimpleNamespace(kernel=kernel)
        module.display = types.ModuleType("IPython.display")
        module.display.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", module)
        monkeypatch.setitem(sys.modules, "IPython.display", module.display)

    def display(self, data, *, raw, display_id):
        assert raw
        assert display_id
        updates = [data]
        self.shown.append(updates)
        return types.SimpleNamespace(update=lambda data, raw: updates.append(data))


@pytest.mark.usefixtures("frozen_clock")
def test_a_notebook_shows_one_bar_that_updates_in_place(monkeypatch, capfd):
    notebook = Notebook(monkeypatch, kernel=object())
    SGLBRegressor(**FAST, verbose=1).fit(X, Y, **WATCHED)
    (updates,) = notebook.shown
    assert len(updates) == 2  # the first and the last step
    assert '<progress value="1" max="60"' in updates[0]["text/html"]
    assert '<progress value="60" max="60"' in updates[-1]["text/html"]
    assert re.search(r"60/60 .*loss .*validation_0 mae .* in all", updates[-1]["text/html"])
    assert updates[-1]["text/plain"].startswith("step 60/60  loss ")
    assert capfd.readouterr() == ("", "")


def test_a_notebook_says_below_its_bar_why_the_chain_ended(monkeypatch, capfd):
    notebook = Notebook(monkeypatch, kernel=object())
    SGLBRegressor(**FAST, verbose=1).fit(X, Y, callbacks=After(10))
    last = notebook.shown[0][-1]
    assert "<br>stopped after step 10/60: I have seen &lt;enough&gt;</div>" in last["text/html"]
    assert last["text/plain"].endswith("\nstopped after step 10/60: I have seen <enough>")
    assert capfd.readouterr() == ("", "")


def test_a_shell_without_a_kernel_is_no_notebook(monkeypatch, capfd):
    notebook = Notebook(monkeypatch, kernel=None)
    SGLBRegressor(**FAST, verbose=1).fit(X, Y)
    assert notebook.shown == []
    assert steps_of(capfd.readouterr().err.splitlines()) == [1, 60]


def test_progress_does_not_import_ipython(monkeypatch):
    real = builtins.__import__

    def without_ipython(name, *rest):
        assert not name.startswith("IPython")
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_ipython)
    assert isinstance(displays.open_display(3), displays.Lines)


def test_progress_can_be_closed_at_any_time():
    shown = Progress()
    shown.close()
    shown.close()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (3600, "1 h 00 min"),
        (7199, "2 h 00 min"),
        (7260, "2 h 01 min"),
    ],
)
def test_times_have_the_digits_that_matter(seconds, text):
    assert duration(seconds) == text
