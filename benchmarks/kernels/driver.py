"""What runs under callgrind: every scenario, each call into the core counted by itself.

    valgrind --tool=callgrind ... python -m benchmarks.kernels.driver core.so switch.so

Wraps the functions of the extension whatever their arguments are, so that a change of the boundary
needs no change here. Each call ends with a dump labelled `scenario/function`.
"""

import ctypes
import importlib.util
import sys
from functools import wraps

from benchmarks.kernels.scenarios import SCENARIOS


def load_core(path):
    """Put the extension at `path` in the place of the installed one."""
    spec = importlib.util.spec_from_file_location("sglb._core", path)
    core = importlib.util.module_from_spec(spec)
    sys.modules["sglb._core"] = core
    spec.loader.exec_module(core)
    return core


class Counter:
    """Wraps the functions of a module and the methods of its classes.

    The name of the scenario that runs goes into the label.
    """

    def __init__(self, switch):
        self.switch = switch
        self.scenario = ""

    def wrap(self, module):
        for name, value in vars(module).copy().items():
            if name.startswith("_"):
                continue
            if isinstance(value, type):
                self.wrap(value)
            elif callable(value):
                setattr(module, name, self._counted(name, value))

    def _counted(self, name, function):
        toggle = self.switch.toggle

        @wraps(function, assigned=("__name__", "__doc__"))
        def counted(*arguments, **named):
            toggle()
            try:
                return function(*arguments, **named)
            finally:
                toggle()
                self.switch.dump(f"{self.scenario}/{name}".encode())

        return counted


def main():
    core, switch = load_core(sys.argv[1]), ctypes.CDLL(sys.argv[2])
    if not switch.running():
        sys.exit("the driver counts nothing by itself: python -m benchmarks.kernels")
    import sglb  # noqa: F401  # before counting begins: imports are slow when every one is counted

    counter = Counter(switch)
    counter.wrap(core)
    switch.begin()
    for name, scenario in SCENARIOS.items():
        counter.scenario = name
        scenario()


if __name__ == "__main__":
    main()
