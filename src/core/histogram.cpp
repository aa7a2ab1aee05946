#include "histogram.h"

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

// The halves of eight words, in the order of lane_feature. As floats, which compilers shuffle by
// one instruction where integers take two.
SGLB_INLINE Halves halves(Words4 low, Words4 high) {
    const auto a = reinterpret_cast<Floats8>(low), b = reinterpret_cast<Floats8>(high);
    return {reinterpret_cast<Ints8>(__builtin_shuffle(a, b, Ints8{1, 3, 9, 11, 5, 7, 13, 15})),
            reinterpret_cast<Ints8>(__builtin_shuffle(a, b, Ints8{0, 2, 8, 10, 4, 6, 12, 14}))};
}

SGLB_INLINE Floats8 to_floats(Ints8 x) { return __builtin_convertvector(x, Floats8); }

SGLB_INLINE Ints8 smaller(Ints8 a, Ints8 b) { return a < b ? a : b; }
SGLB_INLINE Ints8 larger(Ints8 a, Ints8 b) { return a > b ? a : b; }

// Score of one leaf or two in eight lanes as a fraction, and the weight parted off.
struct Share {
    Floats8 above, below;
    Ints8 parted;
};

// Gradients and weights are below 2^31, and with l2, of at most 2^52, a weight is at most 2^53. So
// a fraction fits a float, but a product of two may not, unless one of them is made smaller first,
// by a power of two that changes no digit: the square of the largest weight.
SGLB_INLINE float smaller_by(float l2) {
    const float largest = 0x1p31f + l2;
    int exponent;
    std::frexp(largest, &exponent);
    return std::ldexp(1.0f, -2 * exponent);
}

// What the candidates of a group have in common, known when its loop is compiled.
template <bool has_right, bool has_levels, bool has_l2, bool is_four = false>
struct Form {
    static constexpr bool right = has_right, levels = has_levels;
    static constexpr bool l2 = has_l2;     // of 1 or more
    static constexpr bool four = is_four;  // features or fewer
};

template <class Form>
SGLB_INLINE Floats8 divisor(Ints8 weight, float l2) {
    // A side without weight has gradient 0; any positive divisor keeps its share 0.
    if constexpr (Form::l2) return to_floats(weight) + l2;
    return to_floats(larger(weight, Ints8{} + 1)) + l2;
}

template <class Form>
SGLB_INLINE Share share_of(const Halves& left, Ints8 gradient, Ints8 weight, float l2) {
    const Floats8 gl = to_floats(left.gradient), gr = to_floats(gradient - left.gradient);
    const Ints8 right_weight = weight - left.weight;
    const Floats8 wl = divisor<Form>(left.weight, l2), wr = divisor<Form>(right_weight, l2);
    return {gl * gl * wr + gr * gr * wl, wl * wr, smaller(left.weight, right_weight)};
}

// Both shares by one division; `scale` of smaller_by.
SGLB_INLINE Share together(const Share& a, const Share& b, float scale) {
    const Floats8 above = b.above * scale, below = b.below * scale;
    return {a.above * below + above * a.below, a.below * below, a.parted | b.parted};
}

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

// Far enough ahead to hide a cache miss, near enough to be still there when it is used.
constexpr int64_t ahead = 24;

