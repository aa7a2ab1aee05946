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

// zeta_i and the rounding offset u_i in [0, 1) of the rows of one tile, from the same counter.
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

// |x| < 2^51 rounded to an integer; floor(x) by rounding x - 1/2 differs only for ties, where the
// random offset makes either neighbour right.
SGLB_INLINE uint64_t to_integer(double x) {
    return std::bit_cast<uint64_t>(x + round_magic) - std::bit_cast<uint64_t>(round_magic);
}

// value[i] is the noisy weighted gradient, mass[i] the weight; both scaled and packed.
SGLB_KERNEL void pack(const double* value, const double* mass, const double* offset, int64_t n,
                      double scale, int64_t* packed) {
    for (int64_t i = 0; i < n; ++i) {
        const uint64_t q = to_integer(value[i] * scale + (offset[i] - 0.5));
        packed[i] = static_cast<int64_t>((q << 32) + to_integer(mass[i]));
    }
}

// steps / bound, finite even where the bound is 0 or next to it.
double scale_of(double steps, double bound) {
    return bound > 0.0 ? std::min(steps / bound, 0x1p1000) : 0.0;
}

}  // namespace

Scales quantise_scales(int64_t n_rows, double sigma, double largest_gradient, double largest_weight,
                       bool weighted) {
    const double room =
        std::floor(2147483647.0 / static_cast<double>(std::max<int64_t>(n_rows, 1)));
    const double steps = std::max(1.0, std::min(most, room) - 1.0);
    const double bound =
        largest_weight * largest_gradient + sigma * std::sqrt(largest_weight) * largest_normal;
    return {scale_of(steps, bound), weighted ? scale_of(steps, largest_weight) : 1.0};
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

void quantise(const double* gradient, const double* weight, const uint32_t* rows, int64_t n_rows,
              int64_t n, int64_t n_outputs, double sigma, Scales scales, uint64_t seed,
              uint32_t step, int64_t* packed, int n_threads) {
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        uint32_t index[tile];
        double zeta[tile], offset[tile], value[tile], mass[tile];
        for (int64_t at = begin; at < end; at += tile) {
            const int64_t count = std::min(tile, end - at);
            for (int64_t i = 0; i < count; ++i)
                index[i] = rows ? rows[at + i] : static_cast<uint32_t>(at + i);
            for (int64_t k = 0; k < n_outputs; ++k) {
                const Stream stream{seed, step, Role::structure, static_cast<uint32_t>(k)};
                if (sigma > 0.0) {
                    draw(stream, index, count, zeta, offset);
                } else {
                    draw_offset(stream, index, count, offset);
                    std::fill(zeta, zeta + count, 0.0);
                }
                const double* g = gradient + k * n_rows;
                for (int64_t i = 0; i < count; ++i) {
                    const double w = weight ? weight[index[i]] : 1.0;
                    value[i] = w * g[index[i]] + sigma * std::sqrt(w) * zeta[i];
                    mass[i] = !weight ? 1.0 : w > 0.0 ? std::max(1.0, w * scales.weight) : 0.0;
                }
                pack(value, mass, offset, count, scales.gradient, packed + k * n + at);
            }
        }
    });
}

}  // namespace sglb
