"""Users' own losses in a chain."""

import numpy as np
import pytest

from loss_cases import every_loss, fill, make_raw, make_targets, output_major
from own_losses import Copy, Own, user_twin
from sglb.errors import NonFiniteGradient
from sglb.losses import Squared, UserLoss, check_loss, get_loss
from sglb.losses.blocks import BLOCK_ROWS
from sglb.target import Target

Y, RAW = np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0])


@every_loss
def test_a_users_copy_of_a_loss_fills_the_same_bits(loss):
    rng = np.random.default_rng(1)
    y, raw = make_targets(loss, 1000, rng), make_raw(loss, 1000, rng)
    user = get_loss(Copy(loss))
    assert isinstance(user, UserLoss)
    largest, gradient, hessian = fill(user, y, raw, with_hessian=loss.has_hessian)
    wanted = fill(loss, y, raw, with_hessian=loss.has_hessian)
    assert largest == wanted[0]
    assert gradient.tobytes() == wanted[1].tobytes()
    # Not that of the kernel, which may fill a safer curvature.
    assert hessian is None or (hessian == output_major(loss.hessian(y, raw))).all()
    assert (user.init(Target.of(y)) == loss.init(Target.of(y))).all()
    assert (user.link(raw) == loss.link(raw)).all()
    assert (user.loss(y, raw) == loss.loss(y, raw)).all()
    assert (user.n_outputs, user.convex) == (loss.n_outputs, loss.convex)


def test_the_user_sees_arrays_that_cannot_be_written_to():
    seen = []

    def gradient(y, raw):
        seen.extend([y, raw])
        raw -= y
        return raw

    with pytest.raises(ValueError, match="read-only"):
        fill(get_loss(user_twin(gradient=gradient)), Y, RAW)
    assert [array.shape for array in seen] == [(3,), (3,)]
    assert not any(array.flags.writeable for array in seen)


def test_several_outputs_are_columns_for_the_user():
    shapes = []

    def gradient(y, raw):
        shapes.append(raw.shape)
        return raw * np.array([1.0, 2.0])

    raw = np.arange(6.0).reshape(3, 2)
    largest, filled, _ = fill(
        get_loss(user_twin(gradient=gradient, n_outputs=2)), Y, raw, with_hessian=False
    )
    assert shapes == [(3, 2)]
    assert filled.tolist() == [[0.0, 2.0, 4.0], [2.0, 6.0, 10.0]]
    assert largest == 10.0


def test_an_array_the_user_keeps_is_not_the_chains():
    kept = np.ones(3)
    loss = get_loss(user_twin(gradient=lambda y, raw: kept))
    _, gradient, _ = fill(loss, Y, RAW, with_hessian=False)
    gradient[:] = 7.0
    assert kept.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_other_real_dtypes_are_converted(dtype):
    loss = get_loss(user_twin(gradient=lambda y, raw: np.ones(3, dtype=dtype)))
    assert fill(loss, Y, RAW, with_hessian=False)[1].tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (lambda y, raw: 1.0, ValueError, r"gradient\(y, raw\) .* shape \(3,\), got \(\)"),
        (lambda y, raw: np.ones((3, 1)), ValueError, r"shape \(3,\), got \(3, 1\)"),
        (lambda y, raw: None, TypeError, "must return an array of real numbers, got NoneType"),
        (lambda y, raw: 1j * raw, TypeError, "of dtype complex128"),
        (lambda y, raw: ["a", "b", "c"], TypeError, "must return an array of real numbers"),
    ],
)
def test_a_gradient_of_wrong_shape_or_type_is_rejected(result, error, message):
    with pytest.raises(error, match=message):
        fill(get_loss(user_twin(gradient=result)), Y, RAW)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_is_rejected_with_row_and_output(bad):
    def gradient(y, raw):
        result = np.zeros((3, 2))
        result[1, 1] = result[2, 0] = bad
        return result

    with pytest.raises(NonFiniteGradient) as caught:
        fill(
            get_loss(user_twin(gradient=gradient, n_outputs=2)),
            Y,
            np.zeros((3, 2)),
            with_hessian=False,
        )
    assert (caught.value.row, caught.value.output) == (1, 1)


