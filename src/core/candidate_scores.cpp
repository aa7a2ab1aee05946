#include "candidate_scores.h"

#include <algorithm>
#include <cmath>
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

// The halves of eight words, in the order of lane_feature; floats take one instruction, not two.
SGLB_INLINE Halves halves(Words4 low, Words4 high) {
    const auto a = reinterpret_cast<Floats8>(low), b = reinterpret_cast<Floats8>(high);
    return {reinterpret_cast<Ints8>(__builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15)),
            reinterpret_cast<Ints8>(__builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14))};
}

// Eight lanes of two nodes, each node's where the other's were.
template <class Lanes>
SGLB_INLINE Lanes swap_nodes(Lanes x) {
    return __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
}

SGLB_INLINE Floats8 to_floats(Ints8 x) { return __builtin_convertvector(x, Floats8); }

SGLB_INLINE Ints8 smaller(Ints8 a, Ints8 b) { return a < b ? a : b; }
SGLB_INLINE Ints8 larger(Ints8 a, Ints8 b) { return a > b ? a : b; }

// Score of one node or two in eight lanes as a fraction, and whether a candidate splits rows.
struct Fraction {
    Floats8 numerator, denominator;
    Ints8 splits_rows;
};

// Gradients and weights are below 2^31, and with l2, of at most 2^52, a weight is at most 2^53. So
// a fraction fits a float, but a product of two may not, unless one of them is made smaller first,
// by a power of two that changes no digit: the square of the largest weight.
SGLB_INLINE float safe_scale(float l2) {
    return std::ldexp(1.0f, -2 * (std::ilogb(0x1p31f + l2) + 1));
}

// What the candidates of a group have in common, known when its loop is compiled.
template <bool has_right, bool has_levels, bool has_l2, bool is_four = false>
struct Variant {
    static constexpr bool right = has_right, levels = has_levels;
    static constexpr bool l2 = has_l2;     // of 1 or more
    static constexpr bool four = is_four;  // features or fewer
};

template <class Variant>
SGLB_INLINE Floats8 divisor(Ints8 weight, float l2) {
    // A side without weight has gradient 0; any positive divisor keeps its score 0.
    if constexpr (Variant::l2) return to_floats(weight) + l2;
    return to_floats(larger(weight, Ints8{} + 1)) + l2;
}

template <class Variant>
SGLB_INLINE Fraction fraction_of(const Halves& left, Ints8 gradient, Ints8 weight, float l2) {
    const Floats8 gl = to_floats(left.gradient), gr = to_floats(gradient - left.gradient);
    const Ints8 right_weight = weight - left.weight;
    const Floats8 wl = divisor<Variant>(left.weight, l2), wr = divisor<Variant>(right_weight, l2);
    return {gl * gl * wr + gr * gr * wl, wl * wr, smaller(left.weight, right_weight)};
}

// Both fractions by one division; `scale` of safe_scale.
SGLB_INLINE Fraction add_fractions(const Fraction& a, const Fraction& b, float scale) {
    const Floats8 numerator = b.numerator * scale, denominator = b.denominator * scale;
    return {a.numerator * denominator + numerator * a.denominator, a.denominator * denominator,
            a.splits_rows | b.splits_rows};
}

SGLB_INLINE void add_score(const Fraction& fraction, float* score, int32_t* splits_rows) {
    store(score, load<Floats8>(score) + fraction.numerator / fraction.denominator);
    store(splits_rows, load<Ints8>(splits_rows) | fraction.splits_rows);
}

// The sum of the words of a histogram's rows: every feature has it.
SGLB_INLINE int64_t total_of(const int64_t* hist, int64_t width) {
    // Four sums, so that no addition waits for the one before it.
    int64_t a = 0, b = 0, c = 0, d = 0;
    int64_t at = 0;
    for (; at + 4 <= width; at += 4) {
        const int64_t* cells = hist + at * group_features;
        a += cells[0];
        b += cells[group_features];
        c += cells[2 * group_features];
        d += cells[3 * group_features];
    }
    for (; at < width; ++at) a += hist[at * group_features];
    return a + b + c + d;
}

