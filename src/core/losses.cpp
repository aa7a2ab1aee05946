// Each loss is a small functor (y, raw score) -> gradient and second derivative of one row, in
// straight-line arithmetic, so that one loop serves them all and runs in vectors. Softmax, whose
// outputs depend on one another, has a loop of its own. No number is ever summed over rows.
//
// Notation in the formulas: z raw score, r = z - y, m = 2 y - 1 (the class as -1 or +1),
// s(x) = 1 / (1 + e^-x). Where a gradient is bounded, no finite score overflows on the way to it.

// GCC would follow the branches of a clamp to the end of a row's formula and compute both ends for
// every row; at the clamp's end that is arithmetic with denormal numbers, three times as slow.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")
#endif

#include "losses.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

using Rows = LossRows;
using Parameters = LossParameters;

struct Slope {
    double gradient;
    double hessian;
};

// s(x) and s'(x) = s(x) s(-x). The clamp of exponential() keeps every factor finite.
struct Sigmoid {
    double value;
    double slope;
    SGLB_INLINE explicit Sigmoid(double x) {
        const double e = exponential(-x);
        value = 1.0 / (1.0 + e);
        slope = (e * value) * value;
    }
};

// Residuals of robust losses in units of their width: past this the losses are flat (or straight)
// to the last bit, and the square of a larger number could overflow.
SGLB_INLINE double limit_residual(double t) { return minimum(maximum(t, -1e100), 1e100); }

struct Squared {
    explicit Squared(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const { return {z - y, 1.0}; }
};

struct Logistic {
    explicit Logistic(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double m = 2.0 * y - 1.0;
        const Sigmoid wrong(-m * z);  // probability of the other class
        return {-m * wrong.value, wrong.slope};
    }
};

// 1 - s(m z / width)
struct Sla {
    double inverse_width;
    explicit Sla(const Parameters& p) : inverse_width(1.0 / p.first) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double m = 2.0 * y - 1.0;
        const Sigmoid wrong(-m * z * inverse_width);
        const double slope = inverse_width * wrong.slope;
        return {-m * slope, slope * inverse_width * (1.0 - 2.0 * wrong.value)};
    }
};

// (y - s(z))^2 = s(-m z)^2
struct Savage {
    explicit Savage(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double m = 2.0 * y - 1.0;
        const Sigmoid wrong(-m * z);
        const double half = wrong.value * wrong.slope;
        return {-2.0 * m * half, 2.0 * half * (2.0 - 3.0 * wrong.value)};
    }
};

// sqrt(r^2 + width^2) - width
struct Absolute {
    double inverse_width;
    explicit Absolute(const Parameters& p) : inverse_width(1.0 / p.first) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double t = limit_residual((z - y) * inverse_width);
        const double square = 1.0 + t * t;
        const double root = std::sqrt(square);  // one exactly rounded instruction
        return {t / root, inverse_width / (square * root)};
    }
};

// r^2 / 2 up to |r| = delta, straight beyond
struct Huber {
    double delta;
    explicit Huber(const Parameters& p) : delta(p.first) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double r = z - y;
        return {minimum(maximum(r, -delta), delta), absolute(r) <= delta ? 1.0 : 0.0};
    }
};

// level u + width log(1 + e^(-u / width)), u = y - z
struct Quantile {
    double level;
    double inverse_width;
    explicit Quantile(const Parameters& p) : level(p.first), inverse_width(1.0 / p.second) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const Sigmoid below((z - y) * inverse_width);
        return {below.value - level, below.slope * inverse_width};
    }
};

// e^z - y z, e^z continued from `limit` on as the parabola of the same value, slope and curvature.
struct Poisson {
    static constexpr double limit = 30.0;
    explicit Poisson(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double curvature = exponential(minimum(z, limit));
        return {curvature * (1.0 + maximum(z - limit, 0.0)) - y, curvature};
    }
};

// Slope of e^x, continued from `limit` on as above.
SGLB_INLINE double exponential_slope(double x, double limit) {
    return exponential(minimum(x, limit)) * (1.0 + maximum(x - limit, 0.0));
}

