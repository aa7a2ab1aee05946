// Trees at the codes of training rows.
#pragma once

#include <cstdint>
#include <vector>

#include "split.h"

namespace sglb {

inline constexpr int byte_depth = 8;  // up to this depth the number of a leaf fits a byte

// Leaf of rows begin..end, `columns` with n_rows rows: OUT index [end - begin].
void leaf_indices(const uint8_t* columns, int64_t n_rows, const Split* splits, int depth,
                  int64_t begin, int64_t end, uint8_t* index);
void leaf_indices(const uint8_t* columns, int64_t n_rows, const Split* splits, int depth,
                  int64_t begin, int64_t end, uint16_t* index);

// Raw scores hold the offset, which is never shrunk:
//
//     shrink (raw - offset) + offset + value = shrink raw + (value + (1 - shrink) offset)
//
// `with_offset` gives the brackets of all leaves, `add_values` does the rest for n rows.
std::vector<double> with_offset(const double* values, int64_t n_leaves, int64_t n_outputs,
                                double shrink, const double* offset);

template <class Index>
void add_values(const Index* index, int64_t n, const double* values, int64_t stride, double shrink,
                double* raw) {
    for (int64_t i = 0; i < n; ++i) raw[i] = shrink * raw[i] + values[index[i] * stride];
}

// raw <- shrink * (raw - offset) + offset + values[leaf] on codes: IN/OUT raw
// [n_outputs * n_rows].
void add_tree(const uint8_t* columns, int64_t n_rows, int64_t n_outputs, const Split* splits,
              int depth, const double* values, double shrink, const double* offset, double* raw,
              int n_threads);

}  // namespace sglb
