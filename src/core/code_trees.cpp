#include "code_trees.h"

#include <algorithm>

#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t tile = 512;

// index[i] gets `bit` where the code lies outside low .. low + span. Bytes throughout: vectors have
// no shift of bytes.
SGLB_KERNEL void add_bit(const uint8_t* codes, int64_t n, uint8_t low, uint8_t span, uint8_t bit,
                         uint8_t* index) {
    for (int64_t i = 0; i < n; ++i) {
        const auto offset = static_cast<uint8_t>(codes[i] - low);
        index[i] = static_cast<uint8_t>(index[i] | (offset > span ? bit : 0));
    }
}

}  // namespace

void leaf_indices(const uint8_t* columns, int64_t n_rows, const Split* splits, int depth,
                  int64_t begin, int64_t end, uint8_t* index) {
    std::fill(index, index + (end - begin), uint8_t{0});
    for (int d = 0; d < depth; ++d)
        add_bit(columns + splits[d].feature * n_rows + begin, end - begin, splits[d].low,
                static_cast<uint8_t>(splits[d].high - splits[d].low), static_cast<uint8_t>(1 << d),
                index);
}

void leaf_indices(const uint8_t* columns, int64_t n_rows, const Split* splits, int depth,
                  int64_t begin, int64_t end, uint16_t* index) {
    uint8_t low[tile], high[tile];
    const int low_depth = std::min(depth, byte_depth);
    for (int64_t at = begin; at < end; at += tile) {
        const int64_t n = std::min(tile, end - at);
        leaf_indices(columns, n_rows, splits, low_depth, at, at + n, low);
        leaf_indices(columns, n_rows, splits + low_depth, depth - low_depth, at, at + n, high);
        for (int64_t i = 0; i < n; ++i)
            index[at - begin + i] = static_cast<uint16_t>(low[i] | high[i] << 8);
    }
}

std::vector<double> with_offset(const double* values, int64_t n_leaves, int64_t n_outputs,
                                double shrink, const double* offset) {
    std::vector<double> steps(values, values + n_leaves * n_outputs);
    for (int64_t j = 0; j < n_leaves; ++j)
        for (int64_t k = 0; k < n_outputs; ++k)
            steps[static_cast<size_t>(j * n_outputs + k)] += (1.0 - shrink) * offset[k];
    return steps;
}

void add_tree(const uint8_t* columns, int64_t n_rows, int64_t n_outputs, const Split* splits,
              int depth, const double* values, double shrink, const double* offset, double* raw,
              int n_threads) {
    const std::vector<double> steps =
        with_offset(values, int64_t{1} << depth, n_outputs, shrink, offset);
    parallel_rows(n_rows, n_threads, [&](int64_t begin, int64_t end) {
        uint16_t index[tile];
        for (int64_t at = begin; at < end; at += tile) {
            const int64_t n = std::min(tile, end - at);
            leaf_indices(columns, n_rows, splits, depth, at, at + n, index);
            for (int64_t k = 0; k < n_outputs; ++k)
                add_values(index, n, steps.data() + k, n_outputs, shrink, raw + k * n_rows + at);
        }
    });
}

}  // namespace sglb
