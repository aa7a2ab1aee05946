"""Attributes that are computed at their first use."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801  # named as the one it stands for
        """functools.cached_property without the lock that Python 3.11 holds while it computes.

        That lock is one for all objects of a class: threads would wait for each other, and a
        process forked while a thread holds it would wait for ever. Two threads that ask at the
        same time may both compute.
        """

        def __init__(self, function: Any) -> None:
            self.function = function
            self.__doc__ = function.__doc__
            self.__isabstractmethod__ = getattr(function, "__isabstractmethod__", False)

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return vars(instance).setdefault(self.name, self.function(instance))