template <bool half, bool far>
void build(const uint8_t* codes, int64_t stride, const uint32_t* order, const int64_t* words,
           int64_t n, int64_t* hist) {
    struct Row {
        uint64_t codes;
        int64_t word;
    };
    const auto read = [=](int64_t i) {
        return Row{load_codes(codes + order[i] * stride), words[order[i]]};
    };
    const auto add = [=](const Row& row) {
        add_four(hist, static_cast<uint32_t>(row.codes), row.word);
        if constexpr (!half) add_four(hist + 4, static_cast<uint32_t>(row.codes >> 32), row.word);
    };
    int64_t i = 0;
    if (n >= 4) {
        // The next two rows are read before these two are added: a load that stands behind sixteen
        // stores waits for their addresses.
        Row a = read(0), b = read(1);
        const auto two = [&] {
            const Row c = read(i + 2), d = read(i + 3);
            add(a);
            add(b);
            a = c, b = d;
        };
        if constexpr (far)
            for (; i + ahead + 2 <= n; i += 2) {
                __builtin_prefetch(codes + order[i + ahead] * stride);
                __builtin_prefetch(codes + order[i + ahead + 1] * stride);
                two();
            }
        for (; i + 4 <= n; i += 2) two();
    }
    for (; i < n; ++i) add(read(i));
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

// Walks over the codes of one leaf, eight features side by side.
struct Walk {
    Words4 low, high;        // sums of the words on the left
    Words4 low0, high0;      // words of code 0, where it may go right
    Ints8 gradient, weight;  // of the leaf
};

SGLB_INLINE Walk walk_of(int64_t total) {
    Walk walk{};
    walk.gradient = Ints8{} + static_cast<int32_t>(total >> 32);
    walk.weight = Ints8{} + static_cast<int32_t>(total);
    return walk;
}

SGLB_INLINE void add_share(const Share& share, float* score, int32_t* parted) {
    store(score, load<Floats8>(score) + share.above / share.below);
    store(parted, load<Ints8>(parted) | share.parted);
}

// Which sums go on from code to code: those of numbers do, those of levels begin anew.
struct Keep {
    Words4 low, high;
};

SGLB_INLINE Keep keep_of(const GroupRule& rule) {
    Keep keep{};
    for (int j = 0; j < 4; ++j) {
        keep.low[j] = rule.is_level[j] ? 0 : -1;
        keep.high[j] = rule.is_level[j + 4] ? 0 : -1;
    }
    return keep;
}

template <class Form>
SGLB_INLINE Share share_of(const Walk& walk, Words4 low, Words4 high, float l2) {
    return share_of<Form>(halves(low, high), walk.gradient, walk.weight, l2);
}

template <class Form>
SGLB_INLINE Words4 go_on(Words4 sum, Words4 keep) {
    if constexpr (Form::levels) return sum & keep;
    return sum;
}

template <class Form, bool with_part>
SGLB_INLINE void score_family(const Family& family, const GroupRule& rule, const Keep& keep,
                              const GroupScores& to) {
    const int64_t part_total = with_part ? total_of(family.part, rule.width) : 0;
    Walk part = walk_of(part_total);
    Walk rest = walk_of(total_of(family.whole, rule.width) - part_total);
    const float l2 = rule.l2, scale = smaller_by(l2);
    int64_t* __restrict whole = family.whole;
    const int64_t* __restrict words = family.part;
    for (int64_t at = 0; at < rule.width * group_features; at += group_features) {
        Words4 low = load<Words4>(whole + at), high = load<Words4>(whole + at + 4);
        if constexpr (with_part) {
            const auto part_low = load<Words4>(words + at),
                       part_high = load<Words4>(words + at + 4);
            low -= part_low;
            high -= part_high;
            store(whole + at, low);
            store(whole + at + 4, high);
            part.low = go_on<Form>(part.low, keep.low) + part_low;
            part.high = go_on<Form>(part.high, keep.high) + part_high;
        }
        rest.low = go_on<Form>(rest.low, keep.low) + low;
        rest.high = go_on<Form>(rest.high, keep.high) + high;
        Share share = share_of<Form>(rest, rest.low, rest.high, l2);
        if constexpr (with_part)
            share = together(share, share_of<Form>(part, part.low, part.high, l2), scale);
        add_share(share, to.score + at, to.parted + at);
        if constexpr (Form::right) {
            if (at == 0) {
                rest.low0 = low & keep.low, rest.high0 = high & keep.high;
                part.low0 = part.low & keep.low, part.high0 = part.high & keep.high;
            }
            Share other = share_of<Form>(rest, rest.low - rest.low0, rest.high - rest.high0, l2);
            if constexpr (with_part)
                other = together(
                    other, share_of<Form>(part, part.low - part.low0, part.high - part.high0, l2),
                    scale);
            add_share(other, to.right_score + at, to.right_parted + at);
        }
    }
}

// As score_family where only the first four features exist, and all are numbers: the lanes of the
// others are the second leaf's.
template <class Form>
SGLB_INLINE void score_pairwise(const Family& family, const GroupRule& rule,
                                const GroupScores& to) {
    const int64_t part_total = total_of(family.part, rule.width);
    const int64_t rest_total = total_of(family.whole, rule.width) - part_total;
    const Halves total = halves(Words4{} + rest_total, Words4{} + part_total);
    const float l2 = rule.l2, scale = smaller_by(l2);
    Words4 rest{}, part{};
    int64_t* __restrict whole = family.whole;
    const int64_t* __restrict words = family.part;
    for (int64_t at = 0; at < rule.width * group_features; at += group_features) {
        const auto some = load<Words4>(words + at), others = load<Words4>(whole + at) - some;
        store(whole + at, others);
        part += some;
        rest += others;
        const Share one = share_of<Form>(halves(rest, part), total.gradient, total.weight, l2);
        const Ints8 swap{2, 3, 0, 1, 6, 7, 4, 5};
        const Share two{__builtin_shuffle(one.above, swap), __builtin_shuffle(one.below, swap),
                        __builtin_shuffle(one.parted, swap)};
        add_share(together(one, two, scale), to.score + at, to.parted + at);
    }
}

template <class Form>
SGLB_INLINE void score_all(const Family* families, int64_t n, const GroupRule& rule,
                           const GroupScores& to) {
    const int64_t size = rule.width * group_features;
    const Keep keep = keep_of(rule);
    std::fill_n(to.score, size, 0.0f);
    std::fill_n(to.parted, size, 0);
    if constexpr (Form::right) {
        std::fill_n(to.right_score, size, 0.0f);
        std::fill_n(to.right_parted, size, 0);
    }
    for (int64_t j = 0; j < n; ++j)
        if (families[j].part && Form::four)
            score_pairwise<Form>(families[j], rule, to);
        else if (families[j].part)
            score_family<Form, true>(families[j], rule, keep, to);
        else
            score_family<Form, false>(families[j], rule, keep, to);
}

}  // namespace

