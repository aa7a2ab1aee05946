// Noise is a function, not a stream: number `index` of (seed, step, role, output).
//
// Philox4x32-10 turns a 128-bit counter and a 64-bit key into four words. The key is the seed, the
// counter holds everything else, so any number can be had at any time, in any order, by any thread.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "elementary.h"

namespace sglb {

// Who draws: two roles never share a counter.
enum class Role : uint32_t {
    structure = 0,    // gradient noise that chooses the structure, by row
    leaf = 1,         // gradient noise of a leaf, by leaf
    subsample = 2,    // rows kept in a gradient estimate, by row; queries by their first row
    rows = 3,         // rows of a structure search, by stretch of rows
    score = 4,        // noise on split scores, by candidate
    permutation = 5,  // orders of rows
    chain = 6,        // seeds of further chains
    test = 7,         // free for tests
    thresholds = 8,   // rows that thresholds are found on
    outputs = 9,      // outputs of a structure search, by output
    fold = 10,        // folds of rows in cross-validation, by row
    partition = 11,   // partitions that frozen chains step on, by batch of draws
    prior = 12,       // leaf values of draws from the prior, by leaf and draw; step: partition
    draw = 13,        // gradient noise of frozen chains, by leaf and draw
    ranking = 14,     // noise on the scores of a ranking loss, by row; output: sample
    curvature = 15,   // the same for the curvature of a ranking loss
    relevance = 16,   // random part of relevances in a ranking loss, by row
    shuffle = 17,     // random orders of the documents of a query, by row; output: four orders
    swap = 18,        // exchanges of temperatures between chains, by rung
};

using Words = std::array<uint32_t, 4>;

// The streams of one step: everything but the index.
struct Stream {
    uint64_t seed;
    uint32_t step;
    Role role;
    uint32_t output = 0;  // below 2^24
};

SGLB_INLINE Words philox(Words counter, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t{0xD2511F53} * counter[0];
        const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(b),
                   static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(a)};
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
    return counter;
}

SGLB_INLINE Words words_at(const Stream& stream, uint64_t index) {
    const Words counter = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                           stream.step, static_cast<uint32_t>(stream.role) | stream.output << 8};
    return philox(counter, static_cast<uint32_t>(stream.seed),
                  static_cast<uint32_t>(stream.seed >> 32));
}

// 32 bits to [0, 1); exact, by placing the bits under 2^52.
SGLB_INLINE double unit(uint32_t word) {
    return (std::bit_cast<double>(uint64_t{word} | 0x4330000000000000ULL) - 4503599627370496.0) *
           0x1p-32;
}

// The largest |normal| that two 32-bit words can give: sqrt(-2 ln 2^-33).
inline constexpr double largest_normal = 6.7638;

// Box-Muller: radius and angle make two independent normals, a quarter of a turn apart. The radius
// uses (word + 1/2) 2^-32, which is never 0.
SGLB_INLINE double normal_radius(uint32_t word) {
    return std::sqrt(-2.0 * logarithm(unit(word) + 0x1p-33));
}
SGLB_INLINE double normal_cosine(uint32_t word, uint32_t odd) {
    return cosine_turn(unit(word - (odd << 30)));
}

// Normals 2 i and 2 i + 1 come from words 0 and 1 of counter i.
SGLB_INLINE double normal_at(const Stream& stream, uint64_t index) {
    const Words w = words_at(stream, index >> 1);
    return normal_radius(w[0]) * normal_cosine(w[1], static_cast<uint32_t>(index & 1));
}

// The same two normals in single precision, within 3e-6 but for radii below 0.01, which are within
// 4e-4: enough for the noise of a structure, which is rounded to fewer bits. Whole numbers are
// taken as signed, which every instruction set turns into floats.
SGLB_INLINE float normal_radius_single(uint32_t word) {
    const auto half = static_cast<float>(static_cast<int32_t>(word >> 1));
    return std::sqrt(-2.0f * logarithm_single((half + 0.5f) * 0x1p-31f));
}
SGLB_INLINE float normal_cosine_single(uint32_t word, uint32_t odd) {
    // Half a turn further, so that the angle lies around 0.
    const auto angle = static_cast<float>(static_cast<int32_t>(word - (odd << 30) + 0x80000000U));
    return minus_cosine_single(std::fabs(angle) * 0x1p-32f);
}
// 24 bits to [0, 1).
SGLB_INLINE float unit_single(uint32_t word) {
    return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f;
}

void fill_words(const Stream& stream, uint64_t first, int64_t n, uint32_t* out);
// Words of n counters: word j of counter index[i] goes to to[j][i].
void gather_words(const Stream& stream, const uint32_t* index, int64_t n, uint32_t* const (&to)[4]);

}  // namespace sglb
