#include "quantise.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "noise.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t tile = 256;
// More than 20 bits a row would add nothing that the scores could show.
constexpr double most = 1048576.0;

// zeta_i and the rounding offset u_i in [0, 1) of the rows of one tile: row r has normal number r,
// and word 2 or 3 of that normal's counter.
// These are its three words, from which `draw` makes the numbers.
struct Drawn {
    uint32_t radius[tile], angle[tile], rest[tile];
};

SGLB_KERNEL void draw(const Drawn& words, int64_t n, float* zeta, float* offset) {
    for (int64_t i = 0; i < n; ++i) {
        zeta[i] = normal_radius_single(words.radius[i]) * normal_cosine_single(words.angle[i], 0);
        offset[i] = unit_single(words.rest[i]);
    }
}

void draw_each(const Stream& stream, const uint32_t* numbers, int64_t n, float* zeta,
               float* offset) {
    Drawn drawn;
    uint32_t counters[tile], odd[tile];
    for (int64_t i = 0; i < n; ++i) counters[i] = numbers[i] >> 1;
    gather_words(stream, counters, n, {drawn.radius, drawn.angle, drawn.rest, odd});
    for (int64_t i = 0; i < n; ++i) {
        drawn.angle[i] -= numbers[i] << 31 >> 1;
        drawn.rest[i] = numbers[i] & 1 ? odd[i] : drawn.rest[i];
    }
    draw(drawn, n, zeta, offset);
}

// The same for neighbouring rows 2 first, 2 first + 1, ...: two of them share a counter.
SGLB_KERNEL void draw_two(const uint32_t (&words)[4][tile / 2], int64_t n_pairs, float* zeta,
                          float* offset) {
    for (int64_t i = 0; i < n_pairs; ++i) {
        const float radius = normal_radius_single(words[0][i]);
        zeta[2 * i] = radius * normal_cosine_single(words[1][i], 0);
        zeta[2 * i + 1] = radius * normal_cosine_single(words[1][i], 1);
        offset[2 * i] = unit_single(words[2][i]);
        offset[2 * i + 1] = unit_single(words[3][i]);
    }
}

void draw_pairs(const Stream& stream, uint32_t first, int64_t n_pairs, float* zeta, float* offset) {
    uint32_t counters[tile / 2], words[4][tile / 2];
    std::iota(counters, counters + n_pairs, first);
    gather_words(stream, counters, n_pairs, {words[0], words[1], words[2], words[3]});
    draw_two(words, n_pairs, zeta, offset);
}

// |x| < 2^51 rounded to an integer; floor(x) by rounding x - 1/2 differs only
// for ties, where the random offset makes either neighbour right.
SGLB_INLINE uint64_t to_integer(double x) {
    return std::bit_cast<uint64_t>(x + round_magic) - std::bit_cast<uint64_t>(round_magic);
}

// value[i] is the noisy gradient of a row of unit weight, weight[i] its weight in units times its
// inverse probability, mass[i] its scaled mass. Whole weights multiply a rounded gradient, as
// repetition would.
SGLB_KERNEL void pack_fine(const double* value, const double* weight, const double* mass, int64_t n,
                           double scale, int64_t* packed) {
    for (int64_t i = 0; i < n; ++i) {
        const double rounded = (value[i] * scale + round_magic) - round_magic;
        packed[i] =
            static_cast<int64_t>((to_integer(weight[i] * rounded) << 32) + to_integer(mass[i]));
    }
}

SGLB_KERNEL void pack_coarse(const double* value, const double* weight, const double* mass,
                             const float* offset, int64_t n, double scale, int64_t* packed) {
    for (int64_t i = 0; i < n; ++i) {
        const double centred = static_cast<double>(offset[i]) - 0.5;
        const uint64_t q = to_integer(weight[i] * value[i] * scale + centred);
        packed[i] = static_cast<int64_t>((q << 32) + to_integer(mass[i]));
    }
}