void build_histogram(const RowCodes& rows, const uint32_t* order, const int64_t* words, int64_t n,
                     bool half, int64_t* hist) {
    const auto kernel = half ? (rows.far ? build<true, true> : build<true, false>)
                             : (rows.far ? build<false, true> : build<false, false>);
    kernel(rows.codes, rows.stride, order, words, n, hist);
}

SGLB_KERNEL void add_histogram(const int64_t* from, int64_t* to, int64_t size) {
    for (int64_t i = 0; i < size; ++i) to[i] += from[i];
}

// A kernel each, since one that holds all forms keeps none of them in registers.
#define SGLB_SCORE(name, ...)                                                              \
    SGLB_KERNEL static void name(const Family* families, int64_t n, const GroupRule& rule, \
                                 const GroupScores& to) {                                  \
        score_all<Form<__VA_ARGS__>>(families, n, rule, to);                               \
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

void score_histograms(const Family* families, int64_t n, const GroupRule& rule,
                      const GroupScores& to) {
    bool levels = false;
    for (const bool is_level : rule.is_level) levels |= is_level;
    if (to.right_score)
        (rule.l2 >= 1.0f ? score_right_l2 : score_right)(families, n, rule, to);
    else if (levels)
        (rule.l2 >= 1.0f ? score_levels_l2 : score_levels)(families, n, rule, to);
    else if (rule.n_features <= 4)
        (rule.l2 >= 1.0f ? score_four_l2 : score_four)(families, n, rule, to);
    else
        (rule.l2 >= 1.0f ? score_plain_l2 : score_plain)(families, n, rule, to);
}

SGLB_KERNEL void merge_scores(const GroupScores& first, int64_t n, int64_t stride, int64_t width) {
    for (int64_t part = 1; part < n; ++part)
        for (int64_t i = 0; i < width * group_features; ++i) {
            const int64_t at = part * stride + i;
            first.score[i] += first.score[at];
            first.parted[i] |= first.parted[at];
            if (first.right_score) {
                first.right_score[i] += first.right_score[at];
                first.right_parted[i] |= first.right_parted[at];
            }
        }
}

SGLB_KERNEL void best_scores(const GroupScores& from, int64_t width, float* best, int32_t* place) {
    Floats8 top = Floats8{} - std::numeric_limits<float>::infinity();
    Ints8 where = Ints8{} - 1;
    const auto try_form = [&](const float* score, const int32_t* parted, int64_t b, int64_t form) {
        const Floats8 candidate = load<Floats8>(score + group_features * b);
        const Ints8 better = (candidate > top) & (load<Ints8>(parted + group_features * b) > 0);
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
