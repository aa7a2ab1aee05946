// The rows that a structure is searched on.
//
// Rows that matter more are drawn more often and count for less when they are: row i is drawn with
// probability p_i = min(1, a_i / mu) and then stands for 1 / p_i rows, so sums over the drawn rows
// are unbiased (draw_chance.h). Where there are many rows, only some are looked at: one from each
// of 2 n equal stretches, n being the rows wanted.
#pragma once

#include <cstdint>
#include <vector>

#include "draw_chance.h"
#include "noise.h"
#include "slopes.h"
#include "weights.h"

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

struct DrawInput {
    Slopes slopes;
    Subsample subsample;
    Weights weights;
    double noise;  // standard deviation of the noise on a gradient of weight 1
    int64_t copy;  // of the rows, to draw from
    int64_t n;     // rows wanted in all shards, fewer than a copy has
    uint64_t seed;
    uint32_t step;
};

// Drawn rows, never falling, and the inverse of the probability with which each was drawn: how many
// rows it stands for.
struct Draw {
    std::vector<uint32_t> rows;
    std::vector<double> inverse_probability;
    // All rows were looked at: `inverse_probability` has all of them, 0 for those not drawn. Then
    // nothing needs to be moved together, which costs as much as it saves.
    bool dense = false;
    DrawScale scale;
    double share = 1.0;  // of the rows that were looked at
    // Scratch of the drawing.
    std::vector<uint32_t> candidate_rows;
    std::vector<double> candidate_inverse;
    std::vector<int64_t> counts;
};

// OUT pilot, whose entries are 0 before.
void pilot_rows(const DrawInput& input, Pilot& pilot);

// About n rows: mu, from the pilot of all shards, is off by about 2 %, and for a given mu the
// number varies as that of a Poisson process does, or less.
void draw_rows(const DrawInput& input, const Pilot& pilot, Draw& draw, int n_threads);

}  // namespace sglb
