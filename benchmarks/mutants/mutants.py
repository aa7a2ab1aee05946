"""The bugs: a file, a text that occurs there once, its replacement, and the tests to catch it."""

from benchmarks.mutants.cluster import CLUSTER
from benchmarks.mutants.decisions import DECISIONS
from benchmarks.mutants.held import HELD
from benchmarks.mutants.mutant import of
from benchmarks.mutants.rankings import RANKING

LOSSES = of(
    "core/loss_formulas.h",
    "test_losses.py test_loss_properties.py",
    ("slope = (e * value) * value;", "slope = e * value;"),
    ("return {-m * wrong.value, wrong.slope};", "return {m * wrong.value, wrong.slope};"),
    ("return {z - y, 1.0};", "return {z - y, 2.0};"),
    ("return {-2.0 * m * half,", "return {-m * half,"),
    ("absolute(r) <= delta ? 1.0 : 0.0", "absolute(r) < delta ? 1.0 : 0.0"),
    ("factor * (below.value - level)", "factor * (below.value + level - 1.0)"),
    ("return {curvature * (1.0 + maximum(z - limit, 0.0)) - y", "return {curvature - y"),
    ("return {1.0 - falling, 0.5 * (1.0 + falling)};", "return {1.0 - falling, falling};"),
    ("low(1.0 - p[0])", "low(1.5 - p[0])"),
    ("const double trust = exponential(-t * t);", "const double trust = exponential(t * t);"),
    ("inverse_width / (square * root)", "inverse_width / square"),
    ("slope * inverse_width * (1.0 - 2.0 * wrong.value)", "slope * (1.0 - 2.0 * wrong.value)"),
)

LEAVES = [
    *of(
        "core/leaf_values.cpp",
        "test_leaves.py test_leaf_steps.py test_leaf_paths.py",
        ("values[index] = move.learning_rate * (start", "values[index] = (start"),
        ("move.noise * std::sqrt(curvature) * normal_at", "move.noise * curvature * normal_at"),
        ("if (leaves[j].weight != 0)", "if (leaves[j].curvature != 0)"),
        ("constexpr double least_curvature = 1e-3;", "constexpr double least_curvature = 1e-2;"),
        ("(step < 0.0) == (last < 0.0) ? last : 0.5 * last", "last"),
        ("-(gradient + l2_ * path.sum[index]) / curvature", "-gradient / curvature"),
        ("gains[d] += (below - above) / sums.share;", "gains[d] += below - above;"),
        ("nodes[j].weight += nodes[j + half].weight;", ""),
    ),
    *of(
        "sglb/leaves.py",
        "test_leaf_steps.py test_leaf_paths.py test_leaves.py",
        ("            self.last[:] = np.inf\n", ""),
        ('if self.method == "newton" else self', 'if self.method == "gradient" else self'),
        ("range(self.steps - 1)", "range(self.steps)"),
    ),
]

NOISE = [
    *of(
        "core/noise.h",
        "test_noise.py",
        ("static_cast<uint32_t>(stream.role) | stream.output << 8", "stream.output << 8"),
        (
            "return normal_radius(w[0]) * normal_cosine(w[1],",
            "return normal_radius(w[0]) * unit(w[1] +",
        ),
        ("        key1 += 0xBB67AE85;", "        key1 += 0xBB67AE84;"),
    ),
    *of(
        "core/quantise.cpp",
        "test_quantise.py test_law_noise.py",
        ("drawn.rest[i] = numbers[i] & 1 ? odd[i] : drawn.rest[i];", ""),
        ("const double scaled = noise / std::sqrt(weight[i]) *", "const double scaled = noise *"),
        ("static_cast<double>(offset[i]) - 0.5", "static_cast<double>(offset[i])"),
        ("const double room = 2147483647.0 - n - 4096.0;", "const double room = 4294967295.0;"),
    ),
    *of(
        "sglb/noise.py",
        "test_chains.py test_noise.py",
        (
            "_core.words(seed, 0, Role.CHAIN, 0, chain, words)",
            "_core.words(seed, 0, Role.CHAIN, 0, 0, words)",
        ),
    ),
]

