#include "search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "histogram.h"
#include "noise.h"
#include "parallel.h"

namespace sglb {
namespace {

// Histograms of all leaves of a level are kept for the next level's subtraction
// while they take no more than this; deeper levels build each leaf's anew,
// which gives the same integers.
constexpr int64_t most_histogram_bytes = int64_t{1} << 29;
// Fewer rows than this are parted sooner than a thread wakes.
constexpr int64_t serial_rows = 4096;
// Below this many additions a level is not worth waking a thread for.
constexpr int64_t serial_work = 60000;

// The rows of one leaf: [begin, begin + count) of the current order.
struct Leaf {
    int64_t begin = 0, count = 0;
};

// Neighbouring groups of features that one task works on.
struct Bundle {
    int64_t first, last;
};

struct Candidate {
    // Sum of G^2 / (W + l2) over the leaves it makes, or the noisy root of it.
    double rank = -std::numeric_limits<double>::infinity();
    Split split{-1, 0, 0};
    bool exists() const { return split.feature >= 0; }
};

class Search {
  public:
    Search(const SearchInput& input, Workspace& workspace, int n_threads)
        : in_(input), ws_(workspace) {
        n_groups_ = in_.codes.stride / group_features;
        const int32_t widest =
            *std::max_element(in_.codes.n_codes, in_.codes.n_codes + in_.codes.n_features);
        width_ = widest;
        group_size_ = group_features * width_;
        const int64_t work = in_.codes.n_features * in_.n_outputs *
                             (in_.n + width_ * (int64_t{1} << in_.rule.max_depth) / 2);
        n_threads_ = work < serial_work ? 1 : n_threads;
        prepare();
    }

    int run(Split* splits) {
        int depth = 0;
        for (; depth < in_.rule.max_depth; ++depth) {
            const Candidate best = best_candidate(depth);
            if (!best.exists()) break;
            splits[depth] = best.split;
            if (depth + 1 < in_.rule.max_depth) partition(best.split, depth);
        }
        return depth;
    }

  private:
    void prepare() {
        ws_.order.resize(static_cast<size_t>(in_.n));
        ws_.other_order.resize(static_cast<size_t>(in_.n));
        ws_.words.assign(in_.packed, in_.packed + in_.n * in_.n_outputs);
        ws_.other_words.resize(ws_.words.size());
        ws_.bits.resize(static_cast<size_t>(in_.n));
        codes_ = in_.codes.rows;
        for (int64_t i = 0; i < in_.n; ++i)
            ws_.order[static_cast<size_t>(i)] = static_cast<uint32_t>(i);
        if (in_.rows) compact();
        leaves_.assign(size_t{1} << std::max(0, in_.rule.max_depth - 1), Leaf{});
        leaves_[0] = {0, in_.n};
        const int64_t level = n_groups_ * group_size_ * in_.n_outputs;
        kept_leaves_ = 1;
        while (kept_leaves_ * 2 <= static_cast<int64_t>(leaves_.size()) &&
               level * kept_leaves_ * 2 * 8 <= most_histogram_bytes)
            kept_leaves_ *= 2;
        ws_.hist.resize(static_cast<size_t>(level * kept_leaves_));
        ws_.scores.resize(static_cast<size_t>(4 * n_groups_ * group_size_));
        if (in_.rule.random_strength > 0.0)
            noise_scale_ = gradient_scale() * in_.rule.random_strength;
    }

    // The sampled rows' codes side by side: they are read several times a tree.
    void compact() {
        ws_.codes.resize(static_cast<size_t>(in_.n * in_.codes.stride));
        parallel_rows(in_.n, n_threads_, [&](int64_t begin, int64_t end) {
            constexpr int64_t ahead = 16;
            const int64_t stride = in_.codes.stride;
            for (int64_t i = begin; i < end; ++i) {
                __builtin_prefetch(in_.codes.rows +
                                   in_.rows[std::min(i + ahead, end - 1)] * stride);
                std::memcpy(ws_.codes.data() + i * stride, in_.codes.rows + in_.rows[i] * stride,
                            static_cast<size_t>(stride));
            }
        });
        codes_ = ws_.codes.data();
    }

    int64_t* hist(int64_t output, int64_t leaf, int64_t group) {
        return ws_.hist.data() +
               ((group * in_.n_outputs + output) * kept_leaves_ + leaf) * group_size_;
    }

    // Histograms of one leaf for the groups of a bundle, `place(group)` being where they go. A
    // block of rows serves all groups while its codes are in the cache.
    template <class Place>
    void build(int64_t output, const Leaf& leaf, const Bundle& bundle, Place&& place) const {
        constexpr int64_t block = 1024;
        for (int64_t group = bundle.first; group < bundle.last; ++group)
            std::fill_n(place(group), group_size_, int64_t{0});
        for (int64_t at = 0; at < leaf.count; at += block)
            for (int64_t group = bundle.first; group < bundle.last; ++group)
                build_histogram(codes_ + group * group_features, in_.codes.stride,
                                ws_.order.data() + leaf.begin + at,
                                ws_.words.data() + output * in_.n + leaf.begin + at,
                                std::min(block, leaf.count - at), place(group));
    }