def test_a_chain_that_is_not_finite_is_not_blamed_on_the_loss():
    raw = np.array([0.0, np.inf, 0.0])
    assert fill(get_loss(Own()), Y, raw, with_hessian=False)[0] == np.inf


def test_a_hessian_must_exist_be_finite_and_not_negative():
    with pytest.raises(TypeError, match="'Own' has no method hessian"):
        fill(get_loss(Own()), Y, RAW)
    with pytest.raises(ValueError, match="hessian of loss 'Changed' is not finite in row 0"):
        fill(get_loss(user_twin(hessian=lambda y, raw: raw * np.nan)), Y, RAW)
    with pytest.raises(ValueError, match="hessian of loss 'Changed' is not finite in row 1"):
        fill(get_loss(user_twin(hessian=lambda y, raw: np.array([1.0, np.inf, 1.0]))), Y, RAW)
    with pytest.raises(ValueError, match=r"is negative \(-5\) in row 2, output 0"):
        fill(get_loss(user_twin(hessian=lambda y, raw: -raw)), Y, RAW)
    assert not get_loss(Own()).has_hessian
    assert get_loss(user_twin(hessian=lambda y, raw: raw)).has_hessian


def test_errors_of_the_users_code_come_through():
    def gradient(y, raw):
        raise ZeroDivisionError("the user's own")

    with pytest.raises(ZeroDivisionError, match="the user's own"):
        fill(get_loss(user_twin(gradient=gradient)), Y, RAW)


def test_what_is_not_offered_has_a_default():
    loss = get_loss(Own())
    assert (loss.name, loss.n_outputs, loss.convex, loss.task) == ("Own", 1, False, "regression")
    assert (loss.lipschitz, loss.smoothness, loss.parameters()) == (None, None, {})
    assert loss.init(Target.of(Y)) == pytest.approx([Y.mean()], abs=1e-12)  # the best constant
    assert (loss.link(RAW) == RAW).all()
    assert get_loss(Own(), n_classes=2).link(np.zeros(1)).tolist() == [0.5]
    many = get_loss(user_twin(n_outputs=4), n_classes=4)
    assert many.task == "multiclass"
    assert many.link(np.zeros((1, 4))).tolist() == [[0.25] * 4]


@pytest.mark.parametrize("start", [np.nan, [1.0, 2.0], [[1.0]]])
def test_a_start_that_is_no_finite_constant_is_rejected(start):
    with pytest.raises(ValueError, match=r"init\(y, weight\) of loss 'Changed' must return 1 fin"):
        get_loss(user_twin(init=lambda y, weight: start)).init(Target.of(Y))


def test_an_object_that_is_not_a_loss_is_rejected_with_what_it_lacks():
    with pytest.raises(TypeError, match=r"is not a loss: .* has no loss and no gradient"):
        get_loss(object())
    with pytest.raises(TypeError, match="but has no gradient"):
        check_loss(user_twin(gradient=None), Y)
    with pytest.raises(TypeError, match="must be an object, got the class Own"):
        get_loss(Own)
    with pytest.raises(ValueError, match="go with the name of a loss only"):
        get_loss(Squared(), width=1.0)