SAMPLERS = [
    *of(
        "sglb/samplers/langevin.py",
        "test_law_step.py test_dynamics.py",
        ("math.sqrt(2.0 * temperature / rate)", "math.sqrt(temperature / rate)"),
        ("1.0 - last_of(self.shrink_rate) * rate", "1.0 - last_of(self.shrink_rate)"),
        ("structure_noise=self.structure_noise * noise", "structure_noise=noise"),
    ),
    *of(
        "sglb/samplers/hamiltonian.py",
        "test_momentum.py test_dynamics.py test_law_hamiltonian.py",
        ("noise=math.sqrt(a) * without.noise", "noise=a * without.noise"),
        ("[-pull, 1.0 - a]]", "[pull, 1.0 - a]]"),
    ),
    *of(
        "sglb/samplers/annealed.py",
        "test_rate_schedules.py test_dynamics.py",
        ("ratio * hot", "hot"),
        ("shrink_rate=falling(rates.hot_shrink_rate)", "shrink_rate=rates.hot_shrink_rate"),
    ),
    *of(
        "sglb/samplers/cyclical.py",
        "test_rate_schedules.py test_dynamics.py",
        ("last_of(rate), 0.0, every=period", "last_of(rate), 0.0, 2 * period"),
        ("temperature=drawn", "temperature=temperature"),
        ("-(-rates.n_steps // N_CYCLES)", "rates.n_steps // N_CYCLES"),
    ),
    *of(
        "sglb/samplers/tempering.py",
        "test_dynamics.py test_law_tempering.py",
        ("self.shrink_rate * factor,", "self.shrink_rate,"),
        ("power(ratio, rung / (self.n_replicas - 1))", "power(ratio, rung / self.n_replicas)"),
    ),
    *of(
        "sglb/samplers/stochastic.py",
        "test_dynamics.py test_settings.py",
        (", subsample=self.subsample)", ")"),
    ),
    *of(
        "sglb/tempering.py",
        "test_law_tempering.py test_dynamics.py",
        ("gap * (energies[cold] - energies[hot])", "gap * (energies[hot] - energies[cold])"),
        ("range(step // self.swap_every % 2,", "range(0,"),
        ("        check_finite(chain)", "        pass"),
    ),
    *of(
        "sglb/schedules.py",
        "test_schedules.py",
        ("0.5 + 0.5 * cosine_turn(0.5 * way)", "0.5 + 0.5 * cosine_turn(way)"),
        (
            "return self._values[min(step, self.n_steps)]",
            "return self._values[min(step, self.n_steps - 1)]",
        ),
    ),
]

CHAIN = [
    *of(
        "sglb/chain.py",
        "test_law_step.py test_boosting.py",
        (
            "        rows.advance(structure, values, move.transition)",
            "        rows.advance(structure, values, type(move.transition).shrink(1.0))",
        ),
        ("_core.Draws(self.seed, step)", "_core.Draws(self.seed, 0)"),
    ),
    *of(
        "sglb/trace.py",
        "test_trace.py test_chains.py",
        ("trace._n_trees = n_trees", "trace._n_trees = n_trees - 1"),
        ("self.temperatures}", "0.0 * self.temperatures}"),
        ("    for state in states[1:]:  #", "    for state in states[2:]:  #"),
        (
            "weights()[:, :1] for trace in traces]) / len(traces)",
            "weights()[:, :1] for trace in traces])",
        ),
    ),
    *of(
        "sglb/transition.py",
        "test_trace.py test_momentum.py",
        ("after = sums.product(after, C[t])", "after = sums.product(C[t], after)"),
        ("np.cumprod(C[1:, 0, 0][::-1])[::-1]", "np.cumprod(C[1:, 0, 0])[::-1]"),
    ),
    *of(
        "sglb/shard.py",
        "test_shards.py test_boosting.py",
        ("self._root_copies = math.sqrt(totals.n_copies)", "self._root_copies = 1.0"),
    ),
    *of(
        "sglb/growth.py",
        "test_boosting.py test_loss_trial.py",
        ("if not now <= far and math", "if now <= far and math"),
    ),
    *of(
        "sglb/boosting.py",
        "test_callbacks.py",
        ("info.stop or stop", "info.stop"),
    ),
]

