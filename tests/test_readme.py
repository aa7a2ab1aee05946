"""The Python of the README and of the guides runs as it stands, from top to bottom."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


def run_blocks(page, at_least=4):
    """Run the Python blocks of a page; return the names they leave behind."""
    blocks = re.findall(r"```python\n(.*?)```", (REPOSITORY / page).read_text(), flags=re.S)
    assert len(blocks) >= at_least
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def test_the_blocks_of_the_readme_run():
    pytest.importorskip("polars")
    assert run_blocks("README.md")["upper"].loss_.level == 0.9


def test_the_blocks_of_the_guide_to_uncertainty_run():
    names = run_blocks("docs/uncertainty.md")
    assert names["draws"].shape == (100, 5000)
    assert names["calibrated"].method == "scaled residuals"


def test_the_blocks_of_the_guide_to_decisions_run():
    names = run_blocks("docs/decisions.md")
    assert names["to_call"].sum() == 100
    assert 0.0 < names["tuned"].best_threshold_ < 1.0


def test_the_blocks_of_the_page_of_samplers_run():
    names = run_blocks("docs/dynamics.md", at_least=1)
    assert len(names["ladder"].ladder()) == 4
