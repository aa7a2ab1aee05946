"""A table dealt to servers gives the model of the same rows in memory, bit for bit."""

import pickle
import threading

import numpy as np
import pandas as pd
import pytest

from sglb import Checkpoint, SGLBClassifier, SGLBRanker, SGLBRegressor
from sglb.cluster import ClusterTable, LocalProcesses, Moved, SerialComm, Server
from sglb.cluster.raw import label_digest
from sglb.labels import LabelColumn
from sglb.target import Target
from test_held import awkward_frame, fitted, model_bytes, with_levels


def rows_of(table, begin, end):
    return table[begin:end] if isinstance(table, np.ndarray) else table.iloc[begin:end]


def hands(table, cuts, n_servers):
    """Pieces of a table, cut before some rows, of each server: not in their order."""
    ends = [0, *cuts, len(table)]
    pieces = {k: rows_of(table, *ends[k : k + 2]) for k in range(len(ends) - 1)}
    return [
        {k: piece for k, piece in pieces.items() if (k + 1) % n_servers == server}
        for server in range(n_servers)
    ]


def on_servers(table, cuts=(1, 300, 300, 420), n_servers=3, comm=None):
    """A table on servers, the last of which holds nothing; one piece is empty."""
    held = hands(table, cuts, n_servers)
    if comm is None:
        comm = SerialComm([Server() for _ in range(n_servers + 1)])
        for server, pieces in zip(comm.servers, held, strict=False):
            server.read(pieces)
    return ClusterTable(comm, sorted(k for each in held for k in each), rows_of(table, 0, 0))


