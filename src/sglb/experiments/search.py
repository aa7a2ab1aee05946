"""Random search that can be stopped, resumed, extended and shared by processes.

Trial k of a search has parameters and noise that follow from its seed alone,

    seed = SHA-256(conditions, k),

so it does not matter which process runs it, when, or after how many interruptions. Results are kept
in an Optuna journal; a process claims the first unclaimed trial, and claims of processes that died
are released. The loss of each test row is kept for a trial that is the best so far.
"""

import hashlib
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sglb.datasets import data_folder
from sglb.errors import ChainDiverged
from sglb.estimators import SGLBClassifier
from sglb.experiments.real_data import CATBOOST_METHODS, Goal, MethodName, Split, split_table
from sglb.experiments.tuned_catboost import TunedCatBoost
from sglb.files import whole_file
from sglb.losses import Sla

if TYPE_CHECKING:
    import optuna

Floats = NDArray[np.float64]
Classifier = SGLBClassifier | TunedCatBoost

NOT_INSTALLED = 'the search needs optuna: pip install "sglb[paper]"'
BORDERS, WIDTH = 64, 0.1
METRIC: dict[Goal, str] = {"zero-one": "error", "logloss": "logloss"}
SAMPLER: dict[MethodName, str] = {
    "SGB": "stochastic",
    "SGB-structures": "plain",
    "SGLB": "langevin",
}


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise ImportError(NOT_INSTALLED) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@dataclass(frozen=True)
class Trial:
    """A finished trial: its number, parameters, score on the validation rows and best step."""

    number: int
    parameters: dict[str, float]
    score: float
    n_trees: int
    seconds: float

    @property
    def rank(self) -> tuple[float, int]:
        """Sort key: smaller scores first, then smaller numbers."""
        return self.score, self.number


@dataclass(frozen=True)
class Search:
    """The search of a method on a table: all conditions of its results, and their folder."""

    folder: Path
    goal: Goal
    table: str
    method: MethodName
    max_trees: int = 1000
    seed: int = 0

    @property
    def name(self) -> str:
        """All conditions of a trial's result, so that files never mix conditions."""
        conditions = (
            self.goal,
            self.table,
            self.method,
            f"trees{self.max_trees}",
            f"seed{self.seed}",
        )
        return "-".join(conditions)

    def seed_of(self, number: int) -> int:
        """Return the seed of trial `number`."""
        words = f"{self.goal}, {self.table}, {self.method}, {self.seed}, {number}"
        return int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "little")

    def _losses_file(self, number: int) -> Path:
        return self.folder / "test_losses" / self.name / f"{number}.npy"

    def study(self) -> "optuna.Study":
        """Open the search in its journal, which is created if necessary."""
        library = _optuna()
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        self.folder.mkdir(parents=True, exist_ok=True)
        journal = str(self.folder / "trials.journal")
        # This lock opens a file, which works even where links cannot be created.
        backend = JournalFileBackend(journal, lock_obj=JournalFileOpenLock(journal))
        study: optuna.Study = library.create_study(
            storage=JournalStorage(backend),
            study_name=self.name,
            direction="minimize",
            load_if_exists=True,
        )
        return study

    def finished(self, n_trials: int) -> list[Trial]:
        """Return those of the first `n_trials` trials that are finished, by number."""
        finished: dict[int, Trial] = {}
        for frozen in self.study().get_trials(deepcopy=False):
            number = frozen.user_attrs.get("number")
            if frozen.state.name == "COMPLETE" and number is not None and number < n_trials:
                assert frozen.value is not None
                facts = frozen.user_attrs
                finished[number] = Trial(
                    number, facts["parameters"], frozen.value, facts["n_trees"], facts["seconds"]
                )
        return [finished[number] for number in sorted(finished)]

    def best(self, n_trials: int) -> Trial | None:
        """Return the finished trial with the smallest score."""
        return min(self.finished(n_trials), key=lambda trial: trial.rank, default=None)

    def test_losses(self, trial: Trial) -> Floats:
        """Return the loss of each test row under the model of a trial."""
        path = self._losses_file(trial.number)
        if not path.is_file():
            losses = evaluate(self, trial.number)[1]()
            self._keep(trial.number, losses)
        stored: Floats = np.load(path, allow_pickle=False)
        return stored

    def _keep(self, number: int, losses: Floats) -> None:
        path = self._losses_file(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as draft:
            np.save(draft, losses)

    def check_rows(self, study: "optuna.Study | None" = None) -> None:
        """Reject rows that differ from those the search began with."""
        study = self.study() if study is None else study
        rows = _split(self.table, self.seed).fingerprint
        if study.user_attrs.setdefault("rows", rows) != rows:
            raise ValueError(
                f"{self.folder} holds trials on another version of table {self.table!r}; choose"
                " another folder"
            )
        study.set_user_attr("rows", rows)

    def run_next(self, n_trials: int) -> int | None:
        """Claim and run the first unclaimed trial; return its number, None if none is left.

        A trial that is interrupted by an error or a signal stays unfinished and is run again.
        """
        study = self.study()
        self.check_rows(study)
        claimed = _claim(study, n_trials)
        if claimed is None:
            return None
        ticket, number = claimed
        try:
            trial, losses = evaluate(self, number)
        except BaseException:
            study.tell(ticket, state=_optuna().trial.TrialState.FAIL)
            raise
        best = self.best(n_trials)
        if best is None or trial.rank < best.rank:
            self._keep(number, losses())
        # A claim that another process has given up meanwhile is run again.
        with suppress(_optuna().exceptions.UpdateFinishedTrialError):
            ticket.set_user_attr("parameters", trial.parameters)
            ticket.set_user_attr("n_trees", trial.n_trees)
            ticket.set_user_attr("seconds", trial.seconds)
            study.tell(ticket, trial.score)
        return number


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_alive(owner: str) -> bool:
    """Whether the owner of a claim may still work on it; this process has no other claims."""
    host, _, process = owner.rpartition(":")
    if owner == _owner():
        return False
    if host != socket.gethostname():
        return True  # a process of another host: unknown
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _claim(study: "optuna.Study", n_trials: int) -> "tuple[optuna.Trial, int] | None":
    """Claim the first trial that is neither finished nor claimed by a living process.

    Two processes may claim the same trial at the same moment. Both get the same result.
    """
    fail = _optuna().trial.TrialState.FAIL
    taken = set()
    for frozen in study.get_trials(deepcopy=False):
        number, state = frozen.user_attrs.get("number"), frozen.state.name
        if number is None or state not in ("COMPLETE", "RUNNING"):
            continue
        if state == "RUNNING" and not _is_alive(frozen.user_attrs["owner"]):
            study.tell(frozen.number, state=fail, skip_if_finished=True)
            continue
        taken.add(number)
    free = next((number for number in range(n_trials) if number not in taken), None)
    if free is None:
        return None
    ticket = study.ask()
    ticket.set_user_attr("owner", _owner())
    ticket.set_user_attr("number", free)
    return ticket, free


def draw(method: MethodName, seed: int) -> dict[str, float]:
    """Draw a trial's parameters from the paper's distributions by Optuna's random sampler."""
    optuna = _optuna()
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed)).ask()
    drawn = {
        "learning_rate": trial.suggest_float("learning_rate", 1e-5, 1.0, log=True),
        "max_depth": trial.suggest_int("max_depth", 6, 10),
    }
    if method in ("SGLB", "CatBoost-SGLB"):
        drawn["shrink_rate"] = trial.suggest_float("shrink_rate", 1e-5, 1e-2, log=True)
        diffusion = trial.suggest_float("diffusion_temperature", 1e2, 1e5, log=True)
        drawn["temperature"] = 1.0 / diffusion
    else:
        drawn["l2_regularization"] = trial.suggest_float("l2_regularization", 0.1, 10.0, log=True)
        rows = "structure_sample" if method == "SGB-structures" else "subsample"
        # Uniform on (0, 1], because Optuna draws from [0, 1).
        drawn[rows] = 1.0 - trial.suggest_float("left_out", 0.0, 1.0)
    return drawn