def by_rows(n, n_outputs, row_wise, rng, n_threads=2):
    """Slopes of a loss of several steps at n rows, and the sizes of the calls."""
    sizes = []

    def derivatives(y, raw):
        sizes.append(len(y))
        bent = np.exp(-np.abs(raw)) + 1.0
        target = y if raw.ndim == 1 else y[:, None]
        return (raw - target) / bent, 1.0 / bent

    loss = UserLoss(
        user_twin(
            n_outputs=n_outputs,
            gradient=lambda y, raw: derivatives(y, raw)[0],
            derivatives=derivatives,
            row_wise=row_wise,
        )
    )
    y, raw = rng.normal(size=n), rng.normal(size=(n_outputs, n))
    gradient, hessian = np.full_like(raw, np.nan), np.full_like(raw, np.nan)
    largest = loss.fill(y, raw, gradient, hessian, n_threads)
    return largest, gradient, hessian, sizes


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_blocks_of_rows_give_what_all_rows_give(n_outputs):
    n = 3 * BLOCK_ROWS + 5
    largest, gradient, hessian, sizes = by_rows(n, n_outputs, False, np.random.default_rng(3))
    assert sizes == [n]
    actual = by_rows(n, n_outputs, True, np.random.default_rng(3))
    assert actual[0] == largest
    np.testing.assert_array_equal(actual[1], gradient)
    np.testing.assert_array_equal(actual[2], hessian)
    # The first two calls are the look at the promise; blocks come in any order.
    assert sorted(actual[-1][2:]) == [5] + [BLOCK_ROWS] * 3


def test_blocks_are_the_same_bits_for_any_number_of_threads():
    actual = [
        by_rows(3 * BLOCK_ROWS + 5, 1, True, np.random.default_rng(3), n_threads)
        for n_threads in (1, 2, 5)
    ]
    for other in actual[1:]:
        assert other[0] == actual[0][0]
        np.testing.assert_array_equal(other[1], actual[0][1])
        np.testing.assert_array_equal(other[2], actual[0][2])


def test_threads_keep_what_the_caller_set_for_numpy():
    def gradient(y, raw):
        return y - 1.0 / raw

    loss = UserLoss(user_twin(gradient=gradient, row_wise=True))
    y, raw = np.zeros(2 * BLOCK_ROWS), np.ones((1, 2 * BLOCK_ROWS))
    raw[0, -1] = 0.0
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        loss.fill(y, raw, np.empty_like(raw), None, 2)


def test_a_loss_that_looks_at_other_rows_may_not_say_it_does_not():
    def normalised(y, raw):
        return (raw - y) / np.abs(raw - y).sum()

    loss = UserLoss(user_twin(gradient=normalised, row_wise=True))
    y, raw = np.arange(100.0), np.zeros((1, 100))
    with pytest.raises(ValueError, match="says row_wise = True, but"):
        loss.fill(y, raw, np.empty_like(raw), None, 1)
    # Without the promise it may.
    UserLoss(user_twin(gradient=normalised)).fill(y, raw, np.empty_like(raw), None, 1)


def test_an_error_in_one_block_comes_through():
    def gradient(y, raw):
        if (y == 7.0).any():
            raise ArithmeticError("seven")
        return raw - y

    y = np.zeros(2 * BLOCK_ROWS)
    y[-1] = 7.0
    raw = np.zeros((1, len(y)))
    with pytest.raises(ArithmeticError, match="seven"):
        UserLoss(user_twin(gradient=gradient, row_wise=True)).fill(
            y, raw, np.empty_like(raw), None, 2
        )


def test_both_derivatives_from_one_method_allow_newton_steps():
    loss = UserLoss(user_twin(derivatives=lambda y, raw: (raw - y, np.ones_like(raw))))
    assert loss.has_hessian
    np.testing.assert_array_equal(loss.hessian(Y, RAW), np.ones(3))
    with pytest.raises(TypeError, match=r"derivatives.*must return \(gradient, hessian\)"):
        UserLoss(user_twin(derivatives=lambda y, raw: raw - y)).hessian(Y, RAW)
    with pytest.raises(ValueError, match=r"derivatives.*must return shape \(3,\)"):
        UserLoss(user_twin(derivatives=lambda y, raw: (raw - y, 1.0))).hessian(Y, RAW)
