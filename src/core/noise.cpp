#include "noise.h"

#include "intrinsics.h"

namespace sglb {
namespace {

SGLB_KERNEL void words_one_by_one(const Stream& stream, const uint32_t* index, int64_t first,
                                  int64_t n, uint32_t* const (&to)[4]) {
    const Stream copy = stream;  // lets the compiler keep it in registers
    for (int64_t i = first; i < n; ++i) {
        const Words w = words_at(copy, index[i]);
        for (size_t j = 0; j < 4; ++j) to[j][i] = w[j];
    }
}

#ifdef SGLB_REGISTERS
// Eight counters in a register, a word of each in a lane of 64 bits, whose low half a
// multiplication takes and whose high half nobody reads: compilers move the halves about instead.
// Four registers at a time hide the multiplication's latency. Returns how many counters were done.
SGLB_AVX512 int64_t words_wide(const Stream& stream, const uint32_t* index, int64_t n,
                               uint32_t* const (&to)[4]) {
    constexpr int wide = 4;
    const auto all = [](uint32_t word) SGLB_AVX512 { return _mm512_set1_epi64(word); };
    const __m512i first_factor = all(0xD2511F53), second_factor = all(0xCD9E8D57);
    int64_t at = 0;
    for (; at + 8 * wide <= n; at += 8 * wide) {
        __m512i words[4][wide];
        for (int v = 0; v < wide; ++v) {
            words[0][v] = _mm512_cvtepu32_epi64(
                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index + at + 8 * v)));
            words[1][v] = _mm512_setzero_si512();
            words[2][v] = all(stream.step);
            words[3][v] = all(static_cast<uint32_t>(stream.role) | stream.output << 8);
        }
        auto key0 = static_cast<uint32_t>(stream.seed);
        auto key1 = static_cast<uint32_t>(stream.seed >> 32);
        for (int round = 0; round < 10; ++round) {
            const __m512i first_key = all(key0), second_key = all(key1);
            for (int v = 0; v < wide; ++v) {
                const __m512i a = _mm512_mul_epu32(words[0][v], first_factor);
                const __m512i b = _mm512_mul_epu32(words[2][v], second_factor);
                constexpr int exclusive_or = 0x96;  // of three
                words[0][v] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(b, 32), words[1][v],
                                                        first_key, exclusive_or);
                words[1][v] = b;
                words[2][v] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(a, 32), words[3][v],
                                                        second_key, exclusive_or);
                words[3][v] = a;
            }
            key0 += 0x9E3779B9;
            key1 += 0xBB67AE85;
        }
        for (int j = 0; j < 4; ++j)
            for (int v = 0; v < wide; ++v)
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(to[j] + at + 8 * v),
                                    _mm512_cvtepi64_epi32(words[j][v]));
    }
    return at;
}
#endif

}  // namespace

void fill_words(const Stream& stream, uint64_t first, int64_t n, uint32_t* out) {
    for (int64_t i = 0; i < n; ++i) {
        const Words w = words_at(stream, first + static_cast<uint64_t>(i));
        for (size_t j = 0; j < 4; ++j) out[4 * static_cast<size_t>(i) + j] = w[j];
    }
}

void gather_words(const Stream& stream, const uint32_t* index, int64_t n,
                  uint32_t* const (&to)[4]) {
    int64_t done = 0;
#ifdef SGLB_REGISTERS
    if (has_avx512()) done = words_wide(stream, index, n, to);
#endif
    words_one_by_one(stream, index, done, n, to);
}

}  // namespace sglb
