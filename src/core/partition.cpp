#include "partition.h"

#include "elementary.h"
#include "intrinsics.h"

namespace sglb {
namespace {

// Values i .. n, when `left` and `right` are the ends of what is not filled yet.
template <class T>
int64_t part_rest(const T* __restrict from, T* __restrict to, const uint8_t* __restrict bits,
                  int64_t i, int64_t n, int64_t left, int64_t right) {
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
#define SGLB_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

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

SGLB_AVX512 int64_t part_wide(const int64_t* from, int64_t* to, const uint8_t* bits, int64_t n) {
    int64_t left = 0, right = n, i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m512i values = _mm512_loadu_si512(from + i);
        const __mmask8 mask = mask_of(bits + i);
        const int count = __builtin_popcount(mask);
        _mm512_storeu_si512(to + left,
                            _mm512_maskz_compress_epi64(static_cast<__mmask8>(~mask), values));
        right -= count;
        _mm512_mask_storeu_epi64(to + right, lowest(count),
                                 _mm512_maskz_compress_epi64(mask, values));
        left += 8 - count;
    }
    return part_rest(from, to, bits, i, n, left, right);
}

bool has_compress() {
    static const bool has = __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512vl");
    return has;
}
#endif

template <class T>
int64_t part_any(const T* from, T* to, const uint8_t* bits, int64_t n) {
#ifdef SGLB_REGISTERS
    if (has_compress()) return part_wide(from, to, bits, n);
#endif
    return part_rest(from, to, bits, 0, n, 0, n);
}

}  // namespace

int64_t part(const uint32_t* from, uint32_t* to, const uint8_t* bits, int64_t n) {
    return part_any(from, to, bits, n);
}
int64_t part(const int64_t* from, int64_t* to, const uint8_t* bits, int64_t n) {
    return part_any(from, to, bits, n);
}

}  // namespace sglb