SEARCH = [
    *of(
        "core/candidate_scores.cpp",
        "test_search.py test_grow.py",
        (
            "return {gl * gl * wr + gr * gr * wl, wl * wr,",
            "return {gl * gl * wl + gr * gr * wr, wl * wr,",
        ),
        ("a.splits_rows | b.splits_rows};", "a.splits_rows};"),
        ("d += cells[3 * group_features];", "d += cells[2 * group_features];"),
    ),
    *of(
        "core/largest.cpp",
        "test_slopes.py",
        ("poison += 0.0 * x[i];", ""),
    ),
    *of(
        "sglb/bins.py",
        "test_bins.py test_encoding.py",
        ("np.arange(max(n - 1, 0)) + 0.5", "np.arange(max(n - 1, 0)) + 1.0"),
        ("SAMPLE_ROWS_PER_BIN * max_bins", "SAMPLE_ROWS_PER_BIN"),
    ),
]

ENCODERS = [
    *of(
        "core/categories.cpp",
        "test_categories.py test_encoding.py",
        ("sum.count += weight;", "sum.count += 1.0;"),
        (
            "const auto size = static_cast<uint64_t>(i) + 1;",
            "const auto size = static_cast<uint64_t>(i);",
        ),
        ("ordered.prior.unit * ordered.prior.means[target]", "ordered.prior.means[target]"),
    ),
    *of(
        "sglb/categories/encoder.py",
        "test_encoding.py",
        ("(sums + self.unit * self.means[:, None]) /", "sums /"),
        (
            "self.has_many = self.n_levels > most_levels",
            "self.has_many = self.n_levels >= most_levels",
        ),
        ("levels[self.identifies_rows[columns]] = -1", "levels[self.identifies_rows[columns]] = 0"),
    ),
    *of(
        "sglb/folds.py",
        "test_folds.py",
        ("np.lexsort((words[:, 0], classes))", "np.lexsort((words[:, 0],))"),
        ("sums.mean(differs[repeated]) > CHANCE", "sums.mean(differs[repeated]) < CHANCE"),
    ),
]

ARCHIVE = [
    *of(
        "sglb/archive/__init__.py",
        "test_archive.py test_archive_forged.py",
        ("digest() != view[-DIGEST_BYTES:]:", "digest() == b'':"),
        ("name not in LEFT_OUT}", "name}"),
        ("    check_trees(arrays, sizes)\n", ""),
    ),
    *of(
        "sglb/archive/container.py",
        "test_damage.py",
        ("if length > min(len(view) - 8, MOST_HEADER_BYTES):", "if length > MOST_HEADER_BYTES:"),
        ("if end != len(content):", "if end > len(content):"),
        ("    if not same:", "    if not document:"),
    ),
    *of(
        "sglb/schedules.py",
        "test_schedules.py test_rate_schedules.py",
        ("step % self.every) / self.n_steps", "step) / self.n_steps"),
    ),
    *of(
        "sglb/archive/validation.py",
        "test_archive.py test_archive_forged.py",
        ("is_text and len(set(value)) == len(value)", "is_text"),
    ),
    *of(
        "sglb/files.py",
        "test_archive.py test_table_files.py",
        ("os.O_EXCL, 0o666))", "os.O_EXCL, 0o600))"),
        ("        draft.unlink(missing_ok=True)", "        pass"),
    ),
    *of(
        "sglb/checkpoints/journal.py",
        "test_checkpoint.py test_checkpoint_crashes.py test_continuing.py",
        ("n_steps // every > n_before // every", "n_steps > n_before"),
        ("if new.n_steps > last.n_steps or is_finished:", "if new.n_steps > last.n_steps:"),
        ("repeated = inherited  #", "repeated = None  #"),
        ("max(self.checkpoint.seconds, (written - started) / SHARE)", "self.checkpoint.seconds"),
    ),
]

