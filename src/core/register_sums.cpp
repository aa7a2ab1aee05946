#include "register_sums.h"

#include <algorithm>

#include "elementary.h"
#include "intrinsics.h"
#include "links.h"

namespace sglb {

#if defined(SGLB_REGISTERS)
namespace {

constexpr int digit_bits = 12;
constexpr int n_digits = 4;
constexpr int part_bits = 6;        // of a leaf's number within its part
constexpr int64_t group = 16;       // 2^15 / 2^11 trees
constexpr int64_t run = 8 * group;  // 2^31 / (2^11 + 2^23) trees, rounded down to a power of two

// Leaves of 128 rows as look-ups read them, from the lowest bits of 16: the even rows of the first
// 64, the odd ones with what lies above them, then those of the other 64.
template <class WideSplit>
SGLB_AVX512 SGLB_INLINE void find_leaves(const uint8_t* codes, int64_t stride,
                                         const WideSplit* splits, int depth, __m512i (&leaf)[4]) {
    leaf[0] = leaf[2] = _mm512_setzero_si512();
    __m512i bit = _mm512_set1_epi8(1);
    for (int d = 0; d < depth; ++d) {
        const uint8_t* column = codes + splits[d].feature * stride;
        const __m512i low = _mm512_set1_epi32(static_cast<int>(splits[d].low));
        const __m512i span = _mm512_set1_epi32(static_cast<int>(splits[d].span));
#pragma GCC unroll 2
        for (int b = 0; b < 4; b += 2) {
            const __m512i offset = _mm512_sub_epi8(_mm512_load_si512(column + 32 * b), low);
            const __mmask64 right = _mm512_cmpgt_epu8_mask(offset, span);
            leaf[b] = _mm512_mask_add_epi8(leaf[b], right, leaf[b], bit);
        }
        bit = _mm512_add_epi8(bit, bit);
    }
    leaf[1] = _mm512_srli_epi16(leaf[0], 8);
    leaf[3] = _mm512_srli_epi16(leaf[2], 8);
}

// What is there counts only where it is kept.
SGLB_AVX512 SGLB_INLINE void add_to(int32_t* to, __mmask16 kept, __m512i value) {
    _mm512_store_si512(to, _mm512_add_epi32(_mm512_maskz_load_epi32(kept, to), value));
}

}  // namespace

// Sums of d_0 + 2^12 d_1 and of d_2 + 2^12 d_3, in the order in which add_group() finds them: see
// join().
struct RegisterSums::Pairs {
    alignas(64) int32_t low[rows], high[rows];
};

bool RegisterSums::available() { return has_avx512(); }

// n values, `stride` apart.
SGLB_AVX512 void RegisterSums::cut(const double* values, int64_t stride, int64_t n, Page* pages) {
    constexpr int64_t half = 1 << (digit_bits - 1);
    for (int64_t begin = 0; begin < n; begin += 1 << part_bits, pages += n_digits)
        for (int64_t i = begin; i < std::min<int64_t>(n, begin + (1 << part_bits)); ++i) {
            auto rest = static_cast<int64_t>(values[i * stride]);
            for (int p = 0; p < n_digits; ++p) {
                const int64_t digit = ((rest + half) & (2 * half - 1)) - half;
                pages[p].of[i - begin] = static_cast<int16_t>(digit);
                rest = (rest - digit) >> digit_bits;
            }
        }
}

RegisterSums::RegisterSums(const double* values, const Split* splits, const int32_t* depths,
                           int64_t n_trees, int64_t max_depth, int64_t n_outputs)
    : n_trees_(n_trees),
      max_depth_(max_depth),
      n_parts_(int64_t{1} << std::max<int64_t>(0, max_depth - part_bits)),
      splits_(static_cast<size_t>(n_trees * max_depth)),
      depths_(depths, depths + n_trees),
      pages_(static_cast<size_t>(n_outputs * n_trees * n_parts_ * n_digits)) {
    constexpr uint32_t four_times = 0x01010101;
    for (int64_t i = 0; i < n_trees * max_depth; ++i) {
        const auto span = static_cast<uint8_t>(splits[i].high - splits[i].low);
        splits_[i] = {splits[i].feature, splits[i].low * four_times, span * four_times};
    }
    for (int64_t k = 0; k < n_outputs; ++k)
        for (int64_t t = 0; t < n_trees; ++t)
            cut(values + (t << max_depth) * n_outputs + k, n_outputs, int64_t{1} << max_depth,
                pages_.data() + (k * n_trees + t) * n_parts_ * n_digits);
}

// The sums of a group of trees stay in registers: of each digit, two times the even and the odd
// ones of 64 rows. The first group of a run is fresh: it does not add to what is there.
template <int n_parts>
SGLB_AVX512 void RegisterSums::add_group(const Group& g, bool fresh, Pairs& pairs) {
    __m512i sums[n_digits][4] = {};
    for (int64_t t = 0; t < g.n_trees; ++t) {
        __m512i leaf[4];
        find_leaves(g.codes, g.stride, g.splits + t * g.max_depth, g.depths[t], leaf);
        const Page* pages = g.pages + t * n_parts * n_digits;
        for (int part = 0; part < n_parts; ++part, pages += n_digits) {
            // Where a tree has several parts, all rows are looked up in each.
            const __m512i number = _mm512_set1_epi16(static_cast<int16_t>(part << part_bits));
            __mmask32 in_part[4];
#pragma GCC unroll 4
            for (int b = 0; b < 4; ++b)
                if constexpr (n_parts > 1)
                    in_part[b] = _mm512_cmpeq_epi16_mask(
                        _mm512_and_si512(leaf[b], _mm512_set1_epi16((n_parts - 1) << part_bits)),
                        number);
#pragma GCC unroll 4
            for (int p = 0; p < n_digits; ++p) {
                const __m512i first = _mm512_load_si512(pages[p].of);
                const __m512i second = _mm512_load_si512(pages[p].of + 32);
#pragma GCC unroll 4
                for (int b = 0; b < 4; ++b) {
                    const __m512i values = _mm512_permutex2var_epi16(first, leaf[b], second);
                    if constexpr (n_parts > 1)
                        sums[p][b] =
                            _mm512_mask_add_epi16(sums[p][b], in_part[b], sums[p][b], values);
                    else
                        sums[p][b] = _mm512_add_epi16(sums[p][b], values);
                }
            }
        }
    }
    const __mmask16 kept = fresh ? 0 : 0xffff;
    const __m512i weights = _mm512_set1_epi32(1 | 1 << (16 + digit_bits));
#pragma GCC unroll 4
    for (int p = 0; p < n_digits; p += 2)
#pragma GCC unroll 4
        for (int b = 0; b < 4; ++b) {
            int32_t* to = (p == 0 ? pairs.low : pairs.high) + 32 * b;
            const __m512i first = _mm512_unpacklo_epi16(sums[p][b], sums[p + 1][b]);
            const __m512i second = _mm512_unpackhi_epi16(sums[p][b], sums[p + 1][b]);
            add_to(to, kept, _mm512_madd_epi16(first, weights));
            add_to(to + 16, kept, _mm512_madd_epi16(second, weights));
        }
}

// Of 64 rows the pairs lie as two halves of even rows and two of odd ones; a quarter (128 bits) q
// of such a half has four of the rows 16 q .. 16 q + 15, the first half the lower ones. The first
// run of trees is fresh, as the first group of a run is.
template <bool fresh>
SGLB_AVX512 void RegisterSums::join(const Pairs& pairs, double* sums) {
    const __m512d weight = _mm512_set1_pd(1 << (2 * digit_bits));
    const auto add_four = [](__m256d sum, double* to) SGLB_AVX512 {
        _mm256_storeu_pd(to, fresh ? sum : _mm256_add_pd(_mm256_loadu_pd(to), sum));
    };
    const auto add = [&](__m256i low, __m256i high, double* to) SGLB_AVX512 {
        const __m512d sum =
            _mm512_add_pd(_mm512_mul_pd(_mm512_cvtepi32_pd(high), weight), _mm512_cvtepi32_pd(low));
        add_four(_mm512_castpd512_pd256(sum), to);
        add_four(_mm512_extractf64x4_pd(sum, 1), to + 16);
    };
    for (int64_t row = 0; row < rows; row += 64)
        for (int64_t half = 0; half < 2; ++half) {
            const int64_t even = row + 16 * half, odd = even + 32;
            const __m512i low_even = _mm512_load_si512(pairs.low + even);
            const __m512i low_odd = _mm512_load_si512(pairs.low + odd);
            const __m512i high_even = _mm512_load_si512(pairs.high + even);
            const __m512i high_odd = _mm512_load_si512(pairs.high + odd);
            for (int64_t upper = 0; upper < 2; ++upper) {
                const __m512i low = upper ? _mm512_unpackhi_epi32(low_even, low_odd)
                                          : _mm512_unpacklo_epi32(low_even, low_odd);
                const __m512i high = upper ? _mm512_unpackhi_epi32(high_even, high_odd)
                                           : _mm512_unpacklo_epi32(high_even, high_odd);
                double* to = sums + row + 8 * half + 4 * upper;
                add(_mm512_castsi512_si256(low), _mm512_castsi512_si256(high), to);
                add(_mm512_extracti64x4_epi64(low, 1), _mm512_extracti64x4_epi64(high, 1), to + 32);
            }
        }
}

void RegisterSums::find(const uint8_t* codes, int64_t stride, int64_t n, int64_t first,
                        int64_t last, int64_t k, double* sums) const {
    if (first == last) std::fill_n(sums, n, 0.0);
    const auto add_trees =
        n_parts_ == 1 ? add_group<1> : (n_parts_ == 2 ? add_group<2> : add_group<4>);
    Pairs pairs[tile / rows];
    const int64_t n_blocks = n / rows;
    for (int64_t begin = first; begin < last; begin += run) {
        const int64_t end = std::min(last, begin + run);
        for (int64_t t = begin; t < end; t += group)
            for (int64_t b = 0; b < n_blocks; ++b)
                add_trees(
                    {codes + b * rows, stride, splits_.data() + t * max_depth_, max_depth_,
                     depths_.data() + t, pages_.data() + (k * n_trees_ + t) * n_parts_ * n_digits,
                     std::min(group, end - t)},
                    t == begin, pairs[b]);
        const auto join_run = begin == first ? join<true> : join<false>;
        for (int64_t b = 0; b < n_blocks; ++b) join_run(pairs[b], sums + b * rows);
    }
}

#else

bool RegisterSums::available() { return false; }
RegisterSums::RegisterSums(const double*, const Split*, const int32_t*, int64_t, int64_t, int64_t) {
}
void RegisterSums::find(const uint8_t*, int64_t, int64_t, int64_t, int64_t, int64_t,
                        double*) const {}

#endif

}  // namespace sglb
