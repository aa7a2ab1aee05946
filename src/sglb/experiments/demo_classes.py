"""The part of the demo with a classifier: which rows it is unsure about, and for what reason.

Uncertainty has two parts, and each is compared with a measurement that knows nothing of the model.
Where classes mix, outcomes are open: the nearest training rows are of both classes. Where training
rows are far, the model has little to go by.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from sglb.estimators import SGLBClassifier
from sglb.uncertainty import Uncertainty

Floats = NDArray[np.float64]

# Share of the test rows that count as "unsure" when they are compared with the others.
UNSURE = 0.1
# Training rows that a row is compared with.
N_NEIGHBOURS = 10


@dataclass(frozen=True)
class Explained:
    """A classifier on rows it has not seen: labels, predictions, uncertainty and its reasons.

    distance    of the nearest training row, in standard deviations of the features
    mixed       nearest training rows that are not of the most frequent class among them
    shuffled    knowledge uncertainty of the same rows with each column shuffled
    """

    model: SGLBClassifier
    y: NDArray[np.str_]
    chosen: NDArray[np.str_]
    probability: Floats
    uncertainty: Uncertainty
    distance: Floats
    mixed: NDArray[np.intp]
    shuffled: Floats

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Return the mask of the rows that the classifier gets wrong."""
        return np.asarray(self.chosen != self.y)

    @property
    def n_unsure(self) -> int:
        """Return how many rows count as unsure."""
        return round(UNSURE * len(self.y))

    def most(self, values: Floats) -> NDArray[np.bool_]:
        """Return the mask of the rows with the largest values, the share UNSURE of all."""
        mask = np.zeros(len(values), dtype=bool)
        mask[np.argsort(-values, kind="stable")[: self.n_unsure]] = True
        return mask


def explain(seed: int, n_jobs: int | None = None) -> Explained:
    """Train a classifier on scikit-learn's breast cancer table and predict unseen rows."""
    bunch = load_breast_cancer()
    labels = np.asarray(bunch.target_names, dtype=np.str_)[bunch.target]
    train, test = train_test_split(
        np.arange(labels.size), test_size=0.4, random_state=seed, stratify=labels
    )
    names = list(map(str, bunch.feature_names))
    columns = bunch.data.T
    table = pa.table(dict(zip(names, columns, strict=True)))
    model = SGLBClassifier(uncertainty=True, random_state=seed, n_jobs=n_jobs)
    model.fit(table.take(train), labels[train])
    unseen = table.take(test)
    rng = np.random.default_rng(seed)
    strange = pa.table(
        {n: rng.permutation(c) for n, c in zip(names, columns[:, test], strict=True)}
    )
    scaler = StandardScaler().fit(bunch.data[train])
    known = NearestNeighbors(n_neighbors=N_NEIGHBOURS).fit(scaler.transform(bunch.data[train]))
    distance, nearest = known.kneighbors(scaler.transform(bunch.data[test]))
    first = (bunch.target[train][nearest] == 0).sum(axis=1)
    return Explained(
        model=model,
        y=labels[test],
        chosen=model.predict(unseen),
        probability=model.predict_proba(unseen),
        uncertainty=model.predict_uncertainty(unseen),
        distance=distance[:, 0],
        mixed=np.minimum(first, N_NEIGHBOURS - first),
        shuffled=model.predict_uncertainty(strange).knowledge,
    )


def show(out: Console, explained: Explained) -> None:
    """Print the classifier's accuracy, its most important features and its least certain rows."""
    model, y = explained.model, explained.y
    accuracy = accuracy_score(y, explained.chosen)
    loss = log_loss(y, explained.probability, labels=model.classes_)
    out.print(
        f"Breast cancer (scikit-learn): on {y.size} unseen rows the accuracy is {accuracy:.1%},"
        f" the log loss {loss:.3f}."
    )
    share = model.feature_importances_
    top = np.argsort(-share, kind="stable")[:5]
    listed = ", ".join(f"{model.feature_names_in_[j]} ({share[j]:.0%})" for j in top)
    out.print(f"It looks most at {listed}.")
    out.print(unsure_rows(explained))
    out.print(
        "Uncertainty is entropy in nats, 0.693 at most: data uncertainty, which more rows like"
        " these\nwould not lower, and knowledge uncertainty, the disagreement of 64 draws from a"
        " posterior."
    )
    out.print(mistakes(explained))
    out.print(reasons(explained))


def unsure_rows(explained: Explained) -> Table:
    """Return a table of the rows with the largest uncertainty, with what explains it."""
    table = Table("row", title="The rows it is least sure about, and why", title_justify="left")
    for name in ("truth", "prediction"):
        table.add_column(name)
    for name in ("prob.", "data", "knowledge", "mixed", "distance"):
        table.add_column(name, justify="right")
    uncertainty = explained.uncertainty
    total, data = np.asarray(uncertainty.total), np.asarray(uncertainty.data)
    for row in np.argsort(-total, kind="stable")[:8]:
        table.add_row(
            str(row),
            explained.y[row],
            explained.chosen[row],
            f"{explained.probability[row].max():.2f}",
            f"{data[row]:.3f}",
            f"{uncertainty.knowledge[row]:.4f}",
            f"{explained.mixed[row]}/{N_NEIGHBOURS}",
            f"{explained.distance[row]:.1f}",
            style="red" if explained.wrong[row] else None,
        )
    table.caption = (
        f"mixed: of the {N_NEIGHBOURS} nearest training rows, those of the rarer class among them\n"
        "distance: to the nearest training row; its median over all unseen rows is"
        f" {np.median(explained.distance):.1f}"
    )
    table.caption_justify = "left"
    return table


def mistakes(explained: Explained) -> str:
    """Say how many of the mistakes are among the rows the classifier is least sure about."""
    n_rows, n_unsure = explained.y.size, explained.n_unsure
    unsure = int(explained.wrong[explained.most(np.asarray(explained.uncertainty.total))].sum())
    sure = int(explained.wrong.sum()) - unsure
    return (
        f"It is wrong in {unsure} of the {n_unsure} rows it is least sure about"
        f" ({unsure / n_unsure:.0%}) and in {sure} of the other {n_rows - n_unsure}"
        f" ({sure / (n_rows - n_unsure):.1%})."
    )


def reasons(explained: Explained) -> str:
    """Say what the rows with much uncertainty of either kind have in common."""
    knowledge = explained.uncertainty.knowledge
    open_rows = explained.most(np.asarray(explained.uncertainty.data))
    strange = explained.most(knowledge)
    mixed, distance = explained.mixed, explained.distance
    times = explained.shuffled.mean() / knowledge.mean()
    return (
        f"Data: of the {N_NEIGHBOURS} nearest training rows {mixed[open_rows].mean():.1f} are of"
        f" the rarer class in the {explained.n_unsure} rows with most\ndata uncertainty,"
        f" {mixed[~open_rows].mean():.1f} in the others.\n"
        f"Knowledge: the nearest training row is {np.median(distance[strange]):.1f} away in the"
        f" {explained.n_unsure} rows with most of it,\n{np.median(distance[~strange]):.1f} in the"
        " others (medians). With every column shuffled, so that rows are like no training row,\nit"
        f" is {times:.1f} times as large."
    )
