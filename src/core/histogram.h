// Histograms of packed words: for each leaf and code, the sum of the words of its rows.
//
// Features are handled four at a time, one 32-bit load of a row's codes:
//
//     hist[group] = | feature 4g: code 0 .. width-1 | 4g+1 | 4g+2 | 4g+3 |     int64 each
#pragma once

#include <cstdint>

namespace sglb {

inline constexpr int64_t group_features = 4;

// Adds the words of n rows to the four histograms of a group. `codes` points at the group's first
// code of row 0; row order[i] has word words[i].
void build_histogram(const uint8_t* codes, int64_t stride, const uint32_t* order,
                     const int64_t* words, int64_t n, int64_t width, int64_t* hist);

// parent and child hold the histograms of a leaf and of one half of it; afterwards `parent` holds
// the left half and `child` the right one. Exact, since the sums are integers.
void split_histogram(int64_t* parent, int64_t* child, int64_t size, bool child_is_left);

// Adds the scores that one leaf contributes to every candidate of one feature:
//     G_left^2 / (W_left + l2) + G_right^2 / (W_right + l2),
// score[b] for the split codes 0..b, missing_right[b] for 1..b (only if has_missing). valid[b] and
// valid_right[b] become nonzero once both sides hold weight in some leaf.
void add_scores(const int64_t* hist, int n_codes, double l2, bool has_missing, double* score,
                double* score_right, int32_t* valid, int32_t* valid_right);

}  // namespace sglb