SGLB_KERNEL void masses(const double* weight, int64_t n, double scale, double* mass) {
    for (int64_t i = 0; i < n; ++i)
        mass[i] = weight[i] > 0.0 ? maximum(1.0, weight[i] * scale) : 0.0;
}

// The same times second derivatives; fine ones are rounded before their weight multiplies them.
SGLB_KERNEL void newton_masses(const double* weight, const double* hessian, int64_t n, double scale,
                               bool fine, double* mass) {
    for (int64_t i = 0; i < n; ++i) {
        const double curvature = maximum(0.0, hessian[i]) * scale;
        const double rounded = maximum(1.0, (curvature + round_magic) - round_magic);
        mass[i] = weight[i] > 0.0 ? maximum(1.0, weight[i] * (fine ? rounded : curvature)) : 0.0;
    }
}

// g + noise / sqrt(w) zeta: the mean over the w rows that a row of weight w stands for.
SGLB_KERNEL void perturb(const double* gradient, const float* zeta, const double* weight, int64_t n,
                         double noise, double* value) {
    for (int64_t i = 0; i < n; ++i) {
        const double scaled = noise / std::sqrt(weight[i]) * static_cast<double>(zeta[i]);
        value[i] = weight[i] > 0.0 ? gradient[i] + scaled : 0.0;
    }
}

// The same where all weights are 1.
SGLB_KERNEL void perturb(const double* gradient, const float* zeta, int64_t n, double noise,
                         double* value) {
    for (int64_t i = 0; i < n; ++i) value[i] = gradient[i] + noise * static_cast<double>(zeta[i]);
}

// The largest power of two that is at most x.
double power_of_two(double x) {
    return x > 0.0 ? std::ldexp(1.0, std::min(1000, std::ilogb(x))) : 0.0;
}

}  // namespace

Scales quantise_scales(const QuantiseInput& in) {
    const auto n = static_cast<double>(std::max<int64_t>(in.rows.n_in_all, 1));
    const double unit = in.weights.weight ? in.weights.unit : 1.0;
    const double heaviest = in.weights.weight ? in.weights.largest : 1.0;
    const double total = in.weights.weight ? in.weights.total : n;
    const double curvature = in.newton ? in.bounds.hessian : 1.0;
    // Rounding may add one per row and, where fine, half a unit of weight: W < 2^12 there.
    const double room = 2147483647.0 - n - 4096.0;
    const double noise = in.noise / std::sqrt(unit) * largest_normal;
    if (in.rows.inverse_probability) {
        // A row that is not sure to be drawn has its inverse probability * sqrt((w g)^2 + w s^2 +
        // (w floor)^2) = mu, s being the noise of weight 1. That bounds each part; a row that is
        // sure has 1.
        const double s = in.noise / std::sqrt(unit);
        const double least =
            std::sqrt(in.rows.scale.floor * in.rows.scale.floor + s * s / heaviest);
        const double noise_share = in.weights.weight ? 1.0 : s > 0.0 ? s / least : 0.0;
        const double row =
            std::max(heaviest * in.bounds.gradient, in.rows.scale.mu) +
            std::max(std::sqrt(heaviest) * s, noise_share * in.rows.scale.mu) * largest_normal;
        const double mass = curvature * std::max(heaviest, in.rows.scale.mu / least);
        return {row > 0.0 ? power_of_two(std::min(most / row, room / (n * row))) : 0.0,
                mass > 0.0 ? power_of_two(std::min(most / mass, room / (n * mass))) : 0.0, unit,
                false};
    }
    // sum |w g + noise sqrt(w)| <= W g + noise sqrt(n W), in units of weight.
    const double sum = total * in.bounds.gradient + noise * std::sqrt(n * total);
    const double row = in.bounds.gradient + noise;
    const double fine_scale = row > 0.0 ? power_of_two(most / row) : 0.0;
    const double scale = sum > 0.0 ? std::min(fine_scale, power_of_two(room / sum)) : 0.0;
    double mass_scale = 1.0;
    if (in.newton || in.weights.weight) {
        const double largest = in.newton ? curvature : heaviest;
        mass_scale = curvature > 0.0 ? std::min(power_of_two(room / (total * curvature)),
                                                power_of_two(most / largest))
                                     : 0.0;
    }
    return {scale, mass_scale, unit, scale == fine_scale};
}

