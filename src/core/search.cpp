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
constexpr int64_t chunk_rows = 16384;
// Below this many additions a level is not worth waking a thread for.
constexpr int64_t serial_work = 60000;

// The rows of one leaf: [begin, begin + count) of the current order.
struct Leaf {
    int64_t begin = 0, count = 0;
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
        width_ = (widest + 3) / 4 * 4;
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
        ws_.scores.resize(static_cast<size_t>(2 * n_groups_ * group_size_));
        ws_.valid.resize(ws_.scores.size());
        if (in_.rule.random_strength > 0.0)
            noise_scale_ = gradient_scale() * in_.rule.random_strength;
    }

    // The sampled rows' codes side by side: they are read several times a tree.
    void compact() {
        ws_.codes.resize(static_cast<size_t>(in_.n * in_.codes.stride));
        parallel_rows(in_.n, n_threads_, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                std::memcpy(ws_.codes.data() + i * in_.codes.stride,
                            in_.codes.rows + in_.rows[i] * in_.codes.stride,
                            static_cast<size_t>(in_.codes.stride));
        });
        codes_ = ws_.codes.data();
    }

    int64_t* hist(int64_t output, int64_t leaf, int64_t group) {
        return ws_.hist.data() +
               ((group * in_.n_outputs + output) * kept_leaves_ + leaf) * group_size_;
    }

    void build(int64_t output, const Leaf& leaf, int64_t group, int64_t* hist) const {
        std::fill(hist, hist + group_size_, int64_t{0});
        build_histogram(codes_ + group * group_features, in_.codes.stride,
                        ws_.order.data() + leaf.begin,
                        ws_.words.data() + output * in_.n + leaf.begin, leaf.count, width_, hist);
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
        std::vector<Candidate> best(static_cast<size_t>(n_groups_));
        parallel_for(n_groups_, n_threads_, [&](int64_t group) {
            score_group(group, depth);
            best[static_cast<size_t>(group)] = best_in_group(group, depth);
        });
        Candidate winner;
        for (const Candidate& candidate : best)
            if (candidate.rank > winner.rank) winner = candidate;
        return winner;
    }

    double* scores(int64_t feature, bool missing_right) {
        return ws_.scores.data() + (2 * feature + missing_right) * width_;
    }
    int32_t* valid(int64_t feature, bool missing_right) {
        return ws_.valid.data() + (2 * feature + missing_right) * width_;
    }

    void score_group(int64_t group, int depth) {
        const int64_t first = group * group_features;
        std::fill(scores(first, false), scores(first, false) + 2 * group_size_, 0.0);
        std::fill(valid(first, false), valid(first, false) + 2 * group_size_, 0);
        const int64_t n_leaves = int64_t{1} << depth;
        const bool kept = n_leaves <= kept_leaves_;
        std::vector<int64_t> scratch(kept ? 0 : static_cast<size_t>(group_size_));
        for (int64_t k = 0; k < in_.n_outputs; ++k) {
            if (kept) update_histograms(k, group, depth);
            for (int64_t leaf = 0; leaf < n_leaves; ++leaf) {
                if (leaves_[static_cast<size_t>(leaf)].count == 0) continue;
                if (!kept) build(k, leaves_[static_cast<size_t>(leaf)], group, scratch.data());
                add_leaf(group, kept ? hist(k, leaf, group) : scratch.data());
            }
        }
    }

    // Histograms of this level from those of the last: build the smaller child,
    // subtract.
    void update_histograms(int64_t output, int64_t group, int depth) {
        if (depth == 0) return build(output, leaves_[0], group, hist(output, 0, group));
        const int64_t half = int64_t{1} << (depth - 1);
        for (int64_t leaf = 0; leaf < half; ++leaf) {
            const Leaf& left = leaves_[static_cast<size_t>(leaf)];
            const Leaf& right = leaves_[static_cast<size_t>(leaf + half)];
            const bool left_is_smaller = left.count <= right.count;
            int64_t* child = hist(output, leaf + half, group);
            build(output, left_is_smaller ? left : right, group, child);
            split_histogram(hist(output, leaf, group), child, group_size_, left_is_smaller);
        }
    }

    void add_leaf(int64_t group, const int64_t* hist) {
        for (int64_t j = 0; j < group_features; ++j) {
            const int64_t feature = group * group_features + j;
            if (feature >= in_.codes.n_features) return;
            add_scores(hist + j * width_, in_.codes.n_codes[feature], in_.rule.l2,
                       in_.codes.has_missing[feature] != 0, scores(feature, false),
                       scores(feature, true), valid(feature, false), valid(feature, true));
        }
    }

    Candidate best_in_group(int64_t group, int depth) {
        Candidate best;
        const int64_t end = std::min(in_.codes.n_features, (group + 1) * group_features);
        for (int64_t feature = group * group_features; feature < end; ++feature)
            for (int b = 0; b + 1 < in_.codes.n_codes[feature]; ++b)
                for (const bool right : {false, true}) {
                    if (!valid(feature, right)[b]) continue;
                    const double rank =
                        rank_of(scores(feature, right)[b], feature, b, right, depth);
                    if (!(rank > best.rank)) continue;
                    best = {rank,
                            {static_cast<int32_t>(feature), static_cast<uint8_t>(right ? 1 : 0),
                             static_cast<uint8_t>(b)}};
                }
        return best;
    }

    double rank_of(double score, int64_t feature, int b, bool right, int depth) const {
        if (!(in_.rule.random_strength > 0.0)) return score;
        const Stream stream{in_.rule.seed, in_.rule.step, Role::score,
                            static_cast<uint32_t>(depth)};
        const auto index = static_cast<uint64_t>(feature * 512 + 2 * b + right);
        return std::sqrt(score) + noise_scale_ * normal_at(stream, index);
    }

    // Stable partition of every leaf's rows: those going left first.
    void partition(const Split& split, int depth) {
        struct Chunk {
            int64_t leaf, begin, end, n_left, left_at, right_at;
        };
        const int64_t n_leaves = int64_t{1} << depth;
        std::vector<Chunk> chunks;
        for (int64_t leaf = 0; leaf < n_leaves; ++leaf) {
            const Leaf& at = leaves_[static_cast<size_t>(leaf)];
            for (int64_t begin = 0; begin < at.count; begin += chunk_rows)
                chunks.push_back({leaf, at.begin + begin,
                                  at.begin + std::min(at.count, begin + chunk_rows), 0, 0, 0});
        }
        const auto n_chunks = static_cast<int64_t>(chunks.size());
        const int threads = in_.n < 2 * chunk_rows ? 1 : n_threads_;
        parallel_for(n_chunks, threads, [&](int64_t c) {
            Chunk& chunk = chunks[static_cast<size_t>(c)];
            chunk.n_left = mark(split, chunk.begin, chunk.end);
        });
        divide_leaves(chunks, n_leaves);
        parallel_for(n_chunks, threads, [&](int64_t c) {
            const Chunk& chunk = chunks[static_cast<size_t>(c)];
            move(chunk.begin, chunk.end, chunk.left_at, chunk.right_at);
        });
        ws_.order.swap(ws_.other_order);
        ws_.words.swap(ws_.other_words);
    }

    // bits[i] = 1 for rows going right; returns the number going left.
    int64_t mark(const Split& split, int64_t begin, int64_t end) {
        const uint8_t* codes = codes_ + split.feature;
        const auto span = static_cast<uint8_t>(split.high - split.low);
        int64_t n_right = 0;
        for (int64_t i = begin; i < end; ++i) {
            const uint8_t code = codes[ws_.order[static_cast<size_t>(i)] * in_.codes.stride];
            const bool right = static_cast<uint8_t>(code - split.low) > span;
            ws_.bits[static_cast<size_t>(i)] = right;
            n_right += right;
        }
        return end - begin - n_right;
    }

    // From the chunks' counts: where each chunk's halves go, and the leaves of
    // the next level.
    template <class Chunks>
    void divide_leaves(Chunks& chunks, int64_t n_leaves) {
        std::vector<int64_t> n_left(static_cast<size_t>(n_leaves), 0);
        for (const auto& chunk : chunks) n_left[static_cast<size_t>(chunk.leaf)] += chunk.n_left;
        int64_t left_at = 0, right_at = 0, last = -1;
        for (auto& chunk : chunks) {
            const Leaf& leaf = leaves_[static_cast<size_t>(chunk.leaf)];
            if (chunk.leaf != last) {
                left_at = leaf.begin;
                right_at = leaf.begin + n_left[static_cast<size_t>(chunk.leaf)];
                last = chunk.leaf;
            }
            chunk.left_at = left_at;
            chunk.right_at = right_at;
            left_at += chunk.n_left;
            right_at += chunk.end - chunk.begin - chunk.n_left;
        }
        for (int64_t leaf = 0; leaf < n_leaves; ++leaf) {
            Leaf& left = leaves_[static_cast<size_t>(leaf)];
            const int64_t n = n_left[static_cast<size_t>(leaf)];
            leaves_[static_cast<size_t>(leaf + n_leaves)] = {left.begin + n, left.count - n};
            left.count = n;
        }
    }

    void move(int64_t begin, int64_t end, int64_t left_at, int64_t right_at) {
        for (int64_t k = -1; k < in_.n_outputs; ++k) {
            int64_t at[2] = {left_at, right_at};
            for (int64_t i = begin; i < end; ++i) {
                int64_t& to = at[ws_.bits[static_cast<size_t>(i)]];
                if (k < 0) {
                    ws_.other_order[static_cast<size_t>(to)] = ws_.order[static_cast<size_t>(i)];
                } else {
                    ws_.other_words[static_cast<size_t>(k * in_.n + to)] =
                        ws_.words[static_cast<size_t>(k * in_.n + i)];
                }
                ++to;
            }
        }
    }

    const SearchInput& in_;
    Workspace& ws_;
    int n_threads_;
    int64_t n_groups_, width_, group_size_, kept_leaves_ = 1;
    const uint8_t* codes_ = nullptr;
    std::vector<Leaf> leaves_;
    double noise_scale_ = 0.0;
};

}  // namespace

int search(const SearchInput& input, Workspace& workspace, Split* splits, int n_threads) {
    if (input.n == 0 || input.codes.n_features == 0) return 0;
    return Search(input, workspace, n_threads).run(splits);
}

}  // namespace sglb
