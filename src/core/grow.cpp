#include "grow.h"

#include <algorithm>

namespace sglb {

int grow(const GrowInput& input, Workspace& workspace, Split* splits, int n_threads) {
    const int64_t n = std::min(input.slopes.n_rows, input.n_structure_rows);
    const bool sampled = n < input.slopes.n_rows;
    const SearchRule& rule = input.rule;
    const uint32_t* rows = nullptr;
    if (sampled) {
        workspace.rows.resize(static_cast<size_t>(n));
        structure_rows(input.slopes.n_rows, n, rule.seed, rule.step, workspace.rows.data(),
                       n_threads);
        rows = workspace.rows.data();
    }
    const Scales scales =
        quantise_scales(n, sampled, input.sigma, input.largest_gradient, input.weights);
    workspace.packed.resize(static_cast<size_t>(n * input.slopes.n_outputs));
    quantise(input.slopes, input.sample, input.weights, rows, n, input.sigma, scales, rule.seed,
             rule.step, workspace.packed.data(), n_threads);
    // Sums over a share of the rows are regularised by that share of l2.
    const double share = input.slopes.n_rows > 0
                             ? static_cast<double>(n) / static_cast<double>(input.slopes.n_rows)
                             : 1.0;
    SearchRule scaled = rule;
    scaled.l2 = rule.l2 / scales.unit * scales.weight * share;
    return search({input.codes, workspace.packed.data(), rows, n, input.slopes.n_outputs, scaled},
                  workspace, splits, n_threads);
}

}  // namespace sglb
