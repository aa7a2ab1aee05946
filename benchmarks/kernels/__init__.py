"""Instructions that the kernels execute on fixed small inputs: `python -m benchmarks.kernels`.

Seconds differ from run to run; a count does not. The extension is built once more with its own
flags and symbols (`build`), small fits and predictions (`scenarios`) run in one thread under
callgrind with every call into the core counted apart (`driver`), the profiles are read (`profile`)
and compared with the counts in `counts.json` (`counts`).
"""