namespace {

// Words of the rows of one tile.
class Tile {
  public:
    Tile(const QuantiseInput& input, const Scales& scales)
        : in_(input),
          scales_(scales),
          noise_(input.noise / std::sqrt(scales.unit)),
          gradients_(input.slopes, tile) {
        std::fill_n(weight_, tile, 1.0);
        std::fill_n(counted_, tile, 1.0);
        std::fill_n(mass_, tile, 1.0);
    }

    // Places begin .. begin + n of the structure rows; wanted output j goes to packed + j * stride.
    void run(int64_t begin, int64_t n, int64_t* packed, int64_t stride) {
        const uint32_t* rows = in_.rows.rows ? in_.rows.rows + begin : nullptr;
        if (rows)
            gradients_.gather(in_.subsample, rows, n);
        else
            gradients_.fill(in_.subsample, begin, n);
        weigh(rows, begin, n);
        const int64_t begin_number = in_.slopes.numbers.of(begin);
        if (rows || begin_number % 2)
            for (int64_t i = 0; i < n; ++i)
                numbers_[i] =
                    static_cast<uint32_t>(in_.slopes.numbers.of(rows ? rows[i] : begin + i));
        for (int64_t j = 0; j < in_.n_words(); ++j) {
            const int64_t k = in_.outputs.empty() ? j : in_.outputs[j];
            const double* value = gradients_.gradient(k);
            if (noise_ > 0.0 || !scales_.fine) {
                const Stream stream{in_.seed, in_.step, Role::structure, static_cast<uint32_t>(k)};
                if (rows || begin_number % 2)
                    draw_each(stream, numbers_, n, zeta_, offset_);
                else
                    draw_pairs(stream, static_cast<uint32_t>(begin_number / 2), (n + 1) / 2, zeta_,
                               offset_);
                if (in_.weights.weight)
                    perturb(value, zeta_, weight_, n, noise_, value_);
                else
                    perturb(value, zeta_, n, noise_, value_);
                value = value_;
            }
            if (in_.newton)
                newton_masses(counted_, gradients_.hessian(k), n, scales_.mass, scales_.fine,
                              mass_);
            int64_t* to = packed + j * stride;
            if (scales_.fine)
                pack_fine(value, counted_, mass_, n, scales_.gradient, to);
            else
                pack_coarse(value, counted_, mass_, offset_, n, scales_.gradient, to);
        }
    }

  private:
    void weigh(const uint32_t* rows, int64_t begin, int64_t n) {
        if (in_.weights.weight) {
            for (int64_t i = 0; i < n; ++i)
                weight_[i] = in_.weights.weight[rows ? rows[i] : begin + i] / scales_.unit;
            std::copy_n(weight_, n, counted_);
        }
        if (in_.rows.inverse_probability)
            for (int64_t i = 0; i < n; ++i)
                counted_[i] = weight_[i] * in_.rows.inverse_probability[begin + i];
        if (!in_.newton && (in_.weights.weight || in_.rows.inverse_probability))
            masses(counted_, n, scales_.mass, mass_);
    }

    const QuantiseInput& in_;
    const Scales& scales_;
    double noise_;
    SlopeTile gradients_;
    uint32_t numbers_[tile];  // of the rows in the whole table
    float zeta_[tile], offset_[tile];
    double value_[tile], weight_[tile], counted_[tile], mass_[tile];
};

}  // namespace

void quantise(const QuantiseInput& input, const Scales& scales, int64_t* packed, int n_threads) {
    parallel_rows(input.rows.n, n_threads, [&](int64_t begin, int64_t end) {
        Tile work(input, scales);
        for (int64_t at = begin; at < end; at += tile)
            work.run(at, std::min(tile, end - at), packed + at, input.rows.n);
    });
}

}  // namespace sglb
