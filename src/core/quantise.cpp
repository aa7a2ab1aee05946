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

// zeta_i and the rounding offset u_i in [0, 1) of the rows of one tile: row r has normal number r,
// and word 2 or 3 of that normal's counter.
SGLB_KERNEL void draw(const Stream& stream, const uint32_t* rows, int64_t n, double* zeta,
                      double* offset) {
    const Stream copy = stream;
    for (int64_t i = 0; i < n; ++i) {
        const Words w = words_at(copy, rows[i] >> 1);
        const uint32_t odd = rows[i] & 1;
        zeta[i] = normal_radius(w[0]) * normal_cosine(w[1], odd);
        offset[i] = unit(odd ? w[3] : w[2]);
    }
}

// The same for neighbouring rows 2 first, 2 first + 1, ...: two of them share a counter.
SGLB_KERNEL void draw_pairs(const Stream& stream, uint64_t first, int64_t n_pairs, double* zeta,
                            double* offset) {
    const Stream copy = stream;
    for (int64_t i = 0; i < n_pairs; ++i) {
        const Words w = words_at(copy, first + static_cast<uint64_t>(i));
        const double radius = normal_radius(w[0]);
        zeta[2 * i] = radius * normal_cosine(w[1], 0);
        zeta[2 * i + 1] = radius * normal_cosine(w[1], 1);
        offset[2 * i] = unit(w[2]);
        offset[2 * i + 1] = unit(w[3]);
    }
}

SGLB_KERNEL void first_words(const Stream& stream, uint64_t first, int64_t n, uint32_t* out) {
    const Stream copy = stream;
    for (int64_t i = 0; i < n; ++i) out[i] = words_at(copy, first + static_cast<uint64_t>(i))[0];
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

// g + noise / sqrt(w) zeta: the mean over the w rows that a row of weight w stands for.
SGLB_KERNEL void perturb(const double* gradient, const double* zeta, const double* weight,
                         int64_t n, double noise, double* value) {
    for (int64_t i = 0; i < n; ++i)
        value[i] = weight[i] > 0.0 ? gradient[i] + noise / std::sqrt(weight[i]) * zeta[i] : 0.0;
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
        uint32_t words[tile];
        for (int64_t at = begin; at < end; at += tile) {
            const int64_t count = std::min(tile, end - at);
            first_words(stream, static_cast<uint64_t>(at), count, words);
            for (int64_t i = 0; i < count; ++i)
                rows[at + i] = static_cast<uint32_t>(
                    stretch_point(words[i], static_cast<uint64_t>(at + i), length));
        }
    });
}

namespace {

// Words of the rows of one tile, all outputs.
class Tile {
  public:
    Tile(const Slopes& slopes, const Sample& sample, const Weights& weights, double sigma,
         const Scales& scales, uint64_t seed, uint32_t step)
        : slopes_(slopes),
          sample_(sample),
          weights_(weights),
          noise_(sigma / std::sqrt(scales.unit)),
          scales_(scales),
          seed_(seed),
          step_(step),
          gradients_(slopes, tile) {
        std::fill_n(weight_, tile, 1.0);
        std::fill_n(mass_, tile, 1.0);
    }

    // rows [n], or null for rows begin .. begin + n; output k goes to packed + k * stride.
    void run(const uint32_t* rows, int64_t begin, int64_t n, int64_t* packed, int64_t stride) {
        if (rows)
            gradients_.gather(sample_, rows, n);
        else
            gradients_.fill(sample_, begin, n);
        for (int64_t i = 0; weights_.weight && i < n; ++i) {
            weight_[i] = weights_.weight[rows ? rows[i] : begin + i] / scales_.unit;
            mass_[i] = weight_[i] > 0.0 ? std::max(1.0, weight_[i] * scales_.weight) : 0.0;
        }
        for (int64_t k = 0; k < slopes_.n_outputs; ++k) {
            const double* value = gradients_.gradient(k);
            if (noise_ > 0.0 || !scales_.fine) {
                const Stream stream{seed_, step_, Role::structure, static_cast<uint32_t>(k)};
                if (rows)
                    draw(stream, rows, n, zeta_, offset_);
                else
                    draw_pairs(stream, static_cast<uint64_t>(begin) / 2, (n + 1) / 2, zeta_,
                               offset_);
                if (weights_.weight)
                    perturb(value, zeta_, weight_, n, noise_, value_);
                else
                    for (int64_t i = 0; i < n; ++i) value_[i] = value[i] + noise_ * zeta_[i];
                value = value_;
            }
            int64_t* to = packed + k * stride;
            if (scales_.fine)
                pack_fine(value, weight_, mass_, n, scales_.gradient, to);
            else
                pack_coarse(value, weight_, mass_, offset_, n, scales_.gradient, to);
        }
    }

  private:
    const Slopes& slopes_;
    const Sample& sample_;
    const Weights& weights_;
    double noise_;
    const Scales& scales_;
    uint64_t seed_;
    uint32_t step_;
    SlopeTile gradients_;
    double zeta_[tile], offset_[tile], value_[tile], weight_[tile], mass_[tile];
};

}  // namespace

void quantise(const Slopes& slopes, const Sample& sample, const Weights& weights,
              const uint32_t* rows, int64_t n, double sigma, Scales scales, uint64_t seed,
              uint32_t step, int64_t* packed, int n_threads) {
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        Tile work(slopes, sample, weights, sigma, scales, seed, step);
        for (int64_t at = begin; at < end; at += tile)
            work.run(rows ? rows + at : nullptr, at, std::min(tile, end - at), packed + at, n);
    });
}

}  // namespace sglb