    // sqrt(sum of squared gradients / sum of weights): what random_strength is
    // relative to.
    double gradient_scale() const {
        int64_t squares = 0, weight = 0;
        for (int64_t i = 0; i < in_.n * in_.n_outputs; ++i) {
            const int64_t q = in_.packed[i] >> 32;
            squares += q * q;
            weight += in_.packed[i] & 0x7fffffff;
        }
        return weight > 0 ? std::sqrt(static_cast<double>(squares) / static_cast<double>(weight))
                          : 0.0;
    }

    Candidate best_candidate(int depth) {
        // Histograms of eight groups and one leaf fill half of a first-level cache.
        const int64_t n_bundles =
            std::max((n_groups_ + 7) / 8, std::min<int64_t>(n_threads_, n_groups_));
        best_.assign(static_cast<size_t>(n_bundles), Candidate{});
        parallel_for(n_bundles, n_threads_, [&](int64_t b) {
            const Bundle bundle{b * n_groups_ / n_bundles, (b + 1) * n_groups_ / n_bundles};
            score_bundle(bundle, depth);
            Candidate& best = best_[static_cast<size_t>(b)];
            for (int64_t group = bundle.first; group < bundle.last; ++group) {
                const Candidate candidate = best_in_group(group, depth);
                if (candidate.rank > best.rank) best = candidate;
            }
        });
        Candidate winner;
        for (const Candidate& candidate : best_)
            if (candidate.rank > winner.rank) winner = candidate;
        return winner;
    }

    GroupScores scores(int64_t group) {
        double* first = ws_.scores.data() + 4 * group * group_size_;
        bool missing = false;
        for (int64_t j = 0; j < features_of(group); ++j)
            missing |= in_.codes.has_missing[group * group_features + j] != 0;
        return {first, first + group_size_, missing ? first + 2 * group_size_ : nullptr,
                first + 3 * group_size_};
    }

    int64_t features_of(int64_t group) const {
        return std::min(group_features, in_.codes.n_features - group * group_features);
    }

    void score_bundle(const Bundle& bundle, int depth) {
        for (int64_t group = bundle.first; group < bundle.last; ++group) {
            const GroupScores to = scores(group);
            std::fill_n(to.score, (to.right_score ? 4 : 2) * group_size_, 0.0);
        }
        const int64_t n_leaves = int64_t{1} << depth;
        const bool kept = n_leaves <= kept_leaves_;
        std::vector<int64_t> scratch(
            kept ? 0 : static_cast<size_t>((bundle.last - bundle.first) * group_size_));
        for (int64_t k = 0; k < in_.n_outputs; ++k) {
            if (kept) update_histograms(k, bundle, depth);
            for (int64_t leaf = 0; leaf < n_leaves; ++leaf) {
                const Leaf& rows = leaves_[static_cast<size_t>(leaf)];
                if (rows.count == 0) continue;
                const auto place = [&](int64_t group) {
                    return kept ? hist(k, leaf, group)
                                : scratch.data() + (group - bundle.first) * group_size_;
                };
                if (!kept) build(k, rows, bundle, place);
                for (int64_t group = bundle.first; group < bundle.last; ++group)
                    add_scores(place(group), width_, in_.rule.l2, scores(group));
            }
        }
    }

    // Histograms of this level from those of the last: build the smaller child, subtract.
    void update_histograms(int64_t output, const Bundle& bundle, int depth) {
        if (depth == 0)
            return build(output, leaves_[0], bundle,
                         [&](int64_t group) { return hist(output, 0, group); });
        const int64_t half = int64_t{1} << (depth - 1);
        for (int64_t leaf = 0; leaf < half; ++leaf) {
            const Leaf& left = leaves_[static_cast<size_t>(leaf)];
            const Leaf& right = leaves_[static_cast<size_t>(leaf + half)];
            const bool left_is_smaller = left.count <= right.count;
            build(output, left_is_smaller ? left : right, bundle,
                  [&](int64_t group) { return hist(output, leaf + half, group); });
            for (int64_t group = bundle.first; group < bundle.last; ++group)
                split_histogram(hist(output, leaf, group), hist(output, leaf + half, group),
                                group_size_, left_is_smaller);
        }
    }

