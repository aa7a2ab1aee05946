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

}  // namespace

Scoreboard::Scoreboard(const SearchInput& input, int64_t width, int64_t n_ranges,
                       Workspace& workspace)
    : in_(input),
      ws_(workspace),
      width_(width),
      n_groups_(groups_of(input.codes)),
      range_size_(2 * n_groups_ * group_features * width) {
    ws_.scores.resize(static_cast<size_t>(n_ranges * range_size_));
    ws_.parted.resize(ws_.scores.size());
    if (in_.rule.random_strength > 0.0)
        noise_scale_ = gradient_scale(in_) * in_.rule.random_strength;
}

int64_t Scoreboard::features_of(int64_t group) const {
    return std::min(group_features, in_.codes.n_features - group * group_features);
}

void Scoreboard::score(int64_t group, int64_t range, const std::vector<Family>& families) {
    score_histograms(families.data(), static_cast<int64_t>(families.size()), rule(group),
                     scores(group, range));
}

Candidate Scoreboard::best(int64_t n_ranges, int depth, int n_threads) {
    best_.assign(static_cast<size_t>(n_groups_), Candidate{});
    parallel_for(n_groups_, n_threads, [&](int64_t group) {
        merge_scores(scores(group, 0), n_ranges, range_size_, width_);
        best_[static_cast<size_t>(group)] = best_in_group(group, depth);
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
    int32_t* parted = ws_.parted.data() + at;
    bool missing = false;
    for (int64_t j = 0; j < features_of(group); ++j)
        missing |= kind(group, j) == numbers_or_missing;
    return {score, parted, missing ? score + group_size : nullptr, parted + group_size};
}

Candidate Scoreboard::best_in_group(int64_t group, int depth) {
    const GroupScores from = scores(group, 0);
    for (int64_t j = 0; j < features_of(group); ++j)
        if (kind(group, j) == bundle)
            from.parted[lane_feature[j]] = from.right_parted[lane_feature[j]] = 0;
    float rank[group_features];
    int32_t place[group_features];
    best_scores(from, width_, rank, place);
    Candidate best;
    for (int64_t j = 0; j < features_of(group); ++j) {
        const int64_t lane = lane_feature[j];  // the order is its own inverse
        double value = static_cast<double>(rank[lane]);
        int64_t at = place[lane];
        if (in_.rule.random_strength > 0.0 && at >= 0)
            at = best_noisy(from, group * group_features + j, lane, depth, value);
        if (at < 0 || !(value > best.rank)) continue;
        const auto feature = static_cast<int32_t>(group * group_features + j);
        const auto high = static_cast<uint8_t>(at / 2);
        const bool level = one_code_left(in_.codes.kinds[feature]);
        best = {value, {feature, level ? high : static_cast<uint8_t>(at % 2), high}};
    }
    return best;
}

// The best candidate of one feature by the root of the score plus noise; -1 without one.
int64_t Scoreboard::best_noisy(const GroupScores& from, int64_t feature, int64_t lane, int depth,
                               double& best) const {
    const Stream stream{in_.rule.seed, in_.rule.step, Role::score, static_cast<uint32_t>(depth)};
    best = -std::numeric_limits<double>::infinity();
    int64_t place = -1;
    const bool level = one_code_left(in_.codes.kinds[feature]);
    // The last code of a number has nothing on its right but, perhaps, missing values, and the
    // split at code 0 is that one's mirror image.
    const int64_t n = 2 * (in_.codes.n_codes[feature] - (level ? 0 : 1));
    for (int64_t at = 0; at < n; ++at) {
        const bool right = at % 2 != 0;
        if (right && in_.codes.kinds[feature] != numbers_or_missing) continue;
        const int64_t entry = at / 2 * group_features + lane;
        if ((right ? from.right_parted : from.parted)[entry] <= 0) continue;
        const auto score = static_cast<double>((right ? from.right_score : from.score)[entry]);
        const double rank =
            std::sqrt(score) +
            noise_scale_ * normal_at(stream, static_cast<uint64_t>(feature * 512 + at));
        if (rank > best) {
            best = rank;
            place = at;
        }
    }
    return place;
}

}  // namespace sglb
