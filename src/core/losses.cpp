// One loop serves the formulas of all losses of one output, and of quantiles output by output.
// Softmax, whose outputs depend on one another, has a loop of its own. No number is ever summed
// over rows.

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
#include <utility>

#include "elementary.h"
#include "loss_formulas.h"
#include "parallel.h"

namespace sglb {
namespace {

using Rows = LossRows;
using Parameters = LossParameters;
using formulas::Slope;

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
SGLB_LOSS(squared, formulas::Squared)
SGLB_LOSS(logistic, formulas::Logistic)
SGLB_LOSS(sla, formulas::Sla)
SGLB_LOSS(savage, formulas::Savage)
SGLB_LOSS(smooth_absolute, formulas::Absolute)
SGLB_LOSS(huber, formulas::Huber)
SGLB_LOSS(poisson, formulas::Poisson)
SGLB_LOSS(gamma_deviance, formulas::Gamma)
SGLB_LOSS(tweedie, formulas::Tweedie)
SGLB_LOSS(cauchy, formulas::Cauchy)
SGLB_LOSS(welsch, formulas::Welsch)
#undef SGLB_LOSS

// One output per level; parameters are the levels and the width. The root mean square gradient of a
// level at its quantile is sqrt(level (1 - level)): of several, each is made 1/2, so that all learn
// at one rate.
SGLB_KERNEL int64_t quantile(const Parameters& p, const Rows& rows) {
    int64_t largest = 0;
    const int64_t n_levels = rows.n_outputs;
    for (int64_t k = 0; k < n_levels; ++k) {
        const double level = p[k];
        const double factor = n_levels == 1 ? 1.0 : 0.5 / std::sqrt(level * (1.0 - level));
        const formulas::Quantile loss{level, 1.0 / p[n_levels], factor};
        Rows output = rows;
        output.raw += k * rows.raw_stride;
        output.gradient += k * rows.stride;
        if (rows.hessian) output.hessian += k * rows.stride;
        largest = std::max(
            largest, rows.hessian ? fill_each<true>(loss, output) : fill_each<false>(loss, output));
    }
    return largest;
}

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
    LossKernel loss{find_kernel(name), std::move(parameters)};
    const auto n_parameters = static_cast<int64_t>(loss.parameters.size());
    if (n_parameters < 2)
        throw std::invalid_argument("loss '" + std::string(name) + "' has two parameters or more");
    if (loss.function == quantile && n_outputs != n_parameters - 1)
        throw std::invalid_argument("loss 'quantile' has one output per level");
    if (n_outputs != 1 && loss.function != softmax && loss.function != quantile)
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