// Both of the following are sums of a falling and a rising exponential. The curvature is the mean
// of their slopes, with which no Newton step is longer than 2 (losses/amounts.py).
constexpr double exponent_limit = 300.0;

// e^d - d - 1, d = log y - z
struct Gamma {
    explicit Gamma(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double d = logarithm(maximum(y, std::numeric_limits<double>::min())) - z;
        const double falling = exponential_slope(d, exponent_limit);
        return {1.0 - falling, 0.5 * (1.0 + falling)};
    }
};

// y e^((1 - power) z) / (power - 1) + e^((2 - power) z) / (2 - power)
struct Tweedie {
    double low, high;
    explicit Tweedie(const Parameters& p) : low(1.0 - p.first), high(2.0 - p.first) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double falling = y * exponential_slope(low * z, exponent_limit);
        const double rising = exponential_slope(high * z, exponent_limit);
        return {rising - falling, 0.5 * (rising + falling)};
    }
};

// scale^2 / 2 log(1 + (r / scale)^2)
struct Cauchy {
    double scale;
    double inverse_scale;
    explicit Cauchy(const Parameters& p) : scale(p.first), inverse_scale(1.0 / p.first) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double t = limit_residual((z - y) * inverse_scale);
        const double trust = 1.0 / (1.0 + t * t);
        return {scale * (t * trust), ((1.0 - t * t) * trust) * trust};
    }
};

// scale^2 / 2 (1 - e^-(r / scale)^2)
struct Welsch {
    double scale;
    double inverse_scale;
    explicit Welsch(const Parameters& p) : scale(p.first), inverse_scale(1.0 / p.first) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double t = limit_residual((z - y) * inverse_scale);
        const double trust = exponential(-t * t);
        return {scale * (t * trust), (1.0 - 2.0 * t * t) * trust};
    }
};

// Bits of |x| as an integer order like |x| itself, with infinity and then NaN on top; unlike a
// floating-point maximum the compiler may take it in vectors.
SGLB_INLINE int64_t magnitude(double x) { return std::bit_cast<int64_t>(absolute(x)); }

// 0 for a finite score and NaN for any other, added so that a chain that left the range of doubles
// cannot hide behind a clamp.
SGLB_INLINE double poison(double z) { return z - z; }

template <bool with_hessian, class Loss>
SGLB_INLINE int64_t fill_each(const Loss loss, const Rows& rows) {
    const int64_t n = rows.n;
    const double* __restrict y = rows.y;
    const double* __restrict raw = rows.raw;
    double* __restrict gradient = rows.gradient;
    double* __restrict hessian = rows.hessian;
    int64_t largest = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double z = raw[i];
        const Slope slope = loss(y[i], z);
        const double g = slope.gradient + poison(z);
        gradient[i] = g;
        if constexpr (with_hessian) hessian[i] = slope.hessian;
        largest = std::max(largest, magnitude(g));
    }
    return largest;
}

// A clone for AVX2 can be made of a plain function only, hence one function a loss.
#define SGLB_LOSS(function, Loss)                                                         \
    SGLB_KERNEL int64_t function(const Parameters& parameters, const Rows& rows) {        \
        const Loss loss(parameters);                                                      \
        return rows.hessian ? fill_each<true>(loss, rows) : fill_each<false>(loss, rows); \
    }
SGLB_LOSS(squared, Squared)
SGLB_LOSS(logistic, Logistic)
SGLB_LOSS(sla, Sla)
SGLB_LOSS(savage, Savage)
SGLB_LOSS(smooth_absolute, Absolute)
SGLB_LOSS(huber, Huber)
SGLB_LOSS(quantile, Quantile)
SGLB_LOSS(poisson, Poisson)
SGLB_LOSS(gamma_deviance, Gamma)
SGLB_LOSS(tweedie, Tweedie)
SGLB_LOSS(cauchy, Cauchy)
SGLB_LOSS(welsch, Welsch)
#undef SGLB_LOSS

// Softmax: g_k = p_k - 1{y = k}, h_k = p_k (1 - p_k), p_k = e^(z_k - max) / sum of these.
// Classes outside, a tile of rows inside: the tile's sums stay in the first-level cache, and the
// sum over the classes of a row has one fixed order.
constexpr int64_t tile_rows = 512;

