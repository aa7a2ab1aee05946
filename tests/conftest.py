"""Settings shared by all tests."""

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
