"""How the values of leaves follow from gradients."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sglb.losses import Loss

LeafMethod = Literal["gradient", "newton"]

# Steps before the last look at about so many rows: they only have to come near enough for the last
# one, on all rows. With a third of it the loss was worse, on a million rows.
PART_ROWS = 150_000


@dataclass(frozen=True)
class LeafRule:
    """Divide the sum of gradients by weights ("gradient", the paper) or by second derivatives
    ("newton", faster but without an exact stationary law), plus `l2`.

    Of several `steps` each but the first takes its gradients where the ones before it have come to;
    the learning rate multiplies their sum, and the noise is that of one step.
    """

    method: LeafMethod = "gradient"
    l2: float = 0.0
    steps: int = 1

    def __post_init__(self) -> None:
        """Reject an invalid rule."""
        if self.method not in ("gradient", "newton"):
            raise ValueError(f"leaf method {self.method!r} is neither 'gradient' nor 'newton'")
        if self.steps < 1:
            raise ValueError(f"leaf_steps={self.steps} must be at least 1")
        if self.steps > 1 and self.method == "gradient":
            raise ValueError(
                f"leaf_steps={self.steps} needs leaf_method='newton', and it is 'gradient' here: a"
                " chain of gradient steps takes one a tree"
            )

    def check(self, loss: "Loss", subsample: float) -> None:
        """Reject several steps where they do not lead to the optimum."""
        if self.steps == 1:
            return
        if loss.n_outputs > 1:
            raise ValueError(
                f"leaf_steps={self.steps} needs a loss of one output, {loss.name!r} has"
                f" {loss.n_outputs}: what is best for one output depends on the others, and steps"
                " of each for itself miss it"
            )
        if subsample < 1.0:
            raise ValueError(
                f"leaf_steps={self.steps} needs all rows, and subsample={subsample:g}: several"
                " steps on a sample would fit the sample"
            )
