"""Bugs of tables whose rows are held elsewhere."""

from benchmarks.mutants.mutant import of

HELD = [
    *of(
        "core/code_panels.cpp",
        "test_code_rows.py test_shards.py",
        ("column[input.rows[i]]", "column[i]"),
        ("feature * input.codes.n_rows", "feature * input.n"),
    ),
    *of(
        "core/sample.cpp",
        "test_shards.py",
        ("codes.columns[f * codes.n_rows + row]", "codes.columns[f * codes.n_rows]"),
    ),
    *of(
        "sglb/code_layout.py",
        "test_held.py",
        ("np.minimum(self.lowest, other.lowest)", "self.lowest"),
        ("np.maximum(self.highest, other.highest)", "self.highest"),
        ("self.n_twos + other.n_twos", "self.n_twos"),
    ),
    *of(
        "sglb/bundles.py",
        "test_held.py",
        ("            if not len(met):\n", "            if True:\n"),
        ("self._met[first, second] = self._met[second, first] = True", "self._met[:] = True"),
    ),
    *of(
        "sglb/pages.py",
        "test_parquet.py",
        ("yield begin, self._columns[:, begin", "yield 0, self._columns[:, begin"),
        ("page.size]) != page.checksum", "page.size]) == -1"),
        ("            while written < len(view):\n", "            if len(view):\n"),
    ),
    *of(
        "sglb/parquet/files.py",
        "test_parquet.py",
        ("if not file.metadata.equals(self._footers[number]):", "if False:"),
        ("if _state(path) != self._states[number]:", "if False:"),
    ),
    *of(
        "sglb/parquet/table.py",
        "test_parquet.py",
        ("self._kept[first : first + len(table)]", "self._kept[: len(table)]"),
        ("rows[begin:end] - numbers.start", "rows[begin:end] % len(table)"),
    ),
]
