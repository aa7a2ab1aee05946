#include "cross_entropy.h"

#include <algorithm>
#include <array>

#include "elementary.h"

namespace sglb {
namespace {

constexpr int64_t tile = 512;

// 0 for a finite number and NaN for any other.
SGLB_INLINE double poison(double x) { return x - x; }

// log(1 + e^(-m z)), m = 2 y - 1
SGLB_KERNEL void logistic_values(int64_t n, const double* __restrict y,
                                 const double* __restrict raw, double* __restrict out) {
    for (int64_t i = 0; i < n; ++i) {
        const double z = (1.0 - 2.0 * y[i]) * raw[i];
        // maximum() returns its second argument if that is NaN.
        out[i] = maximum(0.0, z) + logarithm_1p(exponential(-absolute(z)));
    }
}

// Of n <= tile rows.
SGLB_KERNEL void softmax_values(int64_t n, int64_t stride, int64_t n_outputs,
                                const double* __restrict y, const double* __restrict raw,
                                double* __restrict out) {
    alignas(32) std::array<double, tile> highest_of;
    alignas(32) std::array<double, tile> total_of;
    double* __restrict highest = highest_of.data();
    double* __restrict total = total_of.data();
    for (int64_t i = 0; i < n; ++i) highest[i] = raw[i];
    for (int64_t k = 1; k < n_outputs; ++k)
        for (int64_t i = 0; i < n; ++i) highest[i] = maximum(highest[i], raw[k * stride + i]);
    for (int64_t i = 0; i < n; ++i) total[i] = 0.0;
    for (int64_t i = 0; i < n; ++i) out[i] = 0.0;
    for (int64_t k = 0; k < n_outputs; ++k) {
        const double label = static_cast<double>(k);
        const double* __restrict z = raw + k * stride;
        for (int64_t i = 0; i < n; ++i) {
            total[i] += exponential(z[i] - highest[i]) + poison(z[i]);
            out[i] = y[i] == label ? highest[i] - z[i] : out[i];
        }
    }
    // The logarithm of NaN is some number.
    for (int64_t i = 0; i < n; ++i) out[i] += logarithm(total[i]) + poison(total[i]);
}

}  // namespace

void cross_entropy(int64_t n_rows, int64_t n_outputs, const double* y, const double* raw,
                   double* out) {
    if (n_outputs == 1) return logistic_values(n_rows, y, raw, out);
    for (int64_t at = 0; at < n_rows; at += tile)
        softmax_values(std::min(tile, n_rows - at), n_rows, n_outputs, y + at, raw + at, out + at);
}

}  // namespace sglb