    Candidate best_in_group(int64_t group, int depth) {
        const GroupScores from = scores(group);
        double rank[group_features];
        int64_t place[group_features];
        if (in_.rule.random_strength > 0.0)
            best_noisy(from, group, depth, rank, place);
        else
            best_scores(from, width_, rank, place);
        Candidate best;
        for (int64_t j = 0; j < features_of(group); ++j) {
            if (place[j] < 0 || !(rank[j] > best.rank)) continue;
            best = {rank[j],
                    {static_cast<int32_t>(group * group_features + j),
                     static_cast<uint8_t>(place[j] % 2), static_cast<uint8_t>(place[j] / 2)}};
        }
        return best;
    }

    // As best_scores, by the root of the score plus noise.
    void best_noisy(const GroupScores& from, int64_t group, int depth, double* best,
                    int64_t* place) const {
        const Stream stream{in_.rule.seed, in_.rule.step, Role::score,
                            static_cast<uint32_t>(depth)};
        for (int64_t j = 0; j < features_of(group); ++j) {
            const int64_t feature = group * group_features + j;
            best[j] = -std::numeric_limits<double>::infinity();
            place[j] = -1;
            // The last code of a feature has nothing on its right but, perhaps, missing values, and
            // the split at code 0 is that one's mirror image.
            for (int64_t at = 0; at < 2 * (in_.codes.n_codes[feature] - 1); ++at) {
                const bool right = at % 2 != 0;
                if (right && !in_.codes.has_missing[feature]) continue;
                const int64_t entry = at / 2 * group_features + j;
                if (!((right ? from.right_parted : from.parted)[entry] > 0.0)) continue;
                const double score = (right ? from.right_score : from.score)[entry];
                const double rank =
                    std::sqrt(score) +
                    noise_scale_ * normal_at(stream, static_cast<uint64_t>(feature * 512 + at));
                if (rank > best[j]) {
                    best[j] = rank;
                    place[j] = at;
                }
            }
        }
    }

    // Every leaf's rows in two parts: those going left from its beginning, those going right from
    // its end. Sums do not care about the order within a part.
    void partition(const Split& split, int depth) {
        const int64_t n_leaves = int64_t{1} << depth;
        const int threads = in_.n < serial_rows ? 1 : n_threads_;
        parallel_for(n_leaves, threads, [&](int64_t leaf) {
            Leaf& left = leaves_[static_cast<size_t>(leaf)];
            const int64_t n_left = divide(split, left);
            leaves_[static_cast<size_t>(leaf + n_leaves)] = {left.begin + n_left,
                                                             left.count - n_left};
            left.count = n_left;
        });
        ws_.order.swap(ws_.other_order);
        ws_.words.swap(ws_.other_words);
    }

    // Moves the rows of one leaf and their words; returns how many went left.
    int64_t divide(const Split& split, const Leaf& leaf) {
        const uint8_t* __restrict codes = codes_ + split.feature;
        const uint32_t* __restrict order = ws_.order.data() + leaf.begin;
        const int64_t* __restrict words = ws_.words.data() + leaf.begin;
        uint32_t* __restrict other_order = ws_.other_order.data() + leaf.begin;
        int64_t* __restrict other_words = ws_.other_words.data() + leaf.begin;
        uint8_t* __restrict bits = ws_.bits.data() + leaf.begin;
        const int64_t stride = in_.codes.stride;
        const auto span = static_cast<uint8_t>(split.high - split.low);
        int64_t left_at = 0, right_at = leaf.count - 1;
        for (int64_t i = 0; i < leaf.count; ++i) {
            const uint8_t code = codes[order[i] * stride];
            // Which way a row goes cannot be predicted, so no branch may depend on it.
            const int64_t right = static_cast<uint8_t>(code - split.low) > span;
            const int64_t at = left_at + (right_at - left_at) * right;
            other_order[at] = order[i];
            other_words[at] = words[i];
            bits[i] = static_cast<uint8_t>(right);
            right_at -= right;
            left_at += 1 - right;
        }
        for (int64_t k = 1; k < in_.n_outputs; ++k)
            move(words + k * in_.n, other_words + k * in_.n, bits, leaf.count);
        return left_at;
    }

    static void move(const int64_t* __restrict from, int64_t* __restrict to,
                     const uint8_t* __restrict bits, int64_t n) {
        int64_t left_at = 0, right_at = n - 1;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t right = bits[i];
            to[left_at + (right_at - left_at) * right] = from[i];
            right_at -= right;
            left_at += 1 - right;
        }
    }

    const SearchInput& in_;
    Workspace& ws_;
    int n_threads_;
    int64_t n_groups_, width_, group_size_, kept_leaves_ = 1;
    const uint8_t* codes_ = nullptr;
    std::vector<Leaf> leaves_;
    std::vector<Candidate> best_;
    double noise_scale_ = 0.0;
};

}  // namespace

int search(const SearchInput& input, Workspace& workspace, Split* splits, int n_threads) {
    if (input.n == 0 || input.codes.n_features == 0) return 0;
    return Search(input, workspace, n_threads).run(splits);
}

}  // namespace sglb
