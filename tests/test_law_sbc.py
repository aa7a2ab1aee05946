"""Simulation-based calibration of draws on frozen partitions: the truth is like one of the draws.

200 replications of each case of `benchmarks.uncertainty.sbc`; 2,000 by its command. A case has a
chi-square test for each of its numbers, and fails by chance with a probability of 1e-3; seeds are
fixed.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sglb import _core
from sglb.posterior import LeafDraws, LeafPrior, LossEnergy, QuadraticEnergy, frozen

CASES = ("squared, weights", "laplace, mirror images", "logistic", "softmax")


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))


def least_p_value(name, n_replications):
    """The smallest p-value of a case, times the number of its tests (Bonferroni)."""
    from benchmarks.uncertainty import sbc

    assert tuple(sbc.CASES) == CASES
    result = sbc.p_values(sbc.CASES[name], n_replications)
    return len(result) * min(result.values())


@pytest.mark.parametrize("name", CASES)
def test_the_truth_is_like_a_draw(name):
    assert least_p_value(name, 200) > 1e-3


# What the test must notice.


def prior_without_covers(monkeypatch):
    """Leaf values that are not divided by the square root of the rows of a leaf."""
    draw = LeafPrior.draw

    def equal(self, variance, first_draw, out, seed):
        draw(self, variance, first_draw, out, seed)
        out *= np.sqrt(self.cover)[:, None, None]

    monkeypatch.setattr(LeafPrior, "draw", equal)


def no_curvature(monkeypatch):
    """An energy that does not depend on the state: draws from the prior."""
    for energy in (QuadraticEnergy, LossEnergy):
        gradients = energy.leaf_gradients
        monkeypatch.setattr(
            energy, "leaf_gradients", lambda *arguments, g=gradients: 0.0 * g(*arguments)
        )


def shared_noise(monkeypatch):
    """The same noise in all draws of a batch."""

    def draw_normals(draws, role, first, out):
        _core.draw_normals(draws, role, first, out)
        out[:] = out[:, :, :1]

    names = ("Draws", "words", "advance_draws", "add_partitions")
    kernels = {name: getattr(_core, name) for name in names}
    fake = SimpleNamespace(draw_normals=draw_normals, **kernels)
    monkeypatch.setattr(frozen, "_core", fake)


def images_not_mirrored(monkeypatch):
    """Mirror images that are the draws again."""
    predict = LeafDraws._predict

    def same(self, leaves, n_threads):
        draws = predict(self, leaves, n_threads)
        half = draws.shape[2] // 2
        return np.concatenate([draws[:, :, :half]] * 2, axis=2) if self.mirror else draws

    monkeypatch.setattr(LeafDraws, "_predict", same)


def no_shrinking(monkeypatch):
    """Steps that do not pull to the prior."""
    advance = frozen.FrozenChain._advance
    monkeypatch.setattr(
        frozen.FrozenChain,
        "_advance",
        lambda self, leaf, values, shrink: advance(self, leaf, values, 1.0),
    )
    keep = frozen.FrozenChain._keep
    monkeypatch.setattr(
        frozen.FrozenChain,
        "_keep",
        lambda self, leaves, values, shrink: keep(self, leaves, values, 1.0),
    )


@pytest.mark.parametrize(
    ("bug", "name"),
    [
        (prior_without_covers, "squared, weights"),
        (prior_without_covers, "logistic"),
        (no_curvature, "squared, weights"),
        (no_curvature, "laplace, mirror images"),
        (no_curvature, "softmax"),
        (shared_noise, "squared, weights"),
        (images_not_mirrored, "laplace, mirror images"),
        (no_shrinking, "squared, weights"),
    ],
)
def test_a_bug_is_noticed(bug, name, monkeypatch):
    bug(monkeypatch)
    assert least_p_value(name, 100) < 1e-3
