#include "partition.h"

#include "intrinsics.h"

namespace sglb {
namespace {

// Which side a row goes to: right if its code less `low` is above `span`, as bytes go round.
struct Sides {
    const uint8_t* codes;
    int64_t stride;
    uint8_t low, span;

    Sides(const CodeColumn& column, const Split& split)
        : codes(column.codes),
          stride(column.stride),
          low(split.low),
          span(static_cast<uint8_t>(split.high - split.low)) {}

    bool is_right(uint32_t row) const {
        return static_cast<uint8_t>(codes[row * stride] - low) > span;
    }
};

// Rows i .. n, when `left` and `right` are the ends of what is not filled yet.
int64_t partition_rest(const Sides& sides, const uint32_t* __restrict from, uint32_t* __restrict to,
                       int64_t i, int64_t n, int64_t left, int64_t right) {
    for (; i < n; ++i) {
        // Which way a row goes cannot be predicted, so no branch may depend on it.
        const int64_t bit = sides.is_right(from[i]);
        right -= bit;
        to[left + (-bit & (right - left))] = from[i];
        left += 1 - bit;
    }
    return left;
}

#ifdef SGLB_REGISTERS
// Which of eight rows go right. Their codes meet in a register: a store for each, and a load of all
// eight that waits for them, would take longer than all the rest.
template <bool side_by_side>
SGLB_AVX512 inline __mmask8 mask_of(const Sides& sides, const uint32_t* rows) {
    uint64_t codes = 0;
    for (int k = 0; k < 8; ++k)
        codes |= uint64_t{sides.codes[side_by_side ? rows[k] : rows[k] * sides.stride]} << (8 * k);
    const __m128i above = _mm_sub_epi8(_mm_cvtsi64_si128(static_cast<int64_t>(codes)),
                                       _mm_set1_epi8(static_cast<char>(sides.low)));
    return static_cast<__mmask8>(
        _mm_cmpgt_epu8_mask(above, _mm_set1_epi8(static_cast<char>(sides.span))));
}

// Eight rows at a time, stored whole at either end of the gap between the sides. What does not
// belong there is overwritten later, and touches nothing while the gap has room for sixteen.
template <bool side_by_side>
SGLB_AVX512 int64_t partition_wide(const Sides& sides, const uint32_t* from, uint32_t* to,
                                   int64_t n) {
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const auto at = [](uint32_t* row) { return reinterpret_cast<__m256i*>(row); };
    int64_t left = 0, right = n, i = 0;
    for (; i + 16 <= n; i += 8) {
        const __m256i rows = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
        const __mmask8 mask = mask_of<side_by_side>(sides, from + i);
        const int count = __builtin_popcount(mask);
        const __m256i kept = _mm256_maskz_compress_epi32(static_cast<__mmask8>(~mask), rows);
        const __m256i sent = _mm256_maskz_compress_epi32(mask, rows);
        // Behind each other at the end: indices of a permutation go round.
        const __m256i turn = _mm256_add_epi32(places, _mm256_set1_epi32(count));
        _mm256_storeu_si256(at(to + left), kept);
        _mm256_storeu_si256(at(to + right - 8), _mm256_permutexvar_epi32(turn, sent));
        left += 8 - count;
        right -= count;
    }
    return partition_rest(sides, from, to, i, n, left, right);
}
#endif

}  // namespace

int64_t partition_rows(const CodeColumn& column, const Split& split, const uint32_t* from,
                       uint32_t* to, int64_t n) {
    const Sides sides(column, split);
#ifdef SGLB_REGISTERS
    if (has_avx512())
        return (sides.stride == 1 ? partition_wide<true> : partition_wide<false>)(sides, from, to,
                                                                                  n);
#endif
    return partition_rest(sides, from, to, 0, n, 0, n);
}

}  // namespace sglb
