// Scores of the candidates of a group of features, from the histograms of the nodes.
#pragma once

#include <cstdint>

#include "histogram.h"

namespace sglb {

// Lane l of a vector of scores belongs to feature lane_feature[l] of the group: the order in which
// the halves of eight words come out of two vectors of four.
inline constexpr int64_t lane_feature[group_features] = {0, 1, 4, 5, 2, 3, 6, 7};

// Scores of the candidates of a group, entry b * 8 + lane: the split that keeps codes 0..b left, or
// 1..b where missing values go right, or code b alone for a feature of levels. A candidate exists
// if it splits rows: if both its sides have weight in some node.
struct GroupScores {
    float* score;
    int32_t* splits_rows;  // above 0 where some node has weight on both sides
    float* right_score;    // missing goes right; null where no feature of the group has any
    int32_t* right_splits_rows;
};

// What a group is searched for.
struct GroupRule {
    int64_t width;                  // codes of the widest feature
    int64_t n_features;             // that exist
    bool is_level[group_features];  // by feature
    float l2;                       // at most 2^52
};

// Histograms of a node that was split and of one of its children, the other being its sibling.
// `child` is null if the sibling has all rows, or if the node was not split: then the parent itself
// is scored.
struct SplitNode {
    int64_t* parent;
    const int64_t* child;
};

// Sum over the children, in the order of their parents, of
//
//     G_left^2 / (W_left + l2) + G_right^2 / (W_right + l2)
//
// for every candidate, the children of a node being added to each other first. Leaves the sibling's
// histogram in place of the parent's: parent -= child, exactly, since sums are integers. Single
// precision: sums of integers are exact before they are rounded, and 24 bits tell scores apart
// better than the gradients they come from.
void score_histograms(const SplitNode* nodes, int64_t n, const GroupRule& rule,
                      const GroupScores& to);

// The best candidate of each lane: candidate[l] = 2 b + (missing goes right), -1 without one. Of
// equal scores the first wins.
void best_scores(const GroupScores& from, int64_t width, float* best, int32_t* candidate);

}  // namespace sglb
