"""Settings shared by all tests."""

import signal

import pytest
from hypothesis import HealthCheck, settings

# Examples are the same in every run: a failure is a failure of the code, not of the day.
settings.register_profile(
    "sglb",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("sglb")


def pytest_configure(config):
    config.addinivalue_line("markers", "wheel: builds wheels, a minute each; -m 'not wheel' skips")
    # A shell's background job ignores Ctrl-C, and Python with it; tests of Ctrl-C need it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, but for the tables of `shell`."""
    import shell

    monkeypatch.chdir(tmp_path)
    shell.write_tables()
    return tmp_path


@pytest.fixture
def classifier(folder):
    import shell

    shell.train_classifier("m.sglb")
    return folder / "m.sglb"


@pytest.fixture
def regressor(folder):
    import shell

    shell.train_regressor("r.sglb")
    return folder / "r.sglb"
