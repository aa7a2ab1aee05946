"""Servers of rows: processes, lost servers, errors, and how often they are asked."""

import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest

from dealing import deal
from own_losses import Squared
from problems import dealt, hands
from sglb import SGLBRegressor, leaves, slopes
from sglb.boosting import boost
from sglb.chain import Chain
from sglb.cluster import ClusterTable, LocalProcesses, LostServerError, Moved, SerialComm, Server
from sglb.cluster.dealt import check_divisible
from sglb.cluster.parts import total
from sglb.errors import NonFiniteGradient
from sglb.leaves import LeafRule, NewtonPath
from sglb.losses import UserLoss
from sglb.structure import GreedySearch
from sglb.trace import Trace
from test_shards import LANGEVIN, NEWTON, RULES, Problem, assert_same


class Run:
    """A chain on servers, made but not run."""

    def __init__(self, problem, comm, pieces, rule="few rows", leaf_rule=NEWTON, number=0):
        trace = Trace(problem.bins, 4, np.linspace(-0.2, 0.3, problem.loss.n_outputs))
        data = dealt(problem.data, comm, pieces)
        self.rows = data.start_rows(problem.loss, trace, newton=True, number=number)
        self.chain = Chain(self.rows, LANGEVIN, RULES[rule](), leaf_rule, trace, seed=7)

    def trace(self, n_steps=8):
        return boost(self.chain, n_steps)


class Counting(SerialComm):
    """Writes down what is asked."""

    def __init__(self, servers):
        super().__init__(servers)
        self.asked = []

    def ask(self, question, *arguments):
        self.asked.append(arguments[2] if question == "ask" else question)
        return super().ask(question, *arguments)


def in_two_servers(pieces):
    return [Server(held) for held in hands(pieces, 2)]


@pytest.mark.parametrize(
    ("rule", "questions"),
    [
        ("few rows", ["refresh", "draw", "leaf_sums"]),
        ("all rows", ["refresh", "draw", "leaf_sums"]),
        ("some outputs", ["refresh", "draw", "squares", "pack", "leaf_sums"]),
    ],
)
def test_a_tree_takes_three_questions(rule, questions):
    problem = Problem("softmax" if rule == "some outputs" else "logistic", n_rows=20_011)
    pieces = problem.pieces(3)
    comm = Counting(in_two_servers(pieces))
    Run(problem, comm, pieces, rule).trace(3)
    second, last = comm.asked.index("leaf_sums") + 1, -comm.asked[::-1].index("leaf_sums")
    assert comm.asked[second:last] == questions * 2


def test_words_that_were_packed_for_another_number_of_rows_are_packed_again():
    def narrow(drawn):
        return drawn._replace(words=drawn.words._replace(lowest=1, highest=1))

    problem = Problem(n_rows=20_011)
    pieces = problem.pieces(3)
    comm = Counting(in_two_servers(pieces))
    run = Run(problem, comm, pieces)
    packed = run.rows._packed
    run.rows._packed = lambda drawn: packed([narrow(each) for each in drawn])
    assert_same(run.trace(3), problem.alone(LANGEVIN, RULES["few rows"], NEWTON, n_steps=3))
    assert comm.asked.count("pack") == 3


def test_outputs_are_chosen_by_evenly_spaced_rows_of_all_pieces(monkeypatch):
    monkeypatch.setitem(RULES, "many rows", many_rows_and_few_outputs)
    problem = Problem("softmax", n_rows=5003)
    squares = {}
    for n_pieces in (1, 3):
        pieces = problem.pieces(n_pieces)
        comm = Answering(in_two_servers(pieces))
        assert_same(
            Run(problem, comm, pieces, "many rows").trace(2),
            problem.alone(LANGEVIN, many_rows_and_few_outputs, NEWTON, n_steps=2),
        )
        squares[n_pieces] = [total(answers, np.int64).tolist() for answers in comm.squares]
    assert len(squares[1]) == 2
    assert squares[3] == squares[1]


class Answering(SerialComm):
    """Keeps what servers say of the squares of outputs."""

    def __init__(self, servers):
        super().__init__(servers)
        self.squares = []

    def ask(self, question, *arguments):
        answers = super().ask(question, *arguments)
        if question == "ask" and arguments[2] == "squares":
            self.squares.append(answers)
        return answers


def many_rows_and_few_outputs():
    return GreedySearch(4, l2=1.0, newton=True, structure_rows=4000, structure_outputs=2)


