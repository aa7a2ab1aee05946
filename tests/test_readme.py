"""The Python of the README runs as it stands, from top to bottom."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_blocks_of_the_readme_run():
    pytest.importorskip("polars")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)
    assert len(blocks) >= 4
    names = {"__name__": "readme"}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert names["upper"].loss_.level == 0.9
