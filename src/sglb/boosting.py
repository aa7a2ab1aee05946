"""Drive one chain: take steps and call the callbacks."""

from collections.abc import Sequence

from sglb.callbacks import Callback, StepInfo, Stop, check_stop, overrides_step
from sglb.chain import Chain, Step
from sglb.errors import ChainDiverged
from sglb.trace import Trace


def boost(chain: Chain, n_steps: int, callbacks: Sequence[Callback] = ()) -> Trace:
    """Take `n_steps` steps from the state that a chain is in; return its trace.

    A stop among the steps of a model that is continued ends the chain after the last of them.
    """
    first, last = len(chain.trace), len(chain.trace) + n_steps
    info, move = step_info(chain, last, None), None
    stop = None
    for callback in callbacks:
        callback.start(info)
    watching = [callback for callback in callbacks if overrides_step(callback)]
    for _ in range(first, last):
        move = chain.step()
        if watching:
            info = step_info(chain, last, move)
            look_on(watching, info)
            stop = stop or info.stop
            if stop is not None and info.step >= info.n_inherited:
                info.stop = stop
                break
    if callbacks and not watching and n_steps:
        info = step_info(chain, last, move)
    for callback in callbacks:
        callback.finish(info)
    check_finite(chain)
    return chain.trace


def check_finite(chain: Chain) -> None:
    """Raise ChainDiverged if a tree or a raw score of a chain is not finite.

    Each step checks the state that it starts from; this checks the last state.
    """
    if not (chain.trace.is_finite() and chain.rows.is_finite()):
        raise ChainDiverged(len(chain.trace))


def look_on(callbacks: Sequence[Callback], info: StepInfo) -> Stop | None:
    """Call all callbacks for a step, even after one asks to stop; return the first request.

    `info.stop` is the first request of all callbacks called for this step, in this call or before.
    """
    first = None
    for callback in callbacks:
        answer = callback.step(info)
        if answer is not None:
            stop = check_stop(callback, answer)
            first, info.stop = first or stop, info.stop or stop
    return first


def step_info(chain: Chain, n_steps: int, step: Step | None) -> StepInfo:
    """Describe the chain for callbacks."""
    structure, values, move = step or (None, None, None)
    info = StepInfo(len(chain.trace), n_steps, chain.trace, structure, values, move, chain.rows)
    info.n_replayed, info.n_inherited = chain.replay.n_steps, chain.replay.n_inherited
    return info