def test_chains_on_the_same_servers_take_turns():
    problem = Problem()
    pieces = problem.pieces(3)
    comm = SerialComm(in_two_servers(pieces))
    runs = [Run(problem, comm, pieces, number=number) for number in range(2)]
    for _ in range(5):
        for run in runs:
            run.chain.step()
    expected = problem.alone(LANGEVIN, RULES["few rows"], NEWTON, n_steps=5)
    for run in runs:
        assert_same(run.chain.trace, expected)
        assert run.rows.energy().value() == runs[0].rows.energy().value()


def test_what_is_known_of_all_rows_is_that_of_one_shard():
    problem = Problem(weighted=True, n_copies=4)
    pieces = problem.pieces(3)
    run = Run(problem, SerialComm(in_two_servers(pieces)), pieces)
    trace = run.trace(3)
    alone = Problem(weighted=True, n_copies=4)
    shard = Run(alone, SerialComm([Server(deal(alone.data, [0]))]), deal(alone.data, [0]))
    shard.trace(3)
    rows, all_rows = run.rows, shard.rows
    assert rows.energy().value() == all_rows.energy().value()
    assert rows.squared_residuals([trace]).value() == all_rows.squared_residuals([trace]).value()
    assert np.array_equal(rows.raw, all_rows.raw)
    for part, whole in zip(rows.losses(trace.offset), all_rows.losses(trace.offset), strict=True):
        assert sorted(part) == sorted(whole)


@pytest.mark.parametrize("n_columns", [5, 200])
def test_a_sample_is_a_byte_for_each_column_and_eight_for_each_output(n_columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, n_columns)).astype(np.float32)
    comm = Weighing([Server(), Server()])
    for server, rows in zip(comm.servers, (X[:20_000], X[20_000:]), strict=True):
        server.read({len(rows) // 40_000: rows})
    SGLBRegressor(n_estimators=2, max_depth=3, structure_sample=30_000).fit(
        ClusterTable(comm, [0, 1], X[:0]), X[:, 0]
    )
    assert comm.drawn
    for n_rows, size in comm.drawn:
        assert n_rows == pytest.approx(30_000, rel=0.1)
        assert n_rows * (n_columns + 8) < size < n_rows * (n_columns + 8) + 2_000


class Weighing(SerialComm):
    """Notes the rows of each sample, and the bytes of the messages that bring it."""

    def __init__(self, servers):
        super().__init__(servers)
        self.drawn = []

    def ask(self, question, *arguments, shares=None):
        answers = super().ask(question, *arguments, shares=shares)
        if question == "ask" and arguments[2] == "draw":
            n_rows = sum(len(drawn.words.codes) for answer in answers for _, drawn in answer)
            self.drawn.append((n_rows, sum(len(pickle.dumps(answer)) for answer in answers)))
        return answers


# --- lost servers ---


class Losing(SerialComm):
    """Loses a server at the n-th question, before or after it has answered, and replaces it."""

    def __init__(self, pieces, at, *, answered):
        super().__init__(in_two_servers(pieces))
        self.pieces, self.at, self.answered = pieces, at, answered

    def ask(self, question, *arguments):
        self.at -= 1
        if self.at != 0:
            return super().ask(question, *arguments)
        if self.answered:
            super().ask(question, *arguments)
        held = self.servers[1].pieces
        self.servers[1] = Server()
        self.servers[0].hold(held)  # the other one takes its pieces over
        self.epoch += 1
        raise Moved


@pytest.mark.parametrize("stored", [False, True], ids=["evaluated", "stored"])
@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 15))
def test_a_lost_server_changes_nothing(at, answered, stored, monkeypatch):
    monkeypatch.setattr(slopes, "STORED_ROWS", 10**9 if stored else 0)
    monkeypatch.setattr(leaves, "PART_ROWS", 3_000)
    problem, several = Problem(n_rows=5003), LeafRule("newton", 1.0, steps=2)
    pieces = problem.pieces(3)
    run = Run(problem, Losing(pieces, at, answered=answered), pieces, leaf_rule=several)
    assert_same(run.trace(4), problem.alone(LANGEVIN, RULES["few rows"], several, n_steps=4))
    assert run.rows._comm.epoch == 1


def test_a_chain_that_does_not_know_of_pieces_that_have_come_is_told():
    problem = Problem(n_rows=5003)
    pieces = problem.pieces(3)
    comm = SerialComm(in_two_servers(pieces))
    run = Run(problem, comm, pieces)
    run.trace(2)
    comm.servers[0].hold(comm.servers[1].pieces)
    comm.servers[1] = Server()
    with pytest.raises(Moved):
        comm.ask("ask", 0, None, "energy")
    # A chain that was about to ask when another one had the pieces moved begins anew.
    assert_same(run.trace(4), problem.alone(LANGEVIN, RULES["few rows"], NEWTON, n_steps=6))


