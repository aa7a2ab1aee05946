// Gradients of the structure rows as integers, with their noise.
//
// A row's word holds  (round(scale * w (g + sigma / sqrt(w) zeta)) << 32) + round(mass_scale * w
// h): one integer addition sums gradient and mass at once, exactly and in any order. h is 1, or the
// second derivative where scores are to be those of Newton steps.
#pragma once

#include <cstdint>
#include <span>

#include "row_draw.h"
#include "slopes.h"

namespace sglb {

// The rows of a structure search: all, or those of a draw.
struct StructureRows {
    const uint32_t* rows = nullptr;               // [n] or null for 0 .. n - 1
    const double* inverse_probability = nullptr;  // [n] rows that each stands for, or null for one
    int64_t n = 0;
    int64_t n_in_all = 0;  // of all shards
    DrawScale scale = {};  // of the draw
};

// Powers of two, so that a row of weight 2 and a row that is there twice have the same sums.
struct Scales {
    double gradient;  // of w g, w in units
    double mass;      // of w h, w in units
    double unit;
    bool fine;  // 19 bits a row or more: rounding to the nearest integer is exact enough
};

// How gradients become words.
struct QuantiseInput {
    Slopes slopes;
    Subsample subsample;
    Weights weights;
    StructureRows rows;
    double noise;  // standard deviation of the noise on a gradient of weight 1
    SlopeBounds bounds;
    bool newton;  // mass from second derivatives
    uint64_t seed;
    uint32_t step;
    std::span<const int32_t> outputs = {};  // those wanted, increasing; all if there are none

    int64_t n_words() const {
        return outputs.empty() ? slopes.n_outputs : static_cast<int64_t>(outputs.size());
    }
};

// The largest scales for which sums over the rows stay below 2^31 in either half.
Scales quantise_scales(const QuantiseInput& input);

// OUT packed [n_words * n]. Where scales are not fine, gradients are rounded at random and
// without bias. A row of positive weight has mass at least 1.
void quantise(const QuantiseInput& input, const Scales& scales, int64_t* packed, int n_threads);

}  // namespace sglb
