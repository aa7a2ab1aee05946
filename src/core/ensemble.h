// Prediction: the sum of many trees, from raw feature values or from codes.
#pragma once

#include <cstdint>

#include "bins.h"

namespace sglb {

// Trees as plain arrays, tree t at row t of each.
struct Trees {
    int64_t n_trees;
    int64_t max_depth;
    int64_t n_outputs;
    const int32_t* features;  // [n_trees * max_depth]
    const uint8_t* lows;      // [n_trees * max_depth]
    const uint8_t* highs;     // [n_trees * max_depth]
    const int32_t* depths;    // [n_trees]
    const double* values;     // [n_trees * 2^max_depth * n_outputs], already weighted
};

// IN/OUT out [n_outputs * n_rows]: the trees are added to what is there.
void predict(const Table& x, const double* thresholds, const int32_t* n_thresholds, int64_t width,
             const Trees& trees, double* out, int n_threads);

// The same from codes [n_features * n_rows].
void predict_codes(const uint8_t* columns, int64_t n_rows, const Trees& trees, double* out,
                   int n_threads);

}  // namespace sglb
