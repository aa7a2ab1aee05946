#include "histogram.h"

#include <cstring>

#include "elementary.h"

namespace sglb {
namespace {

SGLB_INLINE uint32_t load_codes(const uint8_t* at) {
    uint32_t codes;
    std::memcpy(&codes, at, sizeof codes);
    return codes;
}

// Gradient and weight sums left of each candidate, by prefix sums over the codes.
struct Prefix {
    int32_t gradient[256];
    int32_t weight[256];
};

SGLB_INLINE void score_candidates(const Prefix& left, int first, int last, int32_t skip_gradient,
                                  int32_t skip_weight, int32_t total_gradient, int32_t total_weight,
                                  double l2, double* score, int32_t* valid) {
    for (int b = first; b < last; ++b) {
        const int32_t weight_left = left.weight[b] - skip_weight;
        const int32_t weight_right = total_weight - weight_left;
        const double gl = left.gradient[b] - skip_gradient;
        const double gr = total_gradient - (left.gradient[b] - skip_gradient);
        // A side without weight has gradient 0; any positive divisor keeps its share 0.
        const double wl = weight_left > 0 ? weight_left + l2 : 1.0;
        const double wr = weight_right > 0 ? weight_right + l2 : 1.0;
        score[b] += (gl * gl * wr + gr * gr * wl) / (wl * wr);
        valid[b] |= static_cast<int32_t>(weight_left > 0) & static_cast<int32_t>(weight_right > 0);
    }
}

}  // namespace

void build_histogram(const uint8_t* codes, int64_t stride, const uint32_t* order,
                     const int64_t* words, int64_t n, int64_t width, int64_t* hist) {
    // Far enough ahead to hide a cache miss, near enough to be still there when it is used.
    constexpr int64_t ahead = 24;
    int64_t* const h0 = hist;
    int64_t* const h1 = hist + width;
    int64_t* const h2 = hist + 2 * width;
    int64_t* const h3 = hist + 3 * width;
    const auto add = [&](uint32_t c, int64_t word) {
        h0[c & 255] += word;
        h1[c >> 8 & 255] += word;
        h2[c >> 16 & 255] += word;
        h3[c >> 24] += word;
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

SGLB_KERNEL void add_scores(const int64_t* hist, int n_codes, double l2, bool has_missing,
                            double* score, double* score_right, int32_t* valid,
                            int32_t* valid_right) {
    Prefix left;
    int64_t sum = 0;
    for (int c = 0; c < n_codes; ++c) {
        sum += hist[c];
        left.gradient[c] = static_cast<int32_t>(sum >> 32);
        left.weight[c] = static_cast<int32_t>(sum & 0x7fffffff);
    }
    const int32_t gradient = left.gradient[n_codes - 1];
    const int32_t weight = left.weight[n_codes - 1];
    if (weight == 0) return;
    score_candidates(left, 0, n_codes - 1, 0, 0, gradient, weight, l2, score, valid);
    if (has_missing)
        score_candidates(left, 1, n_codes - 1, left.gradient[0], left.weight[0], gradient, weight,
                         l2, score_right, valid_right);
}

}  // namespace sglb
