// Prediction: the states of a chain at many rows, from raw feature values or from codes.
//
// Trees are read once for any number of states. State s follows from the one before it,
//
//     f_s = factor_s f_{s-1} + sum over trees ends_{s-1} <= t < ends_s of values_t[leaf],
//
// factor_s being the product of the shrink factors in between, and the values being weighted as
// they are at the end of their stretch of trees.
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
    const double* values;     // [n_trees * 2^max_depth * n_outputs], weighted
};

struct States {
    int64_t n_states;
    const int64_t* ends;    // [n_states], never falling
    const double* factors;  // [n_states]
    const double* offset;   // [n_outputs], added to every state
};

// OUT out [n_states * n_outputs * n_rows].
void predict(const Table& x, const double* thresholds, const int32_t* n_thresholds, int64_t width,
             const Trees& trees, const States& states, double* out, int n_threads);

// The same from codes [n_features * n_rows].
void predict_codes(const uint8_t* columns, int64_t n_features, int64_t n_rows, const Trees& trees,
                   const States& states, double* out, int n_threads);

}  // namespace sglb
