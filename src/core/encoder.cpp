#include "encoder.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "elementary.h"
#include "intrinsics.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t few_rows = 8;  // below this a tile's set-up costs more than it saves

// Level l of a tree has 2^l nodes and at least 16 entries.
constexpr int level_begin(int level) { return level < 5 ? 16 * level : (1 << level) + 48; }

// Node j of level l is the middle one of the 2^(levels - l) - 1 thresholds of its subtree.
std::vector<float> make_tree(const double* thresholds, int32_t n, int levels) {
    std::vector<float> tree(static_cast<size_t>(level_begin(levels)) + 16,
                            std::numeric_limits<float>::infinity());
    for (int level = 0; level < levels; ++level)
        for (int j = 0; j < 1 << level; ++j) {
            const int position = (2 * j + 1) * (1 << (levels - 1 - level)) - 1;
            if (position < n)
                tree[level_begin(level) + j] = static_cast<float>(thresholds[position]);
        }
    return tree;
}

// Codes of n values, n a multiple of 16. Returns whether a value met an equal threshold.
#if defined(SGLB_REGISTERS)
__attribute__((target("default")))
#endif
bool search_tree(const float* x, int64_t n, const float* tree, int levels, uint8_t* codes) {
    // A level of all values at a time: they do not wait for one another.
    uint32_t position[Encoder::most_rows] = {};
    bool met = false;
    for (int level = 0; level < levels; ++level) {
        const float* nodes = tree + level_begin(level);
        for (int64_t i = 0; i < n; ++i) {
            const float node = nodes[position[i]];
            met |= node == x[i];
            position[i] = 2 * position[i] + (node < x[i] ? 1 : 0);
        }
    }
    for (int64_t i = 0; i < n; ++i)
        codes[i] = static_cast<uint8_t>(x[i] == x[i] ? position[i] + 1 : 0);
    return met;
}

#if defined(SGLB_REGISTERS)
__attribute__((target("arch=x86-64-v3"))) bool search_tree(const float* x, int64_t n,
                                                           const float* tree, int levels,
                                                           uint8_t* codes) {
    __m256 met = _mm256_setzero_ps();
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 value = _mm256_loadu_ps(x + i);
        __m256i j = _mm256_setzero_si256();
        for (int level = 0; level < levels; ++level) {
            const float* at = tree + level_begin(level);
            __m256 node;
            if (level < 4) {
                node = _mm256_permutevar8x32_ps(_mm256_loadu_ps(at), j);
            } else if (level == 4) {
                const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(at), j);
                const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(at + 8), j);
                node = _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(j, 28)));
            } else {
                node = _mm256_i32gather_ps(at, j, 4);
            }
            met = _mm256_or_ps(met, _mm256_cmp_ps(node, value, _CMP_EQ_OQ));
            const __m256 right = _mm256_cmp_ps(node, value, _CMP_LT_OQ);  // -1 where true
            j = _mm256_sub_epi32(_mm256_add_epi32(j, j), _mm256_castps_si256(right));
        }
        const __m256 present = _mm256_cmp_ps(value, value, _CMP_ORD_Q);
        j = _mm256_and_si256(_mm256_add_epi32(j, _mm256_set1_epi32(1)),
                             _mm256_castps_si256(present));
        const __m128i words =
            _mm_packus_epi32(_mm256_castsi256_si128(j), _mm256_extracti128_si256(j, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(codes + i), _mm_packus_epi16(words, words));
    }
    return _mm256_movemask_ps(met) != 0;
}

