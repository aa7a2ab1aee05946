#include "ensemble.h"

#include <algorithm>
#include <vector>

#include "elementary.h"
#include "leaves.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t tile = 256;
constexpr int byte_depth = 8;    // up to this depth a leaf index fits a byte
constexpr int64_t together = 4;  // trees whose values are added in one pass over the rows

// Leaves of the first n rows of a tile (n a multiple of 64) in one tree, the tile's codes being
// column-major with `tile` rows.
template <class Index>
SGLB_INLINE void tile_indices(const uint8_t* codes, const Split* splits, int depth, int64_t n,
                              Index* __restrict index) {
    for (int64_t i = 0; i < n; ++i) index[i] = 0;
    for (int d = 0; d < depth; ++d) {
        const uint8_t* __restrict column = codes + splits[d].feature * tile;
        const uint8_t low = splits[d].low;
        const auto span = static_cast<uint8_t>(splits[d].high - splits[d].low);
        const auto bit = static_cast<Index>(1 << d);
        for (int64_t i = 0; i < n; ++i) {
            const auto offset = static_cast<uint8_t>(column[i] - low);
            index[i] = static_cast<Index>(index[i] | (offset > span ? bit : 0));
        }
        // Keeps the compiler from joining the loops over splits, which would cost the vectors.
        asm volatile("" ::: "memory");
    }
}

SGLB_KERNEL void fill_indices(const uint8_t* codes, const Split* splits, int depth, int64_t n,
                              uint8_t* index) {
    tile_indices(codes, splits, depth, n, index);
}
SGLB_KERNEL void fill_indices(const uint8_t* codes, const Split* splits, int depth, int64_t n,
                              uint16_t* index) {
    tile_indices(codes, splits, depth, n, index);
}

// to[i] += the values of four trees at the leaves of row i, one after the other. Compiled for the
// baseline only: four scalar loads are faster than a gather.
template <class Index>
void add_values(const double* const* values, const Index (*index)[tile], int64_t stride, int64_t n,
                double* to) {
    for (int64_t i = 0; i < n; ++i)
        to[i] = (((to[i] + values[0][index[0][i] * stride]) + values[1][index[1][i] * stride]) +
                 values[2][index[2][i] * stride]) +
                values[3][index[3][i] * stride];
}

// acc[k * tile + i] += values of trees first .. last at the leaf of row i.
template <class Index>
void add_trees(const Trees& trees, const Split* splits, const uint8_t* codes, int64_t n,
               int64_t first, int64_t last, double* acc) {
    alignas(64) Index index[together][tile] = {};
    const double none = 0.0;  // stands in for trees that fill up a group
    const int64_t padded = (n + 63) / 64 * 64;
    const int64_t size = (int64_t{1} << trees.max_depth) * trees.n_outputs;
    for (int64_t t = first; t < last; t += together) {
        const int64_t present = std::min(together, last - t);
        for (int64_t j = 0; j < together; ++j)
            fill_indices(codes, splits + (j < present ? t + j : t) * trees.max_depth,
                         j < present ? trees.depths[t + j] : 0, padded, index[j]);
        for (int64_t k = 0; k < trees.n_outputs; ++k) {
            const double* values[together];
            for (int64_t j = 0; j < together; ++j)
                values[j] = j < present ? trees.values + (t + j) * size + k : &none;
            if (trees.n_outputs == 1)
                add_values(values, index, 1, n, acc);
            else
                add_values(values, index, trees.n_outputs, n, acc + k * tile);
        }
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

// States of one tile of n rows: OUT out [n_states * n_outputs], each n_rows apart.
void predict_tile(const Trees& trees, const States& states, const Split* splits,
                  const uint8_t* codes, int64_t n, int64_t n_rows, double* out) {
    const int64_t outputs = trees.n_outputs;
    std::vector<double> state(static_cast<size_t>(outputs * tile), 0.0);
    std::vector<double> acc(state.size());
    int64_t first = 0;
    for (int64_t s = 0; s < states.n_states; ++s) {
        std::fill(acc.begin(), acc.end(), 0.0);
        if (trees.max_depth <= byte_depth)
            add_trees<uint8_t>(trees, splits, codes, n, first, states.ends[s], acc.data());
        else
            add_trees<uint16_t>(trees, splits, codes, n, first, states.ends[s], acc.data());
        first = states.ends[s];
        for (int64_t k = 0; k < outputs; ++k) {
            double* to = out + (s * outputs + k) * n_rows;
            for (int64_t i = 0; i < n; ++i) {
                double& f = state[static_cast<size_t>(k * tile + i)];
                f = states.factors[s] * f + acc[static_cast<size_t>(k * tile + i)];
                to[i] = states.offset[k] + f;
            }
        }
    }
}

// encode(feature, begin, end, codes) fills the codes of some rows of one feature.
template <class Encode>
void predict_tiles(const Trees& trees, const States& states, int64_t n_features, int64_t n_rows,
                   double* out, int n_threads, Encode&& encode) {
    const Used used = used_features(trees, n_features);
    const auto n_used = static_cast<int64_t>(used.features.size());
    const int64_t n_tiles = (n_rows + tile - 1) / tile;
    // A few hundred leaf look-ups are cheaper than waking a thread.
    const int threads = n_rows * trees.n_trees < 20000 ? 1 : n_threads;
    parallel_for(n_tiles, threads, [&](int64_t number) {
        const int64_t begin = number * tile;
        const int64_t end = std::min(n_rows, begin + tile);
        std::vector<uint8_t> codes(static_cast<size_t>(n_used * tile));
        for (int64_t j = 0; j < n_used; ++j)
            encode(used.features[static_cast<size_t>(j)], begin, end, codes.data() + j * tile);
        predict_tile(trees, states, used.splits.data(), codes.data(), end - begin, n_rows,
                     out + begin);
    });
}

}  // namespace

void predict(const Table& x, const double* thresholds, const int32_t* n_thresholds, int64_t width,
             const Trees& trees, const States& states, double* out, int n_threads) {
    predict_tiles(trees, states, x.n_features, x.n_rows, out, n_threads,
                  [&](int64_t feature, int64_t begin, int64_t end, uint8_t* codes) {
                      encode_block(x, feature, begin, end, thresholds + feature * width,
                                   n_thresholds[feature], codes);
                  });
}

void predict_codes(const uint8_t* columns, int64_t n_features, int64_t n_rows, const Trees& trees,
                   const States& states, double* out, int n_threads) {
    predict_tiles(trees, states, n_features, n_rows, out, n_threads,
                  [&](int64_t feature, int64_t begin, int64_t end, uint8_t* codes) {
                      const uint8_t* from = columns + feature * n_rows;
                      std::copy(from + begin, from + end, codes);
                  });
}

}  // namespace sglb
