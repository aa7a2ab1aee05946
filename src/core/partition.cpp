#include "partition.h"

#include "intrinsics.h"

namespace sglb {
namespace {

// Values i .. n, when `left` and `right` are the ends of what is not filled yet.
int64_t part_rest(const uint32_t* __restrict from, uint32_t* __restrict to,
                  const uint8_t* __restrict bits, int64_t i, int64_t n, int64_t left,
                  int64_t right) {
    for (; i < n; ++i) {
        // Which way a row goes cannot be predicted, so no branch may depend on it.
        const int64_t bit = bits[i];
        right -= bit;
        to[left + (-bit & (right - left))] = from[i];
        left += 1 - bit;
    }
    return left;
}

#ifdef SGLB_REGISTERS
// Eight values at a time. The gap between the parts has room for all eight, so the left part may be
// stored with what lies behind it; the right part must not touch what is already there.
SGLB_AVX512 inline __mmask8 mask_of(const uint8_t* bits) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bits));
    return static_cast<__mmask8>(_mm_test_epi8_mask(bytes, bytes));
}

SGLB_AVX512 inline __mmask8 lowest(int count) { return static_cast<__mmask8>((1u << count) - 1); }

SGLB_AVX512 int64_t part_wide(const uint32_t* from, uint32_t* to, const uint8_t* bits, int64_t n) {
    int64_t left = 0, right = n, i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
        const __mmask8 mask = mask_of(bits + i);
        const int count = __builtin_popcount(mask);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + left),
                            _mm256_maskz_compress_epi32(static_cast<__mmask8>(~mask), values));
        right -= count;
        _mm256_mask_storeu_epi32(to + right, lowest(count),
                                 _mm256_maskz_compress_epi32(mask, values));
        left += 8 - count;
    }
    return part_rest(from, to, bits, i, n, left, right);
}
#endif

}  // namespace

int64_t part(const uint32_t* from, uint32_t* to, const uint8_t* bits, int64_t n) {
#ifdef SGLB_REGISTERS
    if (has_avx512()) return part_wide(from, to, bits, n);
#endif
    return part_rest(from, to, bits, 0, n, 0, n);
}

}  // namespace sglb
