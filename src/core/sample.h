// The rows that a structure is searched on.
//
// Rows that matter more are drawn more often and count for less when they are: row i is there with
// chance p_i = min(1, a_i / mu) and then stands for 1 / p_i rows, so sums over the drawn rows are
// unbiased. a_i = w_i sqrt(|g_i|^2 + noise + floor^2) is what the row may add to a sum: its
// gradient, the standard deviation of its noise, and a floor, the mean |g|, that keeps the weights
// 1 / p small. Where there are many rows, only some are looked at: one from each of 2 n equal
// stretches, n being the rows wanted.
#pragma once

#include <cstdint>
#include <vector>

#include "noise.h"
#include "slopes.h"

namespace sglb {

// Length of a stretch as a 32.32 fixed-point number. Needs n <= n_rows < 2^31.
inline uint64_t stretch_length(uint64_t n, uint64_t n_rows) { return (n_rows << 32) / n; }

// The row at a random point of stretch k; never falls as k grows. Every row has the same chance,
// also where a stretch ends within a row, which its neighbour may then draw once more.
SGLB_INLINE uint64_t stretch_point(uint64_t word, uint64_t k, uint64_t length) {
    const uint64_t point = (length >> 32) * word + ((length & 0xffffffff) * word >> 32);
    return (k * length + point) >> 32;
}
SGLB_INLINE uint64_t stretch_row(const Stream& stream, uint64_t k, uint64_t length) {
    return stretch_point(words_at(stream, k)[0], k, length);
}

// Weights of rows; without any, each row has weight 1.
struct Weights {
    const double* weight = nullptr;  // [n_rows] or null
    double unit = 1.0;               // weight of an ordinary row: 1 for multiplicities
    double largest = 1.0;            // in units
    double total = 0.0;              // in units
};

// Sum of squared weights / sum of weights: rows of this weight, as many, know as much.
double typical_weight(const Weights& weights, int64_t n_rows);

struct DrawInput {
    Slopes slopes;
    Sample sample;
    Weights weights;
    double sigma;        // standard deviation of the noise on a gradient of weight 1
    int64_t begin, end;  // rows to draw from
    int64_t n;           // rows wanted, fewer than there are
    uint64_t seed;
    uint32_t step;
};

// Drawn rows, never falling, and how many rows each stands for.
struct Draw {
    std::vector<uint32_t> rows;
    std::vector<double> lift;
    // All rows were looked at: `lift` has all of them, 0 for those that were not drawn. Then
    // nothing needs to be moved together, which costs as much as it saves.
    bool dense = false;
    double mu = 1.0, floor = 1.0;  // in units of weight times gradient, and of gradient
    double share = 1.0;            // of the rows that were looked at
    // Scratch of the drawing.
    std::vector<uint32_t> found;
    std::vector<double> found_lift;
    std::vector<int64_t> counts;
};

// About n rows: mu, from a sample, is off by about 2 %, and for a given mu the number varies as
// that of a Poisson process does, or less.
void draw_rows(const DrawInput& input, Draw& draw, int n_threads);

}  // namespace sglb