def test_numbers_missing_values_and_bundles():
    frame, y, _ = awkward_frame(one_hot=6)
    expected = fitted(SGLBRegressor, frame, y)
    assert model_bytes(fitted(SGLBRegressor, on_servers(frame), y)) == model_bytes(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_arrays(dtype):
    frame, y, _ = awkward_frame()
    X = (10 * frame.fillna(0.0).to_numpy()).astype(dtype)
    expected = fitted(SGLBRegressor, X, y)
    held = fitted(SGLBRegressor, on_servers(X), y)
    assert model_bytes(held) == model_bytes(expected)
    assert not hasattr(held, "feature_names_in_")


def test_categories_and_their_copies():
    frame, y, rng = awkward_frame()
    frame, positive = with_levels(frame, rng), np.where(y > 0, "yes", "no")
    expected = fitted(SGLBClassifier, frame, positive)
    assert expected._fitted().recipe.encoding.tables  # means by level: several copies of the rows
    held = fitted(SGLBClassifier, on_servers(frame), positive)
    assert model_bytes(held) == model_bytes(expected)


def test_several_classes_weights_of_zero_and_early_stopping():
    frame, y, rng = awkward_frame()
    frame, classes = with_levels(frame, rng), np.digitize(y, [-1.0, 0.5])
    weight = rng.integers(0, 3, len(y)).astype(float)
    sets = [(frame[:100], classes[:100])]
    settings = {"n_estimators": 40, "early_stopping_rounds": 3, "learning_rate": 0.5}
    models = [
        fitted(SGLBClassifier, table, classes, weight, fit={"eval_set": sets}, **settings)
        for table in (frame, on_servers(frame))
    ]
    assert models[0].best_iteration_ < 40
    assert model_bytes(models[1]) == model_bytes(models[0])
    assert models[1].evals_result_ == models[0].evals_result_


def test_queries():
    frame, y, rng = awkward_frame()
    sizes = rng.integers(1, 20, 200)
    ends = np.cumsum(sizes)
    ends = ends[ends < 700]
    group, relevance = np.searchsorted(ends, np.arange(700), "right"), np.digitize(y, [0, 1, 2])
    cuts = [int(ends[k]) for k in (5, 20, 40)]
    expected = fitted(SGLBRanker, frame, relevance, group)
    held = fitted(SGLBRanker, on_servers(frame, cuts), relevance, group)
    assert model_bytes(held) == model_bytes(expected)
    with pytest.raises(ValueError, match=r"query 6 has rows in partitions 0 and 1 of X"):
        fitted(SGLBRanker, on_servers(frame, [int(ends[5]) + 1]), relevance, group)


def test_several_chains_uncertainty_and_a_searched_length():
    frame, y, _ = awkward_frame()
    for settings in ({"n_chains": 2, "uncertainty": True}, {"n_estimators": "auto"}):
        expected = fitted(SGLBRegressor, frame, y, **settings)
        held = fitted(SGLBRegressor, on_servers(frame), y, **settings)
        assert model_bytes(held) == model_bytes(expected)


def test_replica_exchange():
    frame, y, _ = awkward_frame()
    expected = fitted(SGLBRegressor, frame, y, sampler="tempering")
    held = fitted(SGLBRegressor, on_servers(frame), y, sampler="tempering")
    assert model_bytes(held) == model_bytes(expected)


def test_infinity_is_named_by_its_row_in_the_table():
    frame, y, _ = awkward_frame()
    frame.loc[555, "missing"] = np.inf
    with pytest.raises(ValueError, match="infinity in column 'missing', row 555"):
        fitted(SGLBRegressor, on_servers(frame), y)
    X = frame.to_numpy()
    with pytest.raises(ValueError, match="infinity in column 2, row 555"):
        fitted(SGLBRegressor, on_servers(X), y)


def test_a_checkpoint_is_resumed(tmp_path):
    frame, y, _ = awkward_frame()
    expected = fitted(SGLBRegressor, on_servers(frame), y)
    path = tmp_path / "half"

    class Stopping:
        def start(self, info): ...

        def step(self, info):
            if info.step == 5:
                raise InterruptedError

        def finish(self, info): ...

    fit = {"callbacks": [Checkpoint(path, every=1), Stopping()]}
    with pytest.raises(InterruptedError):
        fitted(SGLBRegressor, on_servers(frame), y, fit=fit)
    resumed = fitted(SGLBRegressor, on_servers(frame), y, fit={"resume_from": path})
    assert model_bytes(resumed) == model_bytes(expected)
    with pytest.raises(ValueError, match="X differs"):
        fitted(SGLBRegressor, on_servers(frame[::-1]), y, fit={"resume_from": path})


class Losing(SerialComm):
    """Loses a server at the n-th question; another one reads its pieces anew."""

    def __init__(self, held, at):
        super().__init__([Server() for _ in held])
        for server, pieces in zip(self.servers, held, strict=True):
            server.read(pieces)
        self.held, self.at = held, at

    def ask(self, question, *arguments, shares=None):
        self.at -= 1
        if self.at == 0:
            self.servers[1] = Server()
            self.servers[0].read(self.held[1])
            self.epoch += 1
            raise Moved
        return super().ask(question, *arguments, shares=shares)


@pytest.mark.parametrize("at", [*range(2, 14), 20, 30])
def test_a_server_lost_at_any_time_changes_nothing(at):
    frame, y, rng = awkward_frame(one_hot=6)
    frame, weight = with_levels(frame, rng), rng.integers(0, 3, len(y)).astype(float)
    expected = fitted(SGLBRegressor, frame, y, weight)
    comm = Losing(hands(frame, (100, 400), 2), at)
    table = on_servers(frame, (100, 400), 2, comm)
    assert model_bytes(fitted(SGLBRegressor, table, y, weight)) == model_bytes(expected)
    assert comm.epoch == 1


@pytest.mark.parametrize("change", ["another order", "fewer rows"])
def test_pieces_that_are_read_again_must_be_the_same(change):
    frame, y, _ = awkward_frame()
    held = hands(frame, (100, 400), 2)
    comm = Losing(held, 20)
    table = on_servers(frame, (100, 400), 2, comm)
    number, piece = next(iter(held[1].items()))
    held[1][number] = piece[::-1] if change == "another order" else piece[1:]
    with pytest.raises(ValueError, match=f"partition {number} of X has other rows than before"):
        fitted(SGLBRegressor, table, y)


def test_pieces_may_have_types_of_their_own():
    frame, y, _ = awkward_frame()
    frame["late"] = np.where(np.arange(len(y)) < 300, frame["ties"], frame["number"])
    expected = fitted(SGLBRegressor, frame, y)
    first = frame.astype({"late": np.int64}).iloc[:300]
    servers = [Server(), Server()]
    servers[0].read({0: first})
    servers[1].read({1: frame.iloc[300:]})
    table = ClusterTable(SerialComm(servers), [0, 1], frame.iloc[:0])
    assert model_bytes(fitted(SGLBRegressor, table, y)) == model_bytes(expected)
    columns = first[["ties", "late"]], frame[["ties", "late"]].iloc[300:]
    alone = fitted(SGLBRegressor, pd.concat(columns), y)
    servers[0].read({0: columns[0]})
    servers[1].read({1: columns[1]})
    table = ClusterTable(SerialComm(servers), [0, 1], columns[0].iloc[:0])
    assert model_bytes(fitted(SGLBRegressor, table, y)) == model_bytes(alone)


def test_rows_are_taken_of_those_that_are_taken():
    frame, _, rng = awkward_frame()
    values = frame[["number", "missing"]].to_numpy()
    numbers, rows = on_servers(values).held_numbers([0, 1]), np.arange(700)
    for share in (0.7, 0.5):
        kept = rng.random(len(rows)) < share
        numbers, rows = numbers.take(kept), rows[kept]
    assert len(numbers) == len(rows)
    assert np.array_equal(numbers.sample(np.arange(len(rows))), values[rows], equal_nan=True)


def test_processes():
    frame, y, rng = awkward_frame()
    frame = with_levels(frame, rng)
    cuts = (100, 100, 400)
    for weight in (None, rng.integers(0, 3, len(y)).astype(float)):
        expected = fitted(SGLBRegressor, frame, y, weight)
        with LocalProcesses(hands(frame, cuts, 2), raw=True) as comm:
            held = fitted(SGLBRegressor, on_servers(frame, cuts, 2, comm), y, weight)
        assert model_bytes(held) == model_bytes(expected)


def test_chains_in_threads_ask_processes_in_turns():
    frame, _, _ = awkward_frame()
    n_rows = []
    with LocalProcesses([{0: frame}], raw=True) as comm:

        def ask():
            for _ in range(300):
                n_rows.extend(comm.ask("ask_pieces", "outline", (), {}))

        threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert n_rows == [[(0, (len(frame), list(frame.columns)))]] * 900


def test_equal_weights_are_equal_after_a_journey():
    target = Target.of([1.0, 2.0], classes=["a", "b"])
    copy = pickle.loads(pickle.dumps(target))
    assert copy.kernel_weight is None
    assert copy.values.tolist() == [1.0, 2.0]
    assert copy.task == "binary"
    weighted = pickle.loads(pickle.dumps(Target.of([1.0, 2.0], [1.0, 1.0])))
    assert weighted.kernel_weight is not None


# --- what pieces must have in common ---


def in_two_pieces(first, second):
    servers = [Server(), Server()]
    servers[0].read({0: first})
    servers[1].read({1: second})
    return ClusterTable(SerialComm(servers), [0, 1], first[:0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda piece: piece[piece.columns[::-1]],
            r"another order: \['constant', .* instead",
        ),
        (lambda piece: piece.rename(columns={"ties": "bonds"}), r"\['bonds'\] and not \['ties'\]"),
        (lambda piece: piece.drop(columns="ties"), r"\[\] and not \['ties'\]"),
        (lambda piece: piece.to_numpy(), "are 5, those of the table .*constant"),
    ],
    ids=["order", "name", "number", "kind"],
)
def test_a_piece_with_other_columns_is_named(change, message):
    frame, _, _ = awkward_frame()
    with pytest.raises(ValueError, match=f"partition 1 of X .*{message}"):
        in_two_pieces(frame[:300], change(frame[300:]))


