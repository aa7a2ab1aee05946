"""The driver of one chain: steps, and callbacks that look on."""

from collections.abc import Sequence

import numpy as np

from sglb.callbacks import Callback, StepInfo, check_stop, overrides_step
from sglb.chain import Chain, Step
from sglb.errors import ChainDiverged
from sglb.trace import Trace


def boost(chain: Chain, n_steps: int, callbacks: Sequence[Callback] = ()) -> Trace:
    """Take `n_steps` steps from the state that a chain is in; return its trace."""
    first, last = len(chain.trace), len(chain.trace) + n_steps
    info, taken = _info(chain, last, None), None
    for callback in callbacks:
        callback.start(info)
    watching = [callback for callback in callbacks if overrides_step(callback)]
    for _ in range(first, last):
        taken = chain.step()
        if watching:
            info = _info(chain, last, taken)
            # Every callback sees the step, even when one of them wants to stop.
            for callback in watching:
                answer = callback.step(info)
                if answer is not None:
                    info.stop = info.stop or check_stop(callback, answer)
            if info.stop is not None:
                break
    if callbacks and not watching and n_steps:
        info = _info(chain, last, taken)
    for callback in callbacks:
        callback.finish(info)
    if not np.isfinite(chain.trace.values).all() or not np.isfinite(chain.rows.raw).all():
        raise ChainDiverged(len(chain.trace))
    return chain.trace


def _info(chain: Chain, n_steps: int, step: Step | None) -> StepInfo:
    """Describe the chain for callbacks."""
    structure, values, move = step or (None, None, None)
    return StepInfo(len(chain.trace), n_steps, chain.trace, structure, values, move, chain.rows)
