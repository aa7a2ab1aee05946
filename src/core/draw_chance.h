// The probability with which a row is drawn: p_i = min(1, a_i / mu).
//
//     a_i = w_i sqrt(|g_i|^2 + noise / w_i + floor^2)
//
// is the importance of a row, what it may add to a sum: its gradient, its noise, whose variance is
// `noise` at weight 1, and a floor, the mean |g|, that keeps the weights 1 / p small. Weights are
// in units.
#pragma once

#include <cstdint>

namespace sglb {

// Candidates that floor and mu are found on, the same ones wherever they are: squared gradient and
// weight of those here, 0 for the others, so that those of all shards add up.
struct Pilot {
    static constexpr int64_t most = 1024;  // the number of rows drawn follows to about 2 %
    double squares[most] = {}, weights[most] = {};
};

struct DrawScale {
    double mu = 1.0, floor = 1.0;  // in units of weight times gradient, and of gradient
};

// floor and mu from the first n entries of the pilot of all shards, such that the probabilities of
// these add up to `wanted`.
DrawScale find_scale(const Pilot& pilot, int64_t n, double noise, double wanted);

// OUT importance [n].
void find_importances(const double* squares, const double* weight, int64_t n, double noise,
                      double floor, double* importance);

// Whether each of n rows is drawn, given a random number for each, and how many rows it then stands
// for, else 0: OUT inverse_probability, drawn [n].
void toss(const double* importance, const uint32_t* coin, int64_t n, double mu,
          double* inverse_probability, uint8_t* drawn);

}  // namespace sglb