def make_model(search: Search, number: int) -> Classifier:
    """Return the estimator of trial `number`, ready to fit."""
    seed = search.seed_of(number)
    drawn = draw(search.method, seed)
    if search.method in CATBOOST_METHODS:
        return TunedCatBoost(drawn, search.max_trees, BORDERS, WIDTH, seed)
    parameters: dict[str, Any] = {"l2_regularization": 0.0, "structure_sample": 1.0, **drawn}
    return SGLBClassifier(
        loss=Sla(WIDTH) if search.goal == "zero-one" else "logistic",
        sampler=SAMPLER[search.method],
        n_estimators=search.max_trees,
        # Runs to the last tree, then returns to the best iterate.
        early_stopping_rounds=search.max_trees,
        max_bins=BORDERS + 1,
        leaf_method="gradient",
        init="zero",
        random_state=seed,
        n_jobs=1,
        **parameters,
    )


def use_tables(folder: Path | None) -> None:
    """Read tables from `folder` unless it is None: a worker process may have been started with
    another folder.
    """
    if folder is not None:
        os.environ["SGLB_DATA"] = str(folder.resolve())


def _split(table: str, seed: int) -> Split:
    return _split_in(data_folder(), table, seed)


@cache
def _split_in(folder: Path | None, table: str, seed: int) -> Split:
    """Read a table once for all trials, and again if the folder has changed."""
    return split_table(table, seed)


def fit(search: Search, number: int, split: Split) -> Classifier:
    """Fit the model of trial `number` to a split; validation rows choose its best iterate."""
    model = make_model(search, number)
    return model.fit(*split.train, eval_set=[split.valid], eval_metric=METRIC[search.goal])


def evaluate(search: Search, number: int) -> tuple[Trial, Callable[[], Floats]]:
    """Run trial `number`; return it and a function that computes the loss of each test row."""
    split = _split(search.table, search.seed)
    started = time.perf_counter()
    parameters = draw(search.method, search.seed_of(number))
    try:
        model = fit(search, number, split)
    except ChainDiverged:
        # Parameters that diverge are a result, too, but never the best.
        return Trial(number, parameters, float("inf"), 0, 0.0), lambda: np.full(0, np.inf)
    assert model.best_score_ is not None
    assert model.best_iteration_ is not None
    seconds = time.perf_counter() - started
    trial = Trial(number, parameters, model.best_score_, model.best_iteration_, seconds)
    return trial, lambda: row_losses(model, search.goal, *split.test)


def row_losses(model: Classifier, goal: Goal, X: Any, y: NDArray[Any]) -> Floats:
    """Return the 0-1 loss or minus the log probability of each label."""
    if goal == "zero-one" or isinstance(model, TunedCatBoost):
        return np.asarray(model.predict(X) != y, dtype=np.float64)
    column = np.searchsorted(model.classes_, y)
    probability = model.predict_proba(X)[np.arange(len(y)), column]
    return -np.log(np.maximum(probability, np.finfo(np.float64).eps))
