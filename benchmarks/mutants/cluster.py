"""Bugs of rows on servers."""

from benchmarks.mutants.mutant import of

SHARDS = "test_cluster.py test_shards.py"
TABLES = "test_cluster_table.py"
CLUSTER = [
    *of(
        "sglb/cluster/parts.py",
        SHARDS,
        ("return max(gradients), max(hessians)", "return min(gradients), max(hessians)"),
        ("            total.add(part)\n", "            pass\n"),
        ("return np.sum(arrays, axis=0, dtype=dtype) if", "return arrays[0] if"),
        ("sorted(pairs, key=lambda pair: pair[0])", "sorted(pairs, key=lambda pair: -pair[0])"),
    ),
    *of(
        "sglb/cluster/server.py",
        SHARDS,
        ("if self.n_steps == by.step:", "if True:"),
        ("self.n_steps = len(trace)", "self.n_steps = 0"),
        ("row = int(self.numbers.of(self.shard.data.n_rows)[error.row])", "row = error.row"),
        ("squares(before[number], n_in_all)", "squares(0, n_in_all)"),
    ),
    *of(
        "sglb/cluster/rows.py",
        SHARDS,
        ("part.lowest <= n_in_all <= part.highest", "part.lowest <= n_in_all"),
        ("for earlier, details in self._asked[:-1]:", "for earlier, details in []:"),
    ),
    *of(
        "sglb/cluster/raw.py",
        TABLES,
        ("np.flatnonzero(self._kept)[rows]", "rows"),
        ("if values.dtype != dtype or not self._kept.all():", "if values.dtype != dtype:"),
        ("np.tile(self._codes, self._n_copies) if", "self._codes if"),
        ("result = hashlib.sha256(by_label[column.index].tobytes())", "result = hashlib.sha256()"),
    ),
    *of(
        "sglb/cluster/table.py",
        TABLES,
        ("np.array([*known, -1], dtype=np.int32)[part.index]", "part.index"),
        ("    if columns == expected:", "    if sorted(columns) == sorted(expected):"),
        (
            "(target.take(rows_of(position)), int(starts[position]))",
            "(target.take(rows_of(position)), 0)",
        ),
        ("rows[begin:end] - start", "rows[begin:end]"),
        ("np.result_type(*dtypes)", "dtypes[0]"),
    ),
    *of("sglb/totals.py", TABLES, ("if self.has_weights else None", "if len(target) else None")),
]
