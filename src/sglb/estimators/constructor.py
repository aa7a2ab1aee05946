"""Store the parameters of a constructor untouched, and reject unknown names."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any


def known_names(kind: type[Any]) -> tuple[str, ...] | None:
    """Return the parameters of a class, or None if it takes any, as a user's subclass may."""
    return _read_signature(kind.__init__)


@cache
def _read_signature(constructor: Callable[..., None]) -> tuple[str, ...] | None:
    # Of thirty parameters this takes as long as ten steps of a chain on 1,000 rows.
    parameters = inspect.signature(constructor).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    return tuple(parameters)[1:]  # without self


def check_names(kind: type[Any], names: Iterable[str]) -> None:
    """Raise TypeError for a name that is not a parameter of a class, with the nearest that is."""
    parameters = known_names(kind)
    if parameters is None:
        return
    for name in names:
        if name not in parameters:
            near = get_close_matches(name, parameters, n=1)
            advice = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(parameters)}"
            raise TypeError(f"{kind.__name__} has no parameter {name!r}{advice}")


def keep(estimator: Any, arguments: Mapping[str, Any]) -> None:
    """Store the arguments of a constructor, its `locals()`, as attributes of the same names."""
    for name, value in arguments.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
