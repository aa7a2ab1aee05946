#include "scoreboard.h"

#include <algorithm>
#include <cmath>

#include "noise.h"
#include "parallel.h"

namespace sglb {
namespace {

// sqrt(sum of squared gradients / sum of weights): what random_strength is relative to.
double gradient_scale(const SearchInput& in) {
    int64_t squares = 0, weight = 0;
    for (int64_t i = 0; i < in.n_words * in.n_outputs; ++i) {
        const int64_t q = in.packed[i] >> 32;
        squares += q * q;
        weight += in.packed[i] & 0x7fffffff;
    }
    return weight > 0 ? std::sqrt(static_cast<double>(squares) / static_cast<double>(weight)) : 0.0;
}

// Adds to the first of n scores, each `stride` floats after the last, all others.
SGLB_KERNEL void merge_scores(const GroupScores& first, int64_t n, int64_t stride, int64_t width) {
    for (int64_t range = 1; range < n; ++range)
        for (int64_t i = 0; i < width * group_features; ++i) {
            const int64_t at = range * stride + i;
            first.score[i] += first.score[at];
            first.splits_rows[i] |= first.splits_rows[at];
            if (first.right_score) {
                first.right_score[i] += first.right_score[at];
                first.right_splits_rows[i] |= first.right_splits_rows[at];
            }
        }
}

// sqrt(score) + scale * normal.
SGLB_KERNEL void add_normals(const uint32_t* radius, const uint32_t* angle, int64_t n, uint32_t odd,
                             float scale, float* score) {
    for (int64_t i = 0; i < n; ++i)
        score[i] = std::sqrt(score[i]) +
                   scale * (normal_radius_single(radius[i]) * normal_cosine_single(angle[i], odd));
}

}  // namespace

Scoreboard::Scoreboard(const SearchInput& input, int64_t width, int64_t n_ranges,
                       Workspace& workspace)
    : in_(input),
      ws_(workspace),
      width_(width),
      n_groups_(groups_of(input.codes)),
      range_size_(2 * n_groups_ * group_features * width) {
    ws_.scores.resize(n_ranges * range_size_);
    ws_.splits_rows.resize(ws_.scores.size());
    if (in_.rule.random_strength > 0.0)
        noise_scale_ = static_cast<float>(gradient_scale(in_) * in_.rule.random_strength);
}

int64_t Scoreboard::features_of(int64_t group) const {
    return std::min(group_features, in_.codes.n_features - group * group_features);
}

void Scoreboard::score(int64_t group, int64_t range, const std::vector<SplitNode>& nodes) {
    score_histograms(nodes.data(), static_cast<int64_t>(nodes.size()), rule(group),
                     scores(group, range));
}

Candidate Scoreboard::best(int64_t n_ranges, int depth, int n_threads) {
    best_.assign(n_groups_, Candidate{});
    parallel_for(n_groups_, n_threads, [&](int64_t group) {
        merge_scores(scores(group, 0), n_ranges, range_size_, width_);
        best_[group] = best_in_group(group, depth);
    });
    Candidate winner;
    for (const Candidate& candidate : best_)
        if (candidate.rank > winner.rank) winner = candidate;
    return winner;
}

GroupRule Scoreboard::rule(int64_t group) const {
    GroupRule rule{
        width_, features_of(group), {}, static_cast<float>(std::min(in_.rule.l2, 0x1p52))};
    for (int64_t j = 0; j < features_of(group); ++j)
        rule.is_level[j] = one_code_left(kind(group, j));
    return rule;
}

GroupScores Scoreboard::scores(int64_t group, int64_t range) {
    const int64_t group_size = group_features * width_;
    const int64_t at = range * range_size_ + 2 * group * group_size;
    float* score = ws_.scores.data() + at;
    int32_t* splits_rows = ws_.splits_rows.data() + at;
    bool missing = false;
    for (int64_t j = 0; j < features_of(group); ++j)
        missing |= kind(group, j) == numbers_or_missing;
    return {score, splits_rows, missing ? score + group_size : nullptr, splits_rows + group_size};
}

Candidate Scoreboard::best_in_group(int64_t group, int depth) {
    const GroupScores from = scores(group, 0);
    for (int64_t j = 0; j < features_of(group); ++j)
        if (kind(group, j) == bundle)
            from.splits_rows[lane_feature[j]] = from.right_splits_rows[lane_feature[j]] = 0;
    if (in_.rule.random_strength > 0.0) perturb(from, group, depth);
    float rank[group_features];
    int32_t candidate[group_features];
    best_scores(from, width_, rank, candidate);
    Candidate best;
    for (int64_t j = 0; j < features_of(group); ++j) {
        const int64_t lane = lane_feature[j];  // the order is its own inverse
        if (candidate[lane] < 0 || !(rank[lane] > best.rank)) continue;
        const auto feature = static_cast<int32_t>(group * group_features + j);
        const auto high = static_cast<uint8_t>(candidate[lane] / 2);
        const bool level = one_code_left(in_.codes.kinds[feature]);
        best = {rank[lane],
                {feature, level ? high : static_cast<uint8_t>(candidate[lane] % 2), high}};
    }
    return best;
}

// Turns the scores of a group into their roots plus noise: what is compared instead of them.
// Candidate (feature, last code b, missing right) has normal number 512 feature + 2 b + right. Of
// candidates that split the rows alike, which tie without noise, only the first keeps its chance.
void Scoreboard::perturb(const GroupScores& scores, int64_t group, int depth) const {
    const Stream stream{in_.rule.seed, in_.rule.step, Role::score, static_cast<uint32_t>(depth)};
    constexpr int64_t tile = 32 * group_features;
    uint32_t counters[tile], words[4][tile];
    for (int64_t first = 0; first < width_ * group_features; first += tile) {
        const int64_t n = std::min(tile, width_ * group_features - first);
        for (int64_t i = 0; i < n; ++i) {
            const int64_t feature = group * group_features + lane_feature[i % group_features];
            counters[i] = static_cast<uint32_t>(256 * feature + (first + i) / group_features);
        }
        gather_words(stream, counters, n, {words[0], words[1], words[2], words[3]});
        add_normals(words[0], words[1], n, 0, noise_scale_, scores.score + first);
        if (scores.right_score)
            add_normals(words[0], words[1], n, 1, noise_scale_, scores.right_score + first);
    }
    if (!scores.right_score) return;
    for (int64_t j = 0; j < features_of(group); ++j) {
        // Without missing values both candidates are the same; with them, all other codes on the
        // left mirror missing values alone on the left.
        const bool missing = kind(group, j) == numbers_or_missing;
        const int64_t last = in_.codes.n_codes[group * group_features + j] - 1;
        for (int64_t b = missing ? last : 0; b < width_; ++b)
            scores.right_splits_rows[b * group_features + lane_feature[j]] = 0;
    }
}

}  // namespace sglb
