#include "histogram.h"

#include <cstring>
#include <limits>

#include "elementary.h"

namespace sglb {
namespace {

// Four lanes, one per feature of a group. Every operation is the same in each lane and exactly
// rounded, so the width of the machine's registers does not matter.
using Words4 = int64_t __attribute__((vector_size(32)));
using Unsigned4 = uint64_t __attribute__((vector_size(32)));
using Doubles4 = double __attribute__((vector_size(32)));

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

// 32-bit numbers become doubles by placing their bits under 2^52.
constexpr uint64_t exponent_52 = 0x4330000000000000;
constexpr double two_52 = 4503599627370496.0;

SGLB_INLINE Doubles4 gradient_of(Words4 words) {
    const Unsigned4 biased = (reinterpret_cast<Unsigned4>(words) ^ (uint64_t{1} << 63)) >> 32;
    return reinterpret_cast<Doubles4>(biased | exponent_52) - (two_52 + 2147483648.0);
}
SGLB_INLINE Doubles4 weight_of(Words4 words) {
    const Unsigned4 low = reinterpret_cast<Unsigned4>(words) & 0xffffffff;
    return reinterpret_cast<Doubles4>(low | exponent_52) - two_52;
}

// Candidates first .. width - 1 of the form that leaves `skip` out of its left side.
SGLB_INLINE void score_form(const int64_t* hist, int64_t first, int64_t width, Words4 skip,
                            Words4 total, double l2, double* score, double* parted) {
    const Doubles4 one = {1.0, 1.0, 1.0, 1.0};
    Words4 left = -skip;
    for (int64_t b = 0; b < first; ++b) left += load<Words4>(hist + group_features * b);
    for (int64_t b = first; b + 1 < width; ++b) {
        left += load<Words4>(hist + group_features * b);
        const Words4 right = total - left;
        const Doubles4 gl = gradient_of(left), gr = gradient_of(right);
        const Doubles4 left_weight = weight_of(left), right_weight = weight_of(right);
        // A side without weight has gradient 0; any positive divisor keeps its share 0.
        const Doubles4 wl = left_weight > 0.0 ? left_weight + l2 : one;
        const Doubles4 wr = right_weight > 0.0 ? right_weight + l2 : one;
        const Doubles4 share = (gl * gl * wr + gr * gr * wl) / (wl * wr);
        const Doubles4 smaller = left_weight < right_weight ? left_weight : right_weight;
        store(score + group_features * b, load<Doubles4>(score + group_features * b) + share);
        store(parted + group_features * b, load<Doubles4>(parted + group_features * b) + smaller);
    }
}

SGLB_INLINE uint32_t load_codes(const uint8_t* at) {
    uint32_t codes;
    std::memcpy(&codes, at, sizeof codes);
    return codes;
}

}  // namespace

void build_histogram(const uint8_t* codes, int64_t stride, const uint32_t* order,
                     const int64_t* words, int64_t n, int64_t* hist) {
    // Far enough ahead to hide a cache miss, near enough to be still there when it is used.
    constexpr int64_t ahead = 24;
    const auto add = [hist](uint32_t c, int64_t word) {
        hist[c << 2 & 1020] += word;
        hist[(c >> 6 & 1020) + 1] += word;
        hist[(c >> 14 & 1020) + 2] += word;
        hist[(c >> 22 & 1020) + 3] += word;
    };
    int64_t i = 0;
    for (; i + ahead + 1 < n; i += 2) {
        __builtin_prefetch(codes + order[i + ahead] * stride);
        __builtin_prefetch(codes + order[i + ahead + 1] * stride);
        const uint32_t c = load_codes(codes + order[i] * stride);
        const uint32_t d = load_codes(codes + order[i + 1] * stride);
        add(c, words[i]);
        add(d, words[i + 1]);
    }
    for (; i < n; ++i) add(load_codes(codes + order[i] * stride), words[i]);
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

SGLB_KERNEL void add_scores(const int64_t* hist, int64_t width, double l2, const GroupScores& to) {
    Words4 total = {0, 0, 0, 0};
    for (int64_t b = 0; b < width; ++b) total += load<Words4>(hist + group_features * b);
    if ((total[0] & 0xffffffff) == 0) return;  // a leaf without weight
    const Words4 nothing = {0, 0, 0, 0};
    score_form(hist, 0, width, nothing, total, l2, to.score, to.parted);
    if (to.right_score)
        score_form(hist, 1, width, load<Words4>(hist), total, l2, to.right_score, to.right_parted);
}

SGLB_KERNEL void best_scores(const GroupScores& from, int64_t width, double* best, int64_t* place) {
    const double never = -std::numeric_limits<double>::infinity();
    Doubles4 top = {never, never, never, never};
    Words4 where = {-1, -1, -1, -1};
    const auto try_form = [&](const double* score, const double* parted, int64_t b, int64_t form) {
        const Doubles4 candidate = load<Doubles4>(score + group_features * b);
        const Words4 better =
            (candidate > top) & (load<Doubles4>(parted + group_features * b) > 0.0);
        top = better ? candidate : top;
        where = better ? Words4{} + (2 * b + form) : where;
    };
    for (int64_t b = 0; b + 1 < width; ++b) {
        try_form(from.score, from.parted, b, 0);
        if (from.right_score) try_form(from.right_score, from.right_parted, b, 1);
    }
    store(best, top);
    store(place, where);
}

}  // namespace sglb