def test_the_index_of_a_frame_is_no_column():
    frame, y, rng = awkward_frame()
    frame = frame.set_index(rng.permutation(700))
    expected = fitted(SGLBRegressor, frame, y)
    assert model_bytes(fitted(SGLBRegressor, on_servers(frame), y)) == model_bytes(expected)


def test_an_array_of_another_width_is_named():
    X = np.zeros((10, 3))
    with pytest.raises(ValueError, match="of partition 1 of X are 2, those of the table 3"):
        in_two_pieces(X, X[:, :2])


def test_too_many_rows_are_rejected_before_they_are_read(monkeypatch):
    frame, _, _ = awkward_frame()
    monkeypatch.setattr("sglb.cluster.table.MOST_ROWS", 699)
    with pytest.raises(ValueError, match="at most 699 rows can be trained on, not 700"):
        on_servers(frame)


def test_a_divided_query_is_named_by_its_id():
    frame, y, _ = awkward_frame()
    ids, relevance = np.repeat(["last", "first"], [350, 350]), np.digitize(y, [0, 1, 2])
    table = on_servers(frame, (350, 500))
    for group in (ids, pd.Series(ids), list(ids)):
        with pytest.raises(ValueError, match="query 'first' has rows in partitions 1 and 2"):
            fitted(SGLBRanker, table, relevance, group)
    with pytest.raises(ValueError, match="query 1 has rows in partitions 1 and 2"):
        fitted(SGLBRanker, table, relevance, [350, 350])


