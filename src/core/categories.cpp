#include "categories.h"

#include <algorithm>
#include <vector>

#include "fixed_point.h"
#include "noise.h"
#include "parallel.h"

namespace sglb {
namespace {

struct Sum {
    double total = 0.0, count = 0.0;
};

// Rows that lie between asking for a value and using it: about a memory access long.
constexpr int64_t ahead = 16;

void ordered_column(const Levels& levels, const Targets& targets, const OrderedStatistics& ordered,
                    int64_t column, int64_t target, int64_t order, uint8_t* codes) {
    const int32_t* level = levels.data + column * levels.n_rows;
    const double* value = targets.values + target * levels.n_rows;
    const uint32_t* rows = ordered.orders + order * levels.n_rows;
    const int64_t feature = column * targets.n_targets + target;
    const double* first = ordered.thresholds + feature * ordered.width;
    const double* last = first + ordered.n_thresholds[feature];
    const double prior = ordered.prior.unit * ordered.prior.means[target];
    std::vector<Sum> sums(levels.n_levels[column]);
    for (int64_t i = 0; i < levels.n_rows; ++i) {
        if (i + 2 * ahead <
            levels.n_rows) {  // rows come in random order: no cache sees them coming
            const uint32_t later = rows[i + 2 * ahead];
            __builtin_prefetch(level + later);
            __builtin_prefetch(value + later);
            __builtin_prefetch(codes + later, 1);
            if (targets.weight) __builtin_prefetch(targets.weight + later);
            __builtin_prefetch(sums.data() + level[rows[i + ahead]], 1);
        }
        const uint32_t row = rows[i];
        Sum& sum = sums[level[row]];
        const double statistic = (sum.total + prior) / (sum.count + ordered.prior.unit);
        codes[row] = static_cast<uint8_t>(1 + (std::lower_bound(first, last, statistic) - first));
        const double weight = targets.weight_of(row);
        sum.total += weight * value[row];
        sum.count += weight;
    }
}

}  // namespace

void permutation(uint64_t seed, uint32_t copy, int64_t n, uint32_t* order) {
    const Stream stream{seed, copy, Role::permutation, 0};
    for (int64_t i = 0; i < n; ++i) order[i] = static_cast<uint32_t>(i);
    for (int64_t i = n - 1; i > 0; --i) {
        // The upper half of a 64-bit number times i + 1: a place in 0..i.
        const Words w = words_at(stream, static_cast<uint64_t>(i));
        const auto size = static_cast<uint64_t>(i) + 1;
        const uint64_t target = (w[1] * size + (w[0] * size >> 32)) >> 32;
        std::swap(order[i], order[target]);
    }
}

void level_sums(const Levels& levels, const Targets& targets, double* sums, double* counts,
                int n_threads) {
    std::vector<int64_t> start{0};
    for (int64_t c = 0; c < levels.n_columns; ++c)
        start.push_back(start.back() + levels.n_levels[c]);
    const int64_t total = start.back();
    for (int64_t target = -1; target < targets.n_targets; ++target) {  // -1: the counts
        const double* values = target < 0 ? nullptr : targets.values + target * levels.n_rows;
        double* out = target < 0 ? counts : sums + target * total;
        const Summands summands(values, targets.weight, levels.n_rows, n_threads);
        parallel_for(levels.n_columns, n_threads, [&](int64_t c) {
            summands.by_group(levels.data + c * levels.n_rows, levels.n_levels[c], out + start[c]);
        });
    }
}

void ordered_codes(const Levels& levels, const Targets& targets, const OrderedStatistics& ordered,
                   uint8_t* columns, int n_threads) {
    const int64_t n_features = levels.n_columns * targets.n_targets;
    parallel_for(n_features * ordered.n_orders, n_threads, [&](int64_t task) {
        const int64_t feature = task / ordered.n_orders;
        ordered_column(levels, targets, ordered, feature / targets.n_targets,
                       feature % targets.n_targets, task % ordered.n_orders,
                       columns + task * levels.n_rows);
    });
}

}  // namespace sglb