# --- processes ---


def test_processes_give_the_same_model():
    problem = Problem("softmax", weighted=True)
    pieces = problem.pieces(3)
    with LocalProcesses(hands(pieces, 2)) as comm:
        run = Run(problem, comm, pieces, "some outputs")
        result = run.trace()
        raw = run.rows.raw
    expected = problem.alone(LANGEVIN, RULES["some outputs"], NEWTON)
    assert_same(result, expected)
    assert np.array_equal(raw, expected.replay(problem.data.code_columns)[0])
    assert not any(process.is_alive() for process in comm._processes)


def test_a_process_that_ends_is_told_of():
    problem = Problem()
    pieces = problem.pieces(2)
    with LocalProcesses(hands(pieces, 2)) as comm:
        run = Run(problem, comm, pieces)
        run.trace(2)
        os.kill(comm._processes[1].pid, signal.SIGKILL)
        with pytest.raises(LostServerError, match="process 1 has ended with exit code -9"):
            run.trace(2)
    assert not any(process.is_alive() for process in comm._processes)


class OddError(ValueError):
    """An error that cannot be unpickled."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class OddBins:
    """Bins whose error cannot be sent."""

    def encode(self, values, n_threads):
        raise OddError("this", "that")


def test_what_cannot_be_sent_is_an_error_and_the_servers_go_on():
    with LocalProcesses([{0: np.zeros((3, 1))}, {1: np.zeros((4, 1))}], raw=True) as comm:
        with pytest.raises(AttributeError, match="no_question"):
            comm.ask("no_question")
        with pytest.raises(RuntimeError, match=r"OddError\('this and that'\)"):
            comm.ask("ask_pieces", "encode", (OddBins(), np.dtype(np.float64)), {})
        assert len(comm.ask("ask_pieces", "outline", (), {})) == 2


def test_processes_end_if_rows_cannot_be_sent_to_all():
    before = multiprocessing.active_children()
    with pytest.raises((AttributeError, pickle.PicklingError)):
        LocalProcesses([{0: np.zeros((3, 1))}, {1: lambda: None}], raw=True)
    assert multiprocessing.active_children() == before


def test_servers_are_asked_no_more_after_an_interrupt(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    with LocalProcesses([{0: np.zeros((3, 1))}], raw=True) as comm:
        monkeypatch.setattr(comm, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            comm.ask("ask_pieces", "outline", (), {})
        with pytest.raises(LostServerError, match="was interrupted"):
            comm.ask("ask_pieces", "outline", (), {})


class Breaking(Squared):
    """A gradient that is not finite in one row, by its y."""

    def gradient(self, y, raw):
        return np.where(y == 3.5, np.nan, raw - y)

    def hessian(self, y, raw):
        return np.ones_like(raw)


def test_an_error_of_a_row_names_its_number_in_the_table():
    problem = Problem("squared")
    problem.loss = UserLoss(Breaking()).adapt(problem.data.target)
    problem.data.target.values[777] = 3.5
    pieces = problem.pieces(3)
    with LocalProcesses(hands(pieces, 2)) as comm:
        run = Run(problem, comm, pieces)
        for _ in range(2):  # the servers are still there
            with pytest.raises(NonFiniteGradient, match="in row 777, output 0 at step 0"):
                run.chain.step()


# --- what cannot be dealt ---


def test_a_loss_whose_rows_depend_on_one_another_is_rejected():
    loss = UserLoss(Squared())
    with pytest.raises(ValueError, match="depend on all others"):
        check_divisible(loss)


def test_a_trace_without_trees_is_rejected():
    problem = Problem()
    pieces = problem.pieces(2)
    trace = Trace(problem.bins, 4, np.zeros(1), keep_trees=False)
    data = dealt(problem.data, SerialComm(in_two_servers(pieces)), pieces)
    with pytest.raises(ValueError, match="keep_trees=True"):
        data.start_rows(problem.loss, trace, newton=True)


def test_a_path_is_the_same_after_a_journey():
    path = NewtonPath(4, 2, 3)
    path.sum[:], path.n_steps = np.arange(8).reshape(4, 2), 5
    copy = pickle.loads(pickle.dumps(path))
    assert np.array_equal(copy.sum, path.sum)
    assert np.isinf(copy.last).all()
    assert (copy.row_stride, copy.n_steps) == (3, 5)