def test_labels_that_are_others_when_they_are_read_again_are_noticed():
    frame, y, rng = awkward_frame()
    frame = with_levels(frame, rng)[["few", "many"]]
    held = hands(frame, (100, 400), 2)
    comm = Losing(held, 4)
    table = on_servers(frame, (100, 400), 2, comm)
    number, piece = next(iter(held[1].items()))
    held[1][number] = piece[::-1]
    with pytest.raises(ValueError, match=f"partition {number} of X has other rows than before"):
        fitted(SGLBRegressor, table, y)


def test_labels_have_one_digest_whatever_their_numbers():
    first = LabelColumn(np.array([0, 1, -1, 0], dtype=np.int32), ["b", "a", "unused"])
    second = LabelColumn(np.array([1, 2, 0, 1], dtype=np.int32), [None, "b", "a"])
    assert label_digest(first) == label_digest(second)
    assert label_digest(first.take([1, 0, 2, 3])) != label_digest(first)


def test_labels_are_merged_here():
    frame, _, rng = awkward_frame()
    frame = with_levels(frame, rng)
    for column, name in enumerate(frame.columns):
        if not isinstance(frame[name].dtype, pd.CategoricalDtype):
            continue
        labels = on_servers(frame).held_labels(column)
        assert len(set(labels.labels)) == len(labels.labels)
        values = [None if index < 0 else labels.labels[index] for index in labels.index]
        expected = [None if value != value else str(value) for value in frame[name]]
        assert values == expected


def test_targets_are_not_held_twice():
    frame, y, _ = awkward_frame()
    pieces = on_servers(frame).pieces
    asked, ask = [], pieces.comm.ask

    def remembering(*arguments, shares=None):
        asked.append(shares)
        return ask(*arguments, shares=shares)

    pieces.comm.ask = remembering
    table = ClusterTable(pieces.comm, pieces.numbers, frame[:0])
    fitted(SGLBRegressor, table, y)
    assert [question.name for question, _ in table.pieces._changes][-1] == "lay_out"
    lasting = table.pieces._changes[-1][0].shares
    assert lasting[1][0] is not lasting[1][0]  # made anew each time
