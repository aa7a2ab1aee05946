// Gradients of the structure rows as integers, with their noise.
//
// A row's word holds  (round(scale * (w g + sigma sqrt(w) zeta)) << 32) +
// round(weight_scale * w): one integer addition sums gradient and weight at
// once, exactly and in any order.
#pragma once

#include <cstdint>

#include "slopes.h"

namespace sglb {

// Weights of rows; without any, each row has weight 1.
struct Weights {
    const double* weight = nullptr;  // [n_rows] or null
    double unit = 1.0;               // weight of an ordinary row: 1 for multiplicities
    double largest = 1.0;            // in units
    double total = 0.0;              // in units
};

// Powers of two, so that a row of weight 2 and a row that is there twice have
// the same sums.
struct Scales {
    double gradient;  // of w g, w in units
    double weight;    // of w in units
    double unit;
    bool fine;  // 19 bits a row or more: rounding to the nearest integer is exact
                // enough
};

// The largest scales for which sums over n rows stay below 2^31 in either half.
// `sampled` says that the n rows are some of all rows; largest_gradient bounds
// |g|.
Scales quantise_scales(int64_t n, bool sampled, double sigma, double largest_gradient,
                       const Weights& weights);

// OUT rows [n]: one row of each of n equal stretches of 0..n_rows, increasing.
void structure_rows(int64_t n_rows, int64_t n, uint64_t seed, uint32_t step, uint32_t* rows,
                    int n_threads);

// rows [n], or null for all rows. OUT packed [n_outputs * n]. Where scales are not fine, rounding
// is random and unbiased. A positive weight is at least 1.
void quantise(const Slopes& slopes, const Sample& sample, const Weights& weights,
              const uint32_t* rows, int64_t n, double sigma, Scales scales, uint64_t seed,
              uint32_t step, int64_t* packed, int n_threads);

}  // namespace sglb
