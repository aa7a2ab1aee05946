"""From a recipe and its rows to a model: number of steps, chains and callbacks."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from sglb import tasks
from sglb.boosting import boost
from sglb.callbacks import (
    Callback,
    EarlyStopping,
    EvaluationSet,
    History,
    KeepOnInterrupt,
    Parameters,
    Progress,
    say,
)
from sglb.chain import Chain
from sglb.chains import boost_all
from sglb.checkpoints import Journal
from sglb.cluster import TrainingData, in_memory
from sglb.errors import warn
from sglb.estimators.error_bars import add_error_bars
from sglb.estimators.residuals import residual_variance
from sglb.folds import CrossValidation, folds_for_residuals
from sglb.metrics import Metric
from sglb.model import Exchange, Model, Record, after
from sglb.recipe import Recipe
from sglb.samplers import Tempering
from sglb.schedules import Moving
from sglb.tempering import Replicas, temper
from sglb.trace import Trace
from sglb.training_set import TrainingSet


def warn_if_equal(traces: Sequence[Trace]) -> None:
    """Warn if several chains are the same one, unless there was nothing to learn."""
    first = traces[0].values
    if (
        len(traces) > 1
        and first.any()
        and all(np.array_equal(first, other.values) for other in traces[1:])
    ):
        warn(
            f"the chains are equal, because nothing in them is random: {len(traces)} of them are no"
            " better than one. Use sampler='langevin' at a temperature above 0, sampler="
            "'stochastic' with subsample below 1, structure_sample below 1.0, or n_chains=1",
        )


class Scoring(NamedTuple):
    """What is scored while chains run: evaluation sets, metrics, patience of early stopping."""

    sets: Sequence[EvaluationSet]
    metrics: Sequence[Metric]
    early_stopping_rounds: int | None

    def history(self, n_threads: int) -> History:
        """Return what records the scores of a chain."""
        return History(self.sets, self.metrics, n_threads)

    def record(self, history: History) -> Record:
        """Return the scores of a chain that has ended."""
        return Record(*history.best(), history.result) if self.sets else Record()

    def callbacks(self, recipe: Recipe, history: History, n_inherited: int = 0) -> list[Callback]:
        """Return the callbacks of a single chain, which may continue that of a model."""
        # The order matters: scores are there before anything looks at them.
        watching: list[Callback] = [history] if self.sets else []
        if self.early_stopping_rounds is not None:
            moving = (recipe.settings.sampler, recipe.loss)
            lengths = [
                schedule.n_steps or 0
                for each in moving
                if isinstance(each, Moving)
                for schedule in each.schedules.values()
            ]
            watching.append(
                EarlyStopping(self.early_stopping_rounds, after=max([*lengths, n_inherited]))
            )
        return watching


class Ended(NamedTuple):
    """Chains that have ended, and the first of them with rows, which may not have run itself."""

    first: Chain
    traces: Sequence[Trace]
    records: Sequence[Record]
    exchange: Exchange | None = None


def run_alone(
    recipe: Recipe,
    data: TrainingSet,
    n_steps: int,
    scoring: Scoring,
    n_threads: int,
    number: int,
) -> tuple[Trace, Record]:
    """Run a chain of a number in a task; return its trace and its scores."""
    threads = tasks.threads_here(n_threads)
    history = scoring.history(threads)
    chain = recipe.make_chain(data, threads, number=number)
    trace = boost(chain, n_steps, scoring.callbacks(recipe, history))
    return trace, scoring.record(history)


@dataclass(frozen=True)
class Training:
    """Train the chains of a recipe on its rows; the chains share `n_threads` threads."""

    recipe: Recipe
    data: TrainingData
    n_threads: int
    verbose: int = 0
    journal: Journal = field(default_factory=Journal)

    def run(
        self, scoring: Scoring, callbacks: Sequence[Callback], *, uncertainty: bool = False
    ) -> Model:
        """Run the chains with their callbacks; each is cut to its best state if it is watched."""
        (n_steps, validation), n_chains = self._length(), self._n_chains
        if self._are_sent(callbacks):
            first, traces, chain_records, exchange = self._send_chains(n_steps, scoring)
        else:
            first, traces, chain_records, exchange = self._run_chains(n_steps, scoring, callbacks)
        warn_if_equal(traces)
        if scoring.early_stopping_rounds is not None:
            lengths = [
                record.best_iteration or len(trace)
                for trace, record in zip(traces, chain_records, strict=True)
            ]
            traces, exchange = after(traces, exchange, lengths)
        record = chain_records[0]
        if n_chains > 1 and scoring.sets:
            record = self._mean_record(scoring, traces)
        variance = residual_variance(first, traces)
        model = Model(
            self.recipe, tuple(traces), variance, record, tuple(chain_records), exchange=exchange
        )
        if not uncertainty:
            self._end_journal(callbacks)
            return model
        self.journal.save()
        # The cross-validation of the length has left those of the first chain; classes need none.
        n_folds = folds_for_residuals(self.data.n_rows // self.data.n_copies)
        n_more = n_folds * (n_chains - (validation is not None))
        if self.verbose and n_more and self.recipe.kind == "regressor":
            say(f"error bars: {n_more} more chains, to predict rows that a chain has not seen")
        model = add_error_bars(
            model, in_memory(self.data, self.n_threads), validation, self.n_threads
        )
        self._end_journal(callbacks)
        return model

    @property
    def _n_chains(self) -> int:
        return int(self.recipe.parameters["n_chains"])

    def _are_sent(self, callbacks: Sequence[Callback]) -> bool:
        """Whether several chains run in tasks of a joblib context: nothing looks at their steps,
        none begins with steps of another, and memory holds their rows.
        """
        return (
            self._n_chains > 1
            and not callbacks
            and not self.journal.is_kept
            and not self.journal.inherited
            and isinstance(self.data, TrainingSet)
            and not self.data.is_mapped
            and tasks.are_sent()
        )

    def _send_chains(self, n_steps: int, scoring: Scoring) -> Ended:
        """Run the chains in tasks."""
        assert isinstance(self.data, TrainingSet)
        if self.verbose:
            say(f"{self._n_chains} chains in tasks of the joblib context")
        run = partial(run_alone, self.recipe, self.data, n_steps, scoring, self.n_threads)
        ended = tasks.send([partial(run, number) for number in range(self._n_chains)])
        first = self.recipe.make_chain(self.data, self.n_threads)
        traces, records = zip(*ended, strict=True)
        self._say_ended(traces)
        return Ended(first, traces, records)

    def _run_chains(self, n_steps: int, scoring: Scoring, callbacks: Sequence[Callback]) -> Ended:
        """Run the chains side by side in threads, with the user's callbacks."""
        n_chains = self._n_chains
        at_once = min(n_chains, self.n_threads) if self._is_thread_safe else 1
        # The core's threads serve one chain at a time: it has those that the others leave.
        share = self.n_threads - at_once + 1
        chains = [
            self.recipe.make_chain(self.data, share, number=number) for number in range(n_chains)
        ]
        for number, chain in enumerate(chains):
            self.journal.follow(f"chain {number}", chain)
        histories = [scoring.history(share) for _ in chains]
        callbacks_by_chain = [
            scoring.callbacks(self.recipe, history, chain.replay.n_inherited)
            for history, chain in zip(histories, chains, strict=True)
        ]
        if callbacks:
            callbacks_by_chain[0].append(Parameters(self._resolved(chains[0])))
        traces, exchange = self._boost(chains, n_steps, callbacks_by_chain, callbacks, at_once)
        return Ended(chains[0], traces, [scoring.record(each) for each in histories], exchange)

    def _say_ended(self, traces: Sequence[Trace]) -> None:
        if self.verbose:
            say(f"{len(traces)} chains of {', '.join(f'{len(t):,}' for t in traces)} steps")

    def _end_journal(self, callbacks: Sequence[Callback]) -> None:
        """Write that the fit has ended, unless it is Ctrl-C that has ended it."""
        if any(isinstance(each, KeepOnInterrupt) and each.interrupted for each in callbacks):
            self.journal.save()
        else:
            self.journal.finish()

    @property
    def _is_thread_safe(self) -> bool:
        """Whether methods of the loss may be called in several threads at once."""
        loss = self.recipe.loss
        return loss is not None and loss.thread_safe

    def _length(self) -> tuple[int, CrossValidation | None]:
        """Return the number of steps to take, as stated or by a cross-validation, and that one."""
        settings = self.recipe.settings
        if not settings.search_length:
            return settings.n_steps, None
        if self.verbose:
            say(f"cross-validation of the number of trees, at most {settings.n_steps:,}")
        threads = self.n_threads if self._is_thread_safe else 1
        data = in_memory(self.data, self.n_threads)
        validation: CrossValidation
        if tasks.are_sent() and not self.journal.is_kept:
            validation = self.recipe.lazy_cross_validation(data)
        else:
            validation = self.recipe.cross_validation(data)
            for number, fold in enumerate(validation.folds):
                self.journal.follow(f"fold {number}", fold.chain)
        n_steps = validation.best_length(settings.n_steps, threads, self.journal.look)
        if self.verbose:
            say(f"{n_steps:,} trees are best")
        return n_steps, validation

    def _resolved(self, chain: Chain) -> dict[str, object]:
        """Return the parameters with what "auto" stands for."""
        return self.recipe.settings.resolved(self.recipe.parameters, chain.rows.loss)

    def _boost(
        self,
        chains: Sequence[Chain],
        n_steps: int,
        callbacks_by_chain: Sequence[Sequence[Callback]],
        callbacks: Sequence[Callback],
        at_once: int,
    ) -> tuple[Sequence[Trace], Exchange | None]:
        """Run the chains; the user's callbacks and the progress display watch the first."""
        progress: list[Callback] = []
        if self.verbose:
            progress.append(Progress(every=self.verbose if self.verbose > 1 else None))
        watch = self.journal.watching()
        with ExitStack() as stack:
            for callback in [*callbacks, *progress]:
                if callable(close := getattr(callback, "close", None)):
                    stack.callback(close)
            if len(chains) == 1:
                watching = [*callbacks_by_chain[0], *callbacks, *progress, *watch]
                if isinstance(sampler := self.recipe.settings.sampler, Tempering):
                    return self._temper(sampler, chains[0], n_steps, watching)
                return [boost(chains[0], n_steps, watching)], None
            if self.verbose:
                say(f"{len(chains)} chains, {at_once} at a time; progress is that of the first")
            callbacks_by_chain = [[*callbacks_by_chain[0], *progress], *callbacks_by_chain[1:]]
            callbacks_by_chain = [[*watching, *watch] for watching in callbacks_by_chain]
            traces = boost_all(chains, n_steps, callbacks_by_chain, callbacks, at_once)
        self._say_ended(traces)
        return traces, None

    def _temper(
        self, sampler: Tempering, chain: Chain, n_steps: int, callbacks: Sequence[Callback]
    ) -> tuple[list[Trace], Exchange]:
        """Run a chain and others that exchange temperatures with it; return the coldest's trace,
        and what the exchange leaves behind.
        """
        at_once = min(sampler.n_replicas, self.n_threads) if self._is_thread_safe else 1
        share = self.n_threads - at_once + 1
        others = [
            self.recipe.make_chain(self.data, share, number=number)
            for number in range(1, sampler.n_replicas)
        ]
        for number, other in enumerate(others, start=1):
            self.journal.follow(f"replica {number}", other)
        seed = self.recipe.settings.seed
        replicas = Replicas([chain, *others], sampler.ladder(), seed, sampler.swap_every)
        if self.verbose:
            say(f"{sampler.n_replicas} chains exchange temperatures; progress is of the coldest")
        step = temper(replicas, n_steps, callbacks, at_once).step
        if self.verbose:
            rates = ", ".join(f"{rate:.0%}" for rate in replicas.swap_rates)
            say(f"accepted exchanges between neighbours, the coldest first: {rates}")
        traces = replicas.traces_at(step)
        return traces[:1], Exchange(tuple(traces[1:]), tuple(replicas.swap_rates.tolist()))

    def _mean_record(self, scoring: Scoring, traces: Sequence[Trace]) -> Record:
        """Return the scores of the mean of several chains.

        With early stopping the model is the mean of the chains' best states, the last of them.
        """
        history, loss = scoring.history(self.n_threads), self.recipe.loss
        assert loss is not None  # a chain has run
        history.record_mean(traces, loss)
        if scoring.early_stopping_rounds is None:
            return Record(*history.best(), history.result)
        name, metric = history.evaluation.watched
        scores = history.result[name][metric.name]
        return Record(len(scores), scores[-1], history.result)
