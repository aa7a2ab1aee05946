"""Methods that an estimator does not have, with advice."""

from typing import Any, NoReturn


class Absent:
    """A method of other estimators: `hasattr` is false, and the error says what to call instead."""

    def __init__(self, advice: str) -> None:
        self._advice = advice

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        """Reject the method."""
        raise AttributeError(f"{owner.__name__} does not have this method: {self._advice}")