// Which sums go on from code to code: those of numbers do, those of levels begin anew.
struct Cumulative {
    Words4 low{}, high{};
    SGLB_INLINE explicit Cumulative(const GroupRule& rule) {
        for (int j = 0; j < 4; ++j) {
            low[j] = rule.is_level[j] ? 0 : -1;
            high[j] = rule.is_level[j + 4] ? 0 : -1;
        }
    }
};

template <class Variant>
SGLB_INLINE Words4 carried(Words4 sum, Words4 cumulative) {
    if constexpr (Variant::levels) return sum & cumulative;
    return sum;
}

// Sums of one node while its codes are scanned, eight features side by side.
struct LeftSums {
    Words4 low, high;                  // of the words on the left
    Words4 missing_low, missing_high;  // words of code 0, where it may go right
    Ints8 gradient, weight;            // of the node

    template <class Variant>
    SGLB_INLINE void add(Words4 code_low, Words4 code_high, const Cumulative& cumulative) {
        low = carried<Variant>(low, cumulative.low) + code_low;
        high = carried<Variant>(high, cumulative.high) + code_high;
    }
    SGLB_INLINE void set_missing(const Cumulative& cumulative) {
        missing_low = low & cumulative.low;
        missing_high = high & cumulative.high;
    }
    template <class Variant>
    SGLB_INLINE Fraction fraction(float l2) const {
        return fraction_of<Variant>(halves(low, high), gradient, weight, l2);
    }
    template <class Variant>
    SGLB_INLINE Fraction right_fraction(float l2) const {  // code 0 goes right
        const Halves left = halves(low - missing_low, high - missing_high);
        return fraction_of<Variant>(left, gradient, weight, l2);
    }
};

SGLB_INLINE LeftSums start(int64_t total) {
    LeftSums sums{};
    sums.gradient = Ints8{} + static_cast<int32_t>(total >> 32);
    sums.weight = Ints8{} + static_cast<int32_t>(total);
    return sums;
}

template <class Variant, bool has_child>
SGLB_INLINE void score_node(const SplitNode& node, const GroupRule& rule,
                            const Cumulative& cumulative, const GroupScores& to) {
    const int64_t child_total = has_child ? total_of(node.child, rule.width) : 0;
    LeftSums child = start(child_total);
    LeftSums sibling = start(total_of(node.parent, rule.width) - child_total);
    const float l2 = rule.l2, scale = safe_scale(l2);
    int64_t* __restrict parent_words = node.parent;
    const int64_t* __restrict child_words = node.child;
    for (int64_t at = 0; at < rule.width * group_features; at += group_features) {
        auto low = load<Words4>(parent_words + at), high = load<Words4>(parent_words + at + 4);
        if constexpr (has_child) {
            const auto child_low = load<Words4>(child_words + at),
                       child_high = load<Words4>(child_words + at + 4);
            low -= child_low;
            high -= child_high;
            store(parent_words + at, low);
            store(parent_words + at + 4, high);
            child.add<Variant>(child_low, child_high, cumulative);
        }
        sibling.add<Variant>(low, high, cumulative);
        Fraction fraction = sibling.fraction<Variant>(l2);
        if constexpr (has_child)
            fraction = add_fractions(fraction, child.fraction<Variant>(l2), scale);
        add_score(fraction, to.score + at, to.splits_rows + at);
        if constexpr (Variant::right) {
            if (at == 0) {
                sibling.set_missing(cumulative);
                child.set_missing(cumulative);
            }
            Fraction right = sibling.right_fraction<Variant>(l2);
            if constexpr (has_child)
                right = add_fractions(right, child.right_fraction<Variant>(l2), scale);
            add_score(right, to.right_score + at, to.right_splits_rows + at);
        }
    }
}

