#include "ensemble.h"

#include <algorithm>
#include <vector>

#include "elementary.h"
#include "leaves.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t tile = 256;

// All trees on one tile of rows, its codes column-major with `tile` rows: acc [n_outputs * tile].
SGLB_KERNEL void add_trees(const Trees& trees, const Split* splits, const uint8_t* codes, int64_t n,
                           double* acc) {
    uint16_t index[tile];
    const int64_t size = (int64_t{1} << trees.max_depth) * trees.n_outputs;
    for (int64_t t = 0; t < trees.n_trees; ++t) {
        leaf_indices(codes, tile, splits + t * trees.max_depth, trees.depths[t], 0, n, index);
        const double* values = trees.values + t * size;
        for (int64_t k = 0; k < trees.n_outputs; ++k)
            for (int64_t i = 0; i < n; ++i)
                acc[k * tile + i] += values[index[i] * trees.n_outputs + k];
    }
}

// The features that some tree uses, numbered in order; splits refer to these numbers.
struct Used {
    std::vector<int32_t> features;
    std::vector<Split> splits;
};

Used used_features(const Trees& trees, int64_t n_features) {
    std::vector<int32_t> number(static_cast<size_t>(n_features), -1);
    Used used;
    used.splits.resize(static_cast<size_t>(trees.n_trees * trees.max_depth), Split{0, 0, 0});
    for (int64_t t = 0; t < trees.n_trees; ++t)
        for (int64_t d = 0; d < trees.depths[t]; ++d) {
            const int64_t at = t * trees.max_depth + d;
            int32_t& found = number[static_cast<size_t>(trees.features[at])];
            if (found < 0) {
                found = static_cast<int32_t>(used.features.size());
                used.features.push_back(trees.features[at]);
            }
            used.splits[static_cast<size_t>(at)] = {found, trees.lows[at], trees.highs[at]};
        }
    return used;
}

// encode(feature, begin, end, codes) fills the codes of some rows of one feature.
template <class Encode>
void predict_tiles(const Trees& trees, int64_t n_features, int64_t n_rows, double* out,
                   int n_threads, Encode&& encode) {
    const Used used = used_features(trees, n_features);
    const auto n_used = static_cast<int64_t>(used.features.size());
    const int64_t n_tiles = (n_rows + tile - 1) / tile;
    // A few hundred leaf look-ups are cheaper than waking a thread.
    const int threads = n_rows * trees.n_trees < 20000 ? 1 : n_threads;
    parallel_for(n_tiles, threads, [&](int64_t number) {
        const int64_t begin = number * tile;
        const int64_t end = std::min(n_rows, begin + tile);
        std::vector<uint8_t> codes(static_cast<size_t>(n_used * tile));
        std::vector<double> acc(static_cast<size_t>(trees.n_outputs * tile), 0.0);
        for (int64_t j = 0; j < n_used; ++j)
            encode(used.features[static_cast<size_t>(j)], begin, end, codes.data() + j * tile);
        add_trees(trees, used.splits.data(), codes.data(), end - begin, acc.data());
        for (int64_t k = 0; k < trees.n_outputs; ++k)
            for (int64_t i = begin; i < end; ++i)
                out[k * n_rows + i] += acc[static_cast<size_t>(k * tile + i - begin)];
    });
}

}  // namespace

void predict(const Table& x, const double* thresholds, const int32_t* n_thresholds, int64_t width,
             const Trees& trees, double* out, int n_threads) {
    predict_tiles(trees, x.n_features, x.n_rows, out, n_threads,
                  [&](int64_t feature, int64_t begin, int64_t end, uint8_t* codes) {
                      encode_block(x, feature, begin, end, thresholds + feature * width,
                                   n_thresholds[feature], codes);
                  });
}

void predict_codes(const uint8_t* columns, int64_t n_rows, const Trees& trees, double* out,
                   int n_threads) {
    int64_t n_features = 0;
    for (int64_t t = 0; t < trees.n_trees; ++t)
        for (int64_t d = 0; d < trees.depths[t]; ++d)
            n_features = std::max<int64_t>(n_features, trees.features[t * trees.max_depth + d] + 1);
    predict_tiles(trees, n_features, n_rows, out, n_threads,
                  [&](int64_t feature, int64_t begin, int64_t end, uint8_t* codes) {
                      const uint8_t* from = columns + feature * n_rows;
                      std::copy(from + begin, from + end, codes);
                  });
}

}  // namespace sglb
