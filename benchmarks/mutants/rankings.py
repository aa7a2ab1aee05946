"""Bugs of rankings."""

from benchmarks.mutants.mutant import of

RANKING = [
    *of(
        "core/ranking_logistic.cpp",
        "test_ranking_kernels.py test_ranking_losses.py",
        ("gradient[l] -= sign * wrong;", "gradient[l] -= wrong;"),
        ("sigma * sigma * hessian[l]", "sigma * hessian[l]"),
        ("d.first[begin + l] = 0.5 * loss[l];", "d.first[begin + l] = loss[l];"),
    ),
    *of(
        "core/ranking_pairs.cpp",
        "test_ranking_kernels.py test_ranking_losses.py",
        ("gradient[i] -= sum_in_lanes(slope, n);", "gradient[i] += sum_in_lanes(slope, n);"),
        ("normaliser(2.0 * total)", "normaliser(total)"),
        (
            "pairs.normalise = normalise && pairs.raw[0] != pairs.raw[n - 1];",
            "pairs.normalise = normalise;",
        ),
    ),
    *of(
        "core/ranking_centred.cpp",
        "test_ranking_kernels.py",
        ("std::ldexp(1.0, k - k / 2)", "std::ldexp(1.0, k / 2)"),
        ("weight ? residual * weight[row] : residual;", "residual;"),
    ),
    *of(
        "sglb/losses/stochastic_rank.py",
        "test_ranking_shards.py",
        ("loss = replace(loss, curvature_samples=loss._samples(target))", "pass"),
    ),
    # The first two are errors of CatBoost 1.2.10: in the mean of the others' noise, and in the
    # weight of a document that moves down in ERR.
    *of(
        "core/ranking_stochastic.cpp",
        "test_ranking_kernels.py",
        ("total += step * d.noise[i];", "total += sign * d.noise[i];"),
        (
            "const double effect = (gain[l] - o) *",
            "const double moved = passed ? (place + 2.0) / (place + 1.0) : 1.0;\n"
            "                const double effect = (gain[l] * moved - o) *",
        ),
        ("(total - noise) / n_others;", "total / n_others;"),
        ("std::sqrt((n - 1.0) / n) / smoothing.sigma", "1.0 / smoothing.sigma"),
        ("image ? -1.0 : 1.0, n_boundaries", "1.0, n_boundaries"),
        ("&& ++n_stops == 2)", "&& ++n_stops == 1)"),
        ("gradient[rows[i]] = unit * (mean - d.sum[i]);", "gradient[rows[i]] = unit * -d.sum[i];"),
    ),
    *of(
        "core/ranking_yeti.cpp",
        "test_ranking_kernels.py",
        ("if (d.gain[i] < d.gain[j]) std::swap(i, j);", ""),
        ("curvature = pull * (1.0 - wrong);", "curvature = pull;"),
        ("if (t % 4 == 0) fill_order_words", "if (t == 0) fill_order_words"),
        ("raw[i] - power * logarithm(-logarithm", "raw[i] + power * logarithm(-logarithm"),
    ),
    *of(
        "core/ranking.cpp",
        "test_ranking_kernels.py",
        ("score[j] >= block[l] ? 1 : 0;", "score[j] > block[l] ? 1 : 0;"),
        ("std::min(n_relevant, cutoff);", "n_relevant;"),
        ("q + 1 < cutoff &&", "q < cutoff &&"),
    ),
    *of(
        "sglb/ranking_metrics.py",
        "test_ranking_metrics.py",
        ("* (r - 1.0) / np.maximum(m - 1.0, 1.0)", "* r / np.maximum(m, 1.0)"),
        ("sizes if self.cutoff is None else np.full_like(sizes, self.cutoff)", "sizes"),
        ("query.astype(np.uint16)", "query.astype(np.uint8)"),
    ),
]