POSTERIOR = [
    *of(
        "core/frozen.cpp",
        "test_frozen_kernels.py test_frozen.py",
        ("row[d] = shrink * row[d] + value[d];", "row[d] = row[d] + value[d];"),
        ("(diagonal * row[d] - factor * mean[d])", "(diagonal * row[d] + factor * mean[d])"),
    ),
    *of(
        "sglb/posterior/prior.py",
        "test_frozen.py test_law_frozen.py test_posterior.py",
        ("np.sqrt(variance / self.cover)", "(variance / self.cover)"),
        (
            "cover[self.of(k)] = _cover(partitions, k, weights)",
            "cover[self.of(k)] = _cover(partitions, k, weights).mean()",
        ),
        ("np.where(cover > 0.0, cover, unit)", "np.where(cover > 0.0, cover, np.inf)"),
        (
            "return leaves / (self.total_weight * prior_variance)",
            "return leaves / self.total_weight",
        ),
    ),
    *of(
        "sglb/posterior/energies.py",
        "test_law_frozen.py",
        ("np.ascontiguousarray(self.weight * diagonal)", "self.weight + 0.0 * diagonal"),
    ),
    *of(
        "sglb/posterior/frozen.py",
        "test_law_frozen.py",
        ("move.noise / np.sqrt(cover) * xi)", "move.noise / np.sqrt(cover) * xi[:, :, :1])"),
        ("0, self.first_draw // BATCH, words)", "0, 0, words)"),
    ),
    *of(
        "sglb/posterior/leaf_draws.py",
        "test_posterior.py",
        ("np.concatenate([out, -out], axis=2)", "np.concatenate([out, out], axis=2)"),
    ),
    *of(
        "sglb/posterior/drawing.py",
        "test_posterior_automatic.py",
        ("math.ceil(RELAXATIONS / rate)", "0"),
    ),
    *of(
        "sglb/estimators/sources.py",
        "test_posterior_automatic.py",
        ("return variance + knowledge", "return np.maximum(variance, knowledge)"),
    ),
    *of(
        "sglb/posterior/drawing.py",
        "test_posterior.py test_frozen.py",
        ("[stages, -stages]", "[stages, stages]"),
        ("if chain.n_steps == n_steps // 2:", "if chain.n_steps == 0:"),
    ),
    *of(
        "sglb/conformal/ranks.py",
        "test_conformal.py",
        ("exact = (n_rows + 1) * coverage", "exact = n_rows * coverage"),
        ("float(self.scores[k - 1]) if", "float(self.scores[k - 2]) if"),
    ),
    *of(
        "sglb/calibration.py",
        "test_calibration.py",
        ("np.sqrt(variance) / mass,", "np.sqrt(variance / mass),"),
        ("np.cumsum(mass) - 0.5 * mass", "np.cumsum(mass)"),
    ),
]

THREADS = [
    *of(
        "core/parallel.cpp",
        "test_parallel.py",
        ("[] { the_pool.store(nullptr); }", "[] {}"),
        ("        if (!failure) failure = std::current_exception();\n", ""),
    ),
    *of(
        "sglb/threads.py",
        "test_threads.py",
        ("                if errors:\n                    break\n", ""),
        ("partial(work, number)", "partial(work)"),
        ("            other.wait_unless_idle()\n", "            pass\n"),
        ("self._end.wait(timeout=0.1)", "self._end.wait()"),
    ),
]

MUTANTS = [
    *LOSSES, *LEAVES, *NOISE, *SAMPLERS, *CHAIN, *SEARCH, *ENCODERS, *ARCHIVE, *POSTERIOR, *RANKING,
    *DECISIONS, *THREADS, *HELD, *CLUSTER,
]  # fmt: skip
