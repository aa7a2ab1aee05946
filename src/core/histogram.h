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

// Lane l of a vector of scores belongs to feature lane_feature[l] of the group: the order in which
// the halves of eight words come out of two vectors of four.
inline constexpr int64_t lane_feature[group_features] = {0, 1, 4, 5, 2, 3, 6, 7};

// Scores of the candidates of a group, entry b * 8 + lane: the split that keeps codes 0..b left, or
// 1..b in the form where missing goes right, or code b alone for a feature of levels. A candidate
// has `parted` rows, and so exists, once both its sides hold weight in some leaf.
struct GroupScores {
    float* score;
    int32_t* parted;     // above 0 where some leaf has weight on both sides
    float* right_score;  // missing goes right; null where no feature of the group has any
    int32_t* right_parted;
};

// What a group is searched for.
struct GroupRule {
    int64_t width;                  // codes of the widest feature
    int64_t n_features;             // that exist
    bool is_level[group_features];  // by feature
    float l2;                       // at most 2^52
};

// Histograms of a leaf that was split and of one of the two leaves it became; `part` is null where
// the other one has all rows, or none was split.
struct Family {
    int64_t* whole;
    const int64_t* part;
};

// Sum over the leaves, in the order of their families, of
//
//     G_left^2 / (W_left + l2) + G_right^2 / (W_right + l2)
//
// for every candidate, the two leaves of a family being added to each other first. Leaves the other
// leaf's histogram in place of the whole one's: whole -= part, exactly, since sums are integers.
// Single precision: sums of integers are exact before they are rounded, and 24 bits tell scores
// apart better than the gradients they come from.
void score_histograms(const Family* families, int64_t n, const GroupRule& rule,
                      const GroupScores& to);

// Adds to the first of n scores, each `stride` floats after the last, all others.
void merge_scores(const GroupScores& first, int64_t n, int64_t stride, int64_t width);

// The best candidate of each lane: place[l] = 2 b + (missing goes right), -1 without one. Of equal
// scores the first wins.
void best_scores(const GroupScores& from, int64_t width, float* best, int32_t* place);

}  // namespace sglb