__attribute__((target("arch=x86-64-v4"))) bool search_tree(const float* x, int64_t n,
                                                           const float* tree, int levels,
                                                           uint8_t* codes) {
    uint32_t met = 0;
    for (int64_t i = 0; i < n; i += 16) {
        const __m512 value = _mm512_loadu_ps(x + i);
        __m512i j = _mm512_setzero_si512();
        for (int level = 0; level < levels; ++level) {
            const float* at = tree + level_begin(level);
            __m512 node;
            if (level < 5)
                node = _mm512_permutexvar_ps(j, _mm512_loadu_ps(at));
            else if (level == 5)
                node = _mm512_permutex2var_ps(_mm512_loadu_ps(at), j, _mm512_loadu_ps(at + 16));
            else
                node = _mm512_i32gather_ps(j, at, 4);
            met |= _mm512_cmp_ps_mask(node, value, _CMP_EQ_OQ);
            const __mmask16 right = _mm512_cmp_ps_mask(node, value, _CMP_LT_OQ);
            j = _mm512_add_epi32(j, j);
            j = _mm512_mask_add_epi32(j, right, j, _mm512_set1_epi32(1));
        }
        const __mmask16 present = _mm512_cmp_ps_mask(value, value, _CMP_ORD_Q);
        j = _mm512_maskz_add_epi32(present, j, _mm512_set1_epi32(1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + i), _mm512_cvtepi32_epi8(j));
    }
    return met != 0;
}
#endif

}  // namespace

Encoder::Encoder(const double* thresholds, const int32_t* n_thresholds, int64_t width,
                 const std::vector<int32_t>& features) {
    for (const int32_t feature : features) {
        const int32_t n = n_thresholds[feature];
        const double* of = thresholds + feature * width;
        int levels = 0;
        while ((1 << levels) - 1 < n) ++levels;
        features_.push_back({feature, n, levels, of, make_tree(of, n, levels)});
    }
}

void Encoder::encode_exactly(const Feature& feature, const Table& x, int64_t begin, int64_t end,
                             uint8_t* codes) {
    const double *first = feature.thresholds, *last = first + feature.n_thresholds;
    with_type(x, [&](const auto* data) {
        const auto* from = data + begin * x.row_stride + feature.feature * x.feature_stride;
        for (int64_t i = 0; i < end - begin; ++i) {
            const auto value = static_cast<double>(from[i * x.row_stride]);
            const int64_t below = std::lower_bound(first, last, value) - first;
            codes[i] = static_cast<uint8_t>(value == value ? below + 1 : 0);
        }
    });
}

void Encoder::encode(const Table& x, int64_t j, int64_t begin, int64_t end, uint8_t* codes) const {
    const Feature& feature = features_[j];
    const int64_t n = end - begin;
    if (n <= few_rows) return encode_exactly(feature, x, begin, end, codes);
    float values[most_rows];
    const int64_t padded = (n + 15) / 16 * 16;
    with_type(x, [&](const auto* data) {
        const auto* from = data + begin * x.row_stride + feature.feature * x.feature_stride;
        for (int64_t i = 0; i < n; ++i)
            values[i] = static_cast<float>(static_cast<double>(from[i * x.row_stride]));
    });
    // No number: it cannot meet a threshold.
    std::fill(values + n, values + padded, std::numeric_limits<float>::quiet_NaN());
    if (search_tree(values, padded, feature.tree.data(), feature.levels, codes))
        encode_exactly(feature, x, begin, end, codes);
}

void encode(const Table& x, const double* thresholds, const int32_t* n_thresholds, int64_t width,
            uint8_t* columns, int n_threads) {
    std::vector<int32_t> all(static_cast<size_t>(x.n_features));
    std::iota(all.begin(), all.end(), 0);
    const Encoder encoder(thresholds, n_thresholds, width, all);
    parallel_rows(x.n_rows, n_threads, [&](int64_t begin, int64_t end) {
        uint8_t codes[Encoder::most_rows];
        // Short runs of rows, so that a row-major table is read from the cache once per feature.
        for (int64_t at = begin; at < end; at += Encoder::most_rows) {
            const int64_t stop = std::min(end, at + Encoder::most_rows);
            for (int64_t feature = 0; feature < x.n_features; ++feature) {
                encoder.encode(x, feature, at, stop, codes);
                std::copy_n(codes, stop - at, columns + feature * x.n_rows + at);
            }
        }
    });
}

}  // namespace sglb
