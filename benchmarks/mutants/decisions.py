"""Bugs of decisions: costs, thresholds and the best k."""

from benchmarks.mutants.mutant import of

DECISIONS = [
    *of(
        "sglb/costs.py",
        "test_costs.py",
        (
            "probability[:, label, None] * costs[:, label]",
            "probability[:, label, None] * costs[:, :, label]",
        ),
        ("costs[..., 1, 1] = acting - gain", "costs[..., 1, 1] = gain - acting"),
        ("if are_classes and names != classes:", "if False:"),
    ),
    *of(
        "sglb/thresholds.py",
        "test_thresholds.py",
        (
            "hits + square * counts.false_negative + counts.false_positive",
            "hits + counts.false_negative + square * counts.false_positive",
        ),
        ("middle = lower + 0.5 * (upper - lower)", "middle = upper"),
        ("np.append(0, np.sort(self.rank)[at] + 1)", "np.sort(self.rank)[at] + 1"),
        (
            "np.where(precision >= self.precision, recall, np.nan)",
            "np.where(precision > self.precision, recall, np.nan)",
        ),
    ),
    *of(
        "sglb/capacity.py",
        "test_capacity.py",
        ("int(np.floor(k * len(rows) + 1e-9))", "int(np.floor(k * len(rows)))"),
        ("places = k * (up_to[last] - before[first])", "places = k * up_to[last]"),
        ("np.clip(left / of_block, 0.0, 1.0)", "np.where(left > 0.0, 1.0, 0.0)"),
    ),
    *of(
        "sglb/estimators/classes.py",
        "test_uncertainty.py test_estimators.py",
        ("both / sums.mean(share, weight)", "both"),
        ("wide = np.uint64 if labels.dtype == np.uint64 else np.int64", "wide = np.int64"),
    ),
]
