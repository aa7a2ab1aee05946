"""What can go wrong, by name. The lowest room: it imports nothing of the library."""


class ModelFormatError(ValueError):
    """A model file that cannot be trusted; `field` is the part of the file that is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"model file, {self.field}: {self.reason}"


# What went wrong is the name; a suffix "Error" would add nothing.
class NonFiniteGradient(ValueError):  # noqa: N818
    """A gradient that is not finite at `row`, `output` and, once the loop knows it, `step`."""

    def __init__(self, row: int, output: int = 0, step: int | None = None) -> None:
        super().__init__(row, output, step)
        self.row = row
        self.output = output
        self.step = step

    def __str__(self) -> str:
        when = "" if self.step is None else f" at step {self.step}"
        return (
            f"the gradient of the loss is not finite in row {self.row}, output {self.output}{when}"
        )


class StepTooLong(ArithmeticError):  # noqa: N818
    """Of several steps in the leaves one went where the loss has no finite slopes."""

    def __init__(self, leaf_steps: int, step: int) -> None:
        super().__init__(leaf_steps, step)
        self.leaf_steps = leaf_steps
        self.step = step

    def __str__(self) -> str:
        return (
            f"leaf_steps={self.leaf_steps}: at step {self.step} a Newton step in a leaf goes to raw"
            " scores at which the loss has no finite slopes; use leaf_steps=1"
        )


class ChainDiverged(ArithmeticError):  # noqa: N818
    """The raw scores left the range of floating-point numbers at `step`."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return (
            f"the chain diverged: raw scores are not finite after step {self.step}; "
            "use a smaller learning_rate (or temperature)"
        )
