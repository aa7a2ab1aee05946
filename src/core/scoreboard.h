// Scores of all candidates of a level, and the best of them.
//
// The nodes of a level are scored in ranges, each by itself; their scores are then added up in the
// order of the ranges, so that who scored which range does not matter.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "candidate_scores.h"
#include "search.h"
#include "workspace.h"

namespace sglb {

struct Candidate {
    // Sum of G^2 / (W + l2) over the nodes it makes, or the noisy root of it.
    float rank = -std::numeric_limits<float>::infinity();
    Split split{-1, 0, 0};
    bool exists() const { return split.feature >= 0; }
};

inline int64_t groups_of(const Codes& codes) { return codes.stride / group_features; }

class Scoreboard {
  public:
    // For features of at most `width` codes, and at most this many ranges a level.
    Scoreboard(const SearchInput& input, int64_t width, int64_t n_ranges, Workspace& workspace);

    // Features of a group that exist.
    int64_t features_of(int64_t group) const;

    // Scores the candidates of a group in one range of nodes.
    void score(int64_t group, int64_t range, const std::vector<SplitNode>& nodes);

    // The best candidate of a level, all ranges of which have been scored.
    Candidate best(int64_t n_ranges, int depth, int n_threads);

  private:
    uint8_t kind(int64_t group, int64_t j) const {
        return in_.codes.kinds[group * group_features + j];
    }
    GroupRule rule(int64_t group) const;
    GroupScores scores(int64_t group, int64_t range);
    Candidate best_in_group(int64_t group, int depth);
    void perturb(const GroupScores& scores, int64_t group, int depth) const;

    const SearchInput& in_;
    Workspace& ws_;
    int64_t width_, n_groups_, range_size_;
    float noise_scale_ = 0.0f;
    std::vector<Candidate> best_;  // by group
};

}  // namespace sglb
