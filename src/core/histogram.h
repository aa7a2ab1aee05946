// Histograms of packed words: for each leaf and code, the sum of the words of its rows.
//
// Features are handled four at a time: one 32-bit load fetches a row's four codes, and one vector
// holds the same code of four features.
//
//     hist[group] = | code 0: feature 4g, 4g+1, 4g+2, 4g+3 | code 1: ... | ...        int64 each
#pragma once

#include <cstdint>

namespace sglb {

inline constexpr int64_t group_features = 4;

// Adds the words of n rows to the histograms of a group, `width` codes each. `codes` points at the
// group's first code of row 0; row order[i] has word words[i].
void build_histogram(const uint8_t* codes, int64_t stride, const uint32_t* order,
                     const int64_t* words, int64_t n, int64_t* hist);

// parent and child hold the histograms of a leaf and of one half of it; afterwards `parent` holds
// the left half and `child` the right one. Exact, since the sums are integers.
void split_histogram(int64_t* parent, int64_t* child, int64_t size, bool child_is_left);

// Scores of the candidates of a group, laid out like its histograms: entry b is the split that
// keeps codes 0..b left, or 1..b in the form where missing goes right. A candidate has `parted`
// rows, and so exists, once both its sides hold weight in some leaf.
struct GroupScores {
    double* score;
    double* parted;
    double* right_score;  // missing goes right; null where no feature of the group has any
    double* right_parted;
};

// Adds what one leaf contributes: G_left^2 / (W_left + l2) + G_right^2 / (W_right + l2).
void add_scores(const int64_t* hist, int64_t width, double l2, const GroupScores& to);

// The best candidate of each feature of a group: place[j] = 2 b + (missing goes right), -1 without
// one. Of equal scores the first wins.
void best_scores(const GroupScores& from, int64_t width, double* best, int64_t* place);

}  // namespace sglb
