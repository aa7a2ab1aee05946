// Gradients of the structure rows as integers, with their noise.
//
// A row's word holds  (round(scale * (w g + sigma sqrt(w) zeta)) << 32) + round(weight_scale * w):
// one integer addition sums gradient and weight at once, exactly and in any order.
#pragma once

#include <cstdint>

namespace sglb {

struct Scales {
    double gradient;
    double weight;
};

// The largest scales for which sums over n_rows rows stay below 2^31 in either half.
// largest_gradient bounds |g|, largest_weight bounds w. Without weights each row counts 1.
Scales quantise_scales(int64_t n_rows, double sigma, double largest_gradient, double largest_weight,
                       bool weighted);

// OUT rows [n]: one row of each of n equal stretches of 0..n_rows, increasing.
void structure_rows(int64_t n_rows, int64_t n, uint64_t seed, uint32_t step, uint32_t* rows,
                    int n_threads);

// gradient [n_outputs * n_rows], weight [n_rows] or null, rows [n] or null for all rows (n =
// n_rows). OUT packed [n_outputs * n]. Rounding of the gradient is random and unbiased; a positive
// weight is at least 1.
void quantise(const double* gradient, const double* weight, const uint32_t* rows, int64_t n_rows,
              int64_t n, int64_t n_outputs, double sigma, Scales scales, uint64_t seed,
              uint32_t step, int64_t* packed, int n_threads);

}  // namespace sglb
