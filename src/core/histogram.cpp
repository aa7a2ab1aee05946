#include "histogram.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "elementary.h"

namespace sglb {
namespace {

// Eight lanes, one per feature of a group. Every operation is the same in each lane and exactly
// rounded, so the width of the machine's registers does not matter.
using Words4 = int64_t __attribute__((vector_size(32)));
using Ints8 = int32_t __attribute__((vector_size(32)));
using Floats8 = float __attribute__((vector_size(32)));

template <class V, class T>
SGLB_INLINE V load(const T* from) {
    V vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}
template <class V, class T>
SGLB_INLINE void store(T* to, const V& vector) {
    std::memcpy(to, &vector, sizeof vector);
}

struct Halves {
    Ints8 gradient, weight;
};

// The halves of eight words, in the order of lane_feature.
SGLB_INLINE Halves halves(Words4 low, Words4 high) {
    const auto a = reinterpret_cast<Ints8>(low), b = reinterpret_cast<Ints8>(high);
    return {__builtin_shuffle(a, b, Ints8{1, 3, 9, 11, 5, 7, 13, 15}),
            __builtin_shuffle(a, b, Ints8{0, 2, 8, 10, 4, 6, 12, 14})};
}

SGLB_INLINE Floats8 to_floats(Ints8 x) { return __builtin_convertvector(x, Floats8); }

// Score of one leaf in eight lanes, and the smaller of the two weights.
struct Share {
    Floats8 score, parted;
};

SGLB_INLINE Share share_of(const Halves& left, Ints8 gradient, Ints8 weight, float l2) {
    // A side without weight has gradient 0; any positive divisor keeps its share 0.
    const Floats8 least = Floats8{} + 1e-15f;
    const Floats8 gl = to_floats(left.gradient), gr = to_floats(gradient - left.gradient);
    const Floats8 left_weight = to_floats(left.weight);
    const Floats8 right_weight = to_floats(weight - left.weight);
    const Floats8 a = left_weight + l2, b = right_weight + l2;
    const Floats8 wl = a > least ? a : least;
    const Floats8 wr = b > least ? b : least;
    return {(gl * gl * wr + gr * gr * wl) / (wl * wr),
            left_weight < right_weight ? left_weight : right_weight};
}

SGLB_INLINE Floats8 larger(Floats8 a, Floats8 b) { return a > b ? a : b; }

SGLB_INLINE uint64_t load_codes(const uint8_t* at) {
    uint64_t codes;
    std::memcpy(&codes, at, sizeof codes);
    return codes;
}

SGLB_INLINE void add_four(int64_t* hist, uint32_t c, int64_t word) {
    hist[c << 3 & 2040] += word;
    hist[(c >> 5 & 2040) + 1] += word;
    hist[(c >> 13 & 2040) + 2] += word;
    hist[(c >> 21 & 2040) + 3] += word;
}

template <bool half>
void build(const uint8_t* codes, int64_t stride, const uint32_t* order, const int64_t* words,
           int64_t n, int64_t* hist) {
    // Far enough ahead to hide a cache miss, near enough to be still there when it is used.
    constexpr int64_t ahead = 24;
    const auto add = [hist](uint64_t c, int64_t word) {
        add_four(hist, static_cast<uint32_t>(c), word);
        if constexpr (!half) add_four(hist + 4, static_cast<uint32_t>(c >> 32), word);
    };
    int64_t i = 0;
    for (; i + ahead + 1 < n; i += 2) {
        __builtin_prefetch(codes + order[i + ahead] * stride);
        __builtin_prefetch(codes + order[i + ahead + 1] * stride);
        const uint64_t c = load_codes(codes + order[i] * stride);
        const uint64_t d = load_codes(codes + order[i + 1] * stride);
        add(c, words[i]);
        add(d, words[i + 1]);
    }
    for (; i < n; ++i) add(load_codes(codes + order[i] * stride), words[i]);
}

// The sum of the words of a histogram's rows: every feature has it.
SGLB_INLINE int64_t total_of(const int64_t* hist, int64_t width) {
    int64_t total = 0;
    for (int64_t b = 0; b < width; ++b) total += hist[b * group_features];
    return total;
}

template <bool with_right>
SGLB_INLINE void score_all(const int64_t* const* hists, int64_t n_hists, const GroupRule& rule,
                           RunningSum* room, const GroupScores& to) {
    Words4 keep_low, keep_high;
    for (int j = 0; j < 4; ++j) {
        keep_low[j] = rule.is_level[j] ? 0 : -1;
        keep_high[j] = rule.is_level[j + 4] ? 0 : -1;
    }
    const float l2 = rule.l2;
    for (int64_t b = 0; b < rule.width; ++b) {
        Floats8 score{}, parted{}, right_score{}, right_parted{};
        for (int64_t h = 0; h < n_hists; ++h) {
            const int64_t* cells = hists[h] + b * group_features;
            RunningSum& sum = room[h];
            const Words4 low = (load<Words4>(sum.left) & keep_low) + load<Words4>(cells);
            const Words4 high = (load<Words4>(sum.left + 4) & keep_high) + load<Words4>(cells + 4);
            store(sum.left, low);
            store(sum.left + 4, high);
            const Ints8 gradient = Ints8{} + sum.total_gradient;
            const Ints8 weight = Ints8{} + sum.total_weight;
            const Share share = share_of(halves(low, high), gradient, weight, l2);
            score += share.score;
            parted = larger(parted, share.parted);
            if constexpr (with_right) {
                const Words4 low0 = low - (load<Words4>(hists[h]) & keep_low);
                const Words4 high0 = high - (load<Words4>(hists[h] + 4) & keep_high);
                const Share other = share_of(halves(low0, high0), gradient, weight, l2);
                right_score += other.score;
                right_parted = larger(right_parted, other.parted);
            }
        }
        store(to.score + b * group_features, score);
        store(to.parted + b * group_features, parted);
        if constexpr (with_right) {
            store(to.right_score + b * group_features, right_score);
            store(to.right_parted + b * group_features, right_parted);
        }
    }
}

}  // namespace

void build_histogram(const uint8_t* codes, int64_t stride, const uint32_t* order,
                     const int64_t* words, int64_t n, bool half, int64_t* hist) {
    if (half)
        build<true>(codes, stride, order, words, n, hist);
    else
        build<false>(codes, stride, order, words, n, hist);
}

SGLB_KERNEL void split_histogram(int64_t* parent, int64_t* child, int64_t size,
                                 bool child_is_left) {
    if (child_is_left) {
        for (int64_t i = 0; i < size; ++i) {
            const int64_t left = child[i];
            child[i] = parent[i] - left;
            parent[i] = left;
        }
    } else {
        for (int64_t i = 0; i < size; ++i) parent[i] -= child[i];
    }
}

SGLB_KERNEL void add_histogram(const int64_t* from, int64_t* to, int64_t size) {
    for (int64_t i = 0; i < size; ++i) to[i] += from[i];
}

SGLB_KERNEL void score_histograms(const int64_t* const* hists, int64_t n_hists,
                                  const GroupRule& rule, RunningSum* room, const GroupScores& to) {
    for (int64_t h = 0; h < n_hists; ++h) {
        const int64_t total = total_of(hists[h], rule.width);
        room[h] = {{}, static_cast<int32_t>(total >> 32), static_cast<int32_t>(total)};
    }
    if (to.right_score)
        score_all<true>(hists, n_hists, rule, room, to);
    else
        score_all<false>(hists, n_hists, rule, room, to);
}

SGLB_KERNEL void merge_scores(const GroupScores& first, int64_t n, int64_t stride, int64_t width) {
    for (int64_t part = 1; part < n; ++part)
        for (int64_t i = 0; i < width * group_features; ++i) {
            const int64_t at = part * stride + i;
            first.score[i] += first.score[at];
            first.parted[i] = std::max(first.parted[i], first.parted[at]);
            if (first.right_score) {
                first.right_score[i] += first.right_score[at];
                first.right_parted[i] = std::max(first.right_parted[i], first.right_parted[at]);
            }
        }
}

SGLB_KERNEL void best_scores(const GroupScores& from, int64_t width, float* best, int32_t* place) {
    Floats8 top = Floats8{} - std::numeric_limits<float>::infinity();
    Ints8 where = Ints8{} - 1;
    const auto try_form = [&](const float* score, const float* parted, int64_t b, int64_t form) {
        const Floats8 candidate = load<Floats8>(score + group_features * b);
        const Ints8 better =
            (candidate > top) & (load<Floats8>(parted + group_features * b) > 0.0f);
        top = better ? candidate : top;
        where = better ? Ints8{} + static_cast<int32_t>(2 * b + form) : where;
    };
    for (int64_t b = 0; b < width; ++b) {
        try_form(from.score, from.parted, b, 0);
        if (from.right_score) try_form(from.right_score, from.right_parted, b, 1);
    }
    store(best, top);
    store(place, where);
}

}  // namespace sglb
