// Histograms of packed words: for each leaf and code, the sum of the words of its rows.
//
// Features are handled eight at a time: one 64-bit load fetches a row's eight codes, and two
// vectors hold the same code of eight features.
//
//     hist[group] = | code 0: feature 8g, 8g+1, .. 8g+7 | code 1: ... | ...        int64 each
#pragma once

#include <cstdint>

namespace sglb {

inline constexpr int64_t group_features = 8;

// Codes of a group of features: those of row r are at codes + r * stride. `far` rows do not stay in
// a cache and are fetched ahead of their time, which costs a little where they do.
struct RowCodes {
    const uint8_t* codes;
    int64_t stride;
    bool far;
};

// Adds the words of n rows, order[0] .. order[n - 1], to the histograms of a group; row r has word
// words[r]. With `half` only the first four features are counted.
void build_histogram(const RowCodes& rows, const uint32_t* order, const int64_t* words, int64_t n,
                     bool half, int64_t* hist);

void add_histogram(const int64_t* from, int64_t* to, int64_t size);

}  // namespace sglb