// As score_node of four features, all numbers: the lanes of the other four are the child's.
template <class Variant>
SGLB_INLINE void score_four_features(const SplitNode& node, const GroupRule& rule,
                                     const GroupScores& to) {
    const int64_t child_total = total_of(node.child, rule.width);
    const int64_t sibling_total = total_of(node.parent, rule.width) - child_total;
    const Halves total = halves(Words4{} + sibling_total, Words4{} + child_total);
    const float l2 = rule.l2, scale = safe_scale(l2);
    Words4 sibling{}, child{};
    int64_t* __restrict parent_words = node.parent;
    const int64_t* __restrict child_words = node.child;
    for (int64_t at = 0; at < rule.width * group_features; at += group_features) {
        const auto code_child = load<Words4>(child_words + at);
        const auto code_sibling = load<Words4>(parent_words + at) - code_child;
        store(parent_words + at, code_sibling);
        child += code_child;
        sibling += code_sibling;
        const Fraction both =
            fraction_of<Variant>(halves(sibling, child), total.gradient, total.weight, l2);
        const Fraction swapped{swap_nodes(both.numerator), swap_nodes(both.denominator),
                               swap_nodes(both.splits_rows)};
        add_score(add_fractions(both, swapped, scale), to.score + at, to.splits_rows + at);
    }
}

template <class Variant>
SGLB_INLINE void score_all(const SplitNode* nodes, int64_t n, const GroupRule& rule,
                           const GroupScores& to) {
    const int64_t size = rule.width * group_features;
    const Cumulative cumulative(rule);
    std::fill_n(to.score, size, 0.0f);
    std::fill_n(to.splits_rows, size, 0);
    if constexpr (Variant::right) {
        std::fill_n(to.right_score, size, 0.0f);
        std::fill_n(to.right_splits_rows, size, 0);
    }
    for (int64_t j = 0; j < n; ++j)
        if (nodes[j].child && Variant::four)
            score_four_features<Variant>(nodes[j], rule, to);
        else if (nodes[j].child)
            score_node<Variant, true>(nodes[j], rule, cumulative, to);
        else
            score_node<Variant, false>(nodes[j], rule, cumulative, to);
}

}  // namespace

// A kernel each, since one that holds all variants keeps none of them in registers.
#define SGLB_SCORE(name, ...)                                                              \
    SGLB_KERNEL static void name(const SplitNode* nodes, int64_t n, const GroupRule& rule, \
                                 const GroupScores& to) {                                  \
        score_all<Variant<__VA_ARGS__>>(nodes, n, rule, to);                               \
    }
SGLB_SCORE(score_plain, false, false, false)
SGLB_SCORE(score_plain_l2, false, false, true)
SGLB_SCORE(score_four, false, false, false, true)
SGLB_SCORE(score_four_l2, false, false, true, true)
SGLB_SCORE(score_levels, false, true, false)
SGLB_SCORE(score_levels_l2, false, true, true)
SGLB_SCORE(score_right, true, true, false)
SGLB_SCORE(score_right_l2, true, true, true)
#undef SGLB_SCORE

void score_histograms(const SplitNode* nodes, int64_t n, const GroupRule& rule,
                      const GroupScores& to) {
    const bool levels = std::count(rule.is_level, rule.is_level + group_features, true) > 0;
    if (to.right_score)
        (rule.l2 >= 1.0f ? score_right_l2 : score_right)(nodes, n, rule, to);
    else if (levels)
        (rule.l2 >= 1.0f ? score_levels_l2 : score_levels)(nodes, n, rule, to);
    else if (rule.n_features <= 4)
        (rule.l2 >= 1.0f ? score_four_l2 : score_four)(nodes, n, rule, to);
    else
        (rule.l2 >= 1.0f ? score_plain_l2 : score_plain)(nodes, n, rule, to);
}

SGLB_KERNEL void best_scores(const GroupScores& from, int64_t width, float* best,
                             int32_t* candidate) {
    Floats8 best_score = Floats8{} - std::numeric_limits<float>::infinity();
    Ints8 best_candidate = Ints8{} - 1;
    const auto compare = [&](const float* scores, const int32_t* splits_rows, int64_t number) {
        const auto score = load<Floats8>(scores);
        const Ints8 better = (score > best_score) & (load<Ints8>(splits_rows) > 0);
        best_score = better ? score : best_score;
        best_candidate = better ? Ints8{} + static_cast<int32_t>(number) : best_candidate;
    };
    for (int64_t b = 0; b < width; ++b) {
        const int64_t at = group_features * b;
        compare(from.score + at, from.splits_rows + at, 2 * b);
        if (from.right_score)
            compare(from.right_score + at, from.right_splits_rows + at, 2 * b + 1);
    }
    store(best, best_score);
    store(candidate, best_candidate);
}

}  // namespace sglb