template <bool with_hessian>
SGLB_INLINE int64_t softmax_tile(const Rows& rows, int64_t first, int64_t n) {
    alignas(32) std::array<double, tile_rows> highest_of;
    alignas(32) std::array<double, tile_rows> total_of;
    double* __restrict highest = highest_of.data();
    double* __restrict total = total_of.data();
    const double* __restrict y = rows.y + first;
    for (int64_t i = 0; i < n; ++i) highest[i] = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) total[i] = 0.0;
    for (int64_t k = 0; k < rows.n_outputs; ++k) {
        const double* __restrict raw = rows.raw + k * rows.raw_stride + first;
        for (int64_t i = 0; i < n; ++i) highest[i] = maximum(highest[i], raw[i]);
    }
    for (int64_t k = 0; k < rows.n_outputs; ++k) {
        const double* __restrict raw = rows.raw + k * rows.raw_stride + first;
        double* __restrict gradient = rows.gradient + k * rows.stride + first;
        for (int64_t i = 0; i < n; ++i) {
            const double e = exponential(raw[i] - highest[i]) + poison(raw[i]);
            gradient[i] = e;
            total[i] += e;
        }
    }
    int64_t largest = 0;
    for (int64_t k = 0; k < rows.n_outputs; ++k) {
        double* __restrict gradient = rows.gradient + k * rows.stride + first;
        double* __restrict hessian =
            with_hessian ? rows.hessian + k * rows.stride + first : nullptr;
        const double label = static_cast<double>(k);
        for (int64_t i = 0; i < n; ++i) {
            const double p = gradient[i] / total[i];  // a quotient never exceeds 1: h_k >= 0
            const double g = p - (y[i] == label ? 1.0 : 0.0);
            gradient[i] = g;
            if constexpr (with_hessian) hessian[i] = p * (1.0 - p);
            largest = std::max(largest, magnitude(g));
        }
    }
    return largest;
}

SGLB_KERNEL int64_t softmax(const Parameters&, const Rows& rows) {
    int64_t largest = 0;
    for (int64_t first = 0; first < rows.n; first += tile_rows) {
        const int64_t n = std::min(tile_rows, rows.n - first);
        largest = std::max(largest, rows.hessian ? softmax_tile<true>(rows, first, n)
                                                 : softmax_tile<false>(rows, first, n));
    }
    return largest;
}

LossKernel::Function find_kernel(std::string_view name) {
    if (name == "squared") return squared;
    if (name == "logistic") return logistic;
    if (name == "softmax") return softmax;
    if (name == "sla") return sla;
    if (name == "absolute") return smooth_absolute;
    if (name == "huber") return huber;
    if (name == "quantile") return quantile;
    if (name == "poisson") return poisson;
    if (name == "gamma") return gamma_deviance;
    if (name == "tweedie") return tweedie;
    if (name == "cauchy") return cauchy;
    if (name == "welsch") return welsch;
    if (name == "savage") return savage;
    throw std::invalid_argument("no kernel for loss '" + std::string(name) + "'");
}

}  // namespace

LossKernel find_loss(std::string_view name, LossParameters parameters, int64_t n_outputs) {
    const LossKernel loss{find_kernel(name), parameters};
    if (n_outputs != 1 && loss.function != softmax)
        throw std::invalid_argument("loss '" + std::string(name) + "' has one output");
    return loss;
}

double loss_gradient(const LossKernel& loss, int64_t n_rows, int64_t n_outputs, const double* y,
                     const double* raw, double* gradient, double* hessian, int n_threads) {
    std::atomic<int64_t> largest{0};
    parallel_rows(n_rows, n_threads, [&](int64_t begin, int64_t end) {
        const int64_t block_largest =
            loss.run({end - begin, n_rows, n_rows, n_outputs, y + begin, raw + begin,
                      gradient + begin, hessian ? hessian + begin : nullptr});
        int64_t known = largest.load(std::memory_order_relaxed);
        while (block_largest > known && !largest.compare_exchange_weak(known, block_largest)) {
        }
    });
    const double result = std::bit_cast<double>(largest.load());
    return std::isfinite(result) ? result : std::numeric_limits<double>::infinity();
}

}  // namespace sglb
