#include "quantise.h"

#include <algorithm>
#include <cmath>

#include "noise.h"
#include "parallel.h"
#include "sample.h"

namespace sglb {
namespace {

constexpr int64_t tile = 256;
// More than 20 bits a row would add nothing that the scores could show.
constexpr double most = 1048576.0;

// zeta_i and the rounding offset u_i in [0, 1) of the rows of one tile, from
// the same counter.
SGLB_KERNEL void draw(const Stream& stream, const uint32_t* rows, int64_t n, double* zeta,
                      double* offset) {
    const Stream copy = stream;
    for (int64_t i = 0; i < n; ++i) {
        const Words w = words_at(copy, rows[i]);
        zeta[i] = normal_from(w[0], w[1]);
        offset[i] = unit(w[2]);
    }
}

SGLB_KERNEL void draw_offset(const Stream& stream, const uint32_t* rows, int64_t n,
                             double* offset) {
    const Stream copy = stream;
    for (int64_t i = 0; i < n; ++i) offset[i] = unit(words_at(copy, rows[i])[2]);
}

// |x| < 2^51 rounded to an integer; floor(x) by rounding x - 1/2 differs only
// for ties, where the random offset makes either neighbour right.
SGLB_INLINE uint64_t to_integer(double x) {
    return std::bit_cast<uint64_t>(x + round_magic) - std::bit_cast<uint64_t>(round_magic);
}

// value[i] is the noisy gradient of a row of unit weight, weight[i] the weight
// in units, mass[i] the scaled weight. Whole weights multiply a rounded
// gradient, as repetition would.
SGLB_KERNEL void pack_fine(const double* value, const double* weight, const double* mass, int64_t n,
                           double scale, int64_t* packed) {
    for (int64_t i = 0; i < n; ++i) {
        const double rounded = (value[i] * scale + round_magic) - round_magic;
        packed[i] =
            static_cast<int64_t>((to_integer(weight[i] * rounded) << 32) + to_integer(mass[i]));
    }
}

SGLB_KERNEL void pack_coarse(const double* value, const double* weight, const double* mass,
                             const double* offset, int64_t n, double scale, int64_t* packed) {
    for (int64_t i = 0; i < n; ++i) {
        const uint64_t q = to_integer(weight[i] * value[i] * scale + (offset[i] - 0.5));
        packed[i] = static_cast<int64_t>((q << 32) + to_integer(mass[i]));
    }
}

// The largest power of two that is at most x.
double power_of_two(double x) {
    return x > 0.0 ? std::ldexp(1.0, std::min(1000, std::ilogb(x))) : 0.0;
}

}  // namespace

Scales quantise_scales(int64_t n, bool sampled, double sigma, double largest_gradient,
                       const Weights& weights) {
    const auto rows = static_cast<double>(std::max<int64_t>(n, 1));
    const double unit = weights.weight ? weights.unit : 1.0;
    const double heaviest = weights.weight ? weights.largest : 1.0;
    const double total = !weights.weight ? rows : sampled ? rows * heaviest : weights.total;
    // Rounding may add one per row and, where fine, half a unit of weight: W < 2^12 there.
    const double room = 2147483647.0 - rows - 4096.0;
    const double noise = sigma / std::sqrt(unit) * largest_normal;
    // sum |w g + noise sqrt(w)| <= W g + noise sqrt(n W), in units of weight.
    const double sum = total * largest_gradient + noise * std::sqrt(rows * total);
    const double row = largest_gradient + noise;
    const double fine_scale = row > 0.0 ? power_of_two(most / row) : 0.0;
    const double scale = sum > 0.0 ? std::min(fine_scale, power_of_two(room / sum)) : 0.0;
    const double weight_scale =
        weights.weight ? std::min(power_of_two(room / total), power_of_two(most / heaviest)) : 1.0;
    return {scale, weight_scale, unit, scale == fine_scale};
}

void structure_rows(int64_t n_rows, int64_t n, uint64_t seed, uint32_t step, uint32_t* rows,
                    int n_threads) {
    if (n == 0) return;
    const Stream stream{seed, step, Role::rows, 0};
    const uint64_t length = stretch_length(static_cast<uint64_t>(n), static_cast<uint64_t>(n_rows));
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k)
            rows[k] = static_cast<uint32_t>(stretch_row(stream, static_cast<uint64_t>(k), length));
    });
}

void quantise(const double* gradient, const Weights& weights, const uint32_t* rows, int64_t n_rows,
              int64_t n, int64_t n_outputs, double sigma, Scales scales, uint64_t seed,
              uint32_t step, int64_t* packed, int n_threads) {
    const double noise = sigma / std::sqrt(scales.unit);
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        uint32_t index[tile];
        double zeta[tile], offset[tile], value[tile], weight[tile], mass[tile];
        for (int64_t at = begin; at < end; at += tile) {
            const int64_t count = std::min(tile, end - at);
            for (int64_t i = 0; i < count; ++i) {
                index[i] = rows ? rows[at + i] : static_cast<uint32_t>(at + i);
                weight[i] = weights.weight ? weights.weight[index[i]] / scales.unit : 1.0;
                mass[i] = weight[i] > 0.0 ? std::max(1.0, weight[i] * scales.weight) : 0.0;
            }
            for (int64_t k = 0; k < n_outputs; ++k) {
                const Stream stream{seed, step, Role::structure, static_cast<uint32_t>(k)};
                const double* g = gradient + k * n_rows;
                if (noise > 0.0) {
                    draw(stream, index, count, zeta, offset);
                    for (int64_t i = 0; i < count; ++i)
                        value[i] = weight[i] > 0.0
                                       ? g[index[i]] + noise / std::sqrt(weight[i]) * zeta[i]
                                       : 0.0;
                } else {
                    if (!scales.fine) draw_offset(stream, index, count, offset);
                    for (int64_t i = 0; i < count; ++i) value[i] = g[index[i]];
                }
                int64_t* to = packed + k * n + at;
                if (scales.fine)
                    pack_fine(value, weight, mass, count, scales.gradient, to);
                else
                    pack_coarse(value, weight, mass, offset, count, scales.gradient, to);
            }
        }
    });
}

}  // namespace sglb
