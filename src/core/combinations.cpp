#include "combinations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "exact_sum.h"
#include "keys.h"
#include "parallel.h"

namespace sglb {
namespace {

// Levels of one combination by row: OUT numbers [n_rows]. Returns how many there are.
int32_t number_rows(const Levels& levels, const Combinations& combinations, int64_t i,
                    int32_t* numbers) {
    const int32_t* members = combinations.members + i * combinations.width;
    uint64_t n_possible = 1;
    int64_t n_members = 0;
    for (; n_members < combinations.width && members[n_members] >= 0; ++n_members)
        n_possible *= static_cast<uint64_t>(levels.n_levels[members[n_members]]);
    Numbering numbering(n_possible);
    for (int64_t row = 0; row < levels.n_rows; ++row) {
        uint64_t key = 0;
        for (int64_t m = 0; m < n_members; ++m)
            key = key * static_cast<uint64_t>(levels.n_levels[members[m]]) +
                  static_cast<uint64_t>(levels.data[members[m] * levels.n_rows + row]);
        numbers[row] = numbering.number(key);
    }
    return numbering.count();
}

struct Gain {
    double gain = 0.0, error = 0.0;
};

// Counts numbers in a unit so small that the largest has all the bits that the sum of n leaves it.
class Counter {
  public:
    Counter(double largest, int64_t n) {
        const int bits = 62 - static_cast<int>(std::bit_width(static_cast<uint64_t>(n)));
        if (!(largest > 0.0)) return;
        const int exponent = std::min(bits - 1 - std::ilogb(largest), 1000);
        scale_ = std::ldexp(1.0, exponent);
        unit_ = std::ldexp(1.0, -exponent);
    }
    int64_t of(double value) const { return static_cast<int64_t>(value * scale_); }
    double value(int64_t sum) const { return static_cast<double>(sum) * unit_; }

  private:
    double scale_ = 1.0, unit_ = 1.0;
};

// What the gains of all combinations share.
struct Explained {
    Explained(const Targets& targets, int64_t n_rows, double ridge)
        : targets(targets), n_rows(n_rows), ridge(ridge) {
        for (int64_t row = 0; row < n_rows; ++row)
            largest_weight = std::max(largest_weight, targets.weight_of(row));
        finite = std::isfinite(largest_weight * largest_weight);
        ExactSum sum;
        for (int64_t k = 0; k < targets.n_targets; ++k) {
            double largest = 0.0;
            for (int64_t row = 0; row < n_rows; ++row) {
                const double value = targets.values[k * n_rows + row];
                const double product = targets.weight_of(row) * value;
                largest = std::max(largest, std::abs(product));
                sum.add(product * value);
            }
            largest_product.push_back(largest);
            const double square = largest * largest;
            finite &= std::isfinite(square * square);
        }
        total = sum.value();
    }

    const Targets& targets;
    int64_t n_rows;
    double ridge;
    double largest_weight = 0.0;
    std::vector<double> largest_product;  // by target
    double total = 0.0;                   // of w g^2
    bool finite = true;
};

Gain gain_of(const int32_t* numbers, int32_t n_numbers, const Explained& explained) {
    const Targets& targets = explained.targets;
    const int64_t n_rows = explained.n_rows;
    if (!explained.finite || !(explained.total > 0.0)) return {};
    struct Mass {
        int64_t count, squares;
    };
    struct Moments {
        int64_t sum, squares, fourths;
    };
    const double heaviest = explained.largest_weight;
    const Counter weights(heaviest, n_rows), squared_weights(heaviest * heaviest, n_rows);
    std::vector<Mass> masses(n_numbers);
    for (int64_t row = 0; row < n_rows; ++row) {
        const double weight = targets.weight_of(row);
        Mass& mass = masses[numbers[row]];
        mass.count += weights.of(weight);
        mass.squares += squared_weights.of(weight * weight);
    }
    ExactSum gain, variance;
    std::vector<double> gains(n_numbers), variances(n_numbers);
    for (int64_t k = 0; k < targets.n_targets; ++k) {
        const double largest = explained.largest_product[k], largest_square = largest * largest;
        const Counter sums(largest, n_rows), squares(largest_square, n_rows);
        const Counter fourths(largest_square * largest_square, n_rows);
        std::vector<Moments> moments(n_numbers);
        for (int64_t row = 0; row < n_rows; ++row) {
            const double product = targets.weight_of(row) * targets.values[k * n_rows + row];
            const double square = product * product;
            Moments& moment = moments[numbers[row]];
            moment.sum += sums.of(product);
            moment.squares += squares.of(square);
            moment.fourths += fourths.of(square * square);
        }
        for (size_t i = 0; i < moments.size(); ++i) {
            const double count = weights.value(masses[i].count);
            const double squared = squared_weights.value(masses[i].squares);
            // Rows of next to no weight count as none.
            const double divisor = count - (count > 0.0 ? squared / count : 0.0) + explained.ridge;
            const double sum = sums.value(moments[i].sum),
                         square = squares.value(moments[i].squares);
            gains[i] = (sum * sum - square) / divisor;
            variances[i] =
                2.0 * (square * square - fourths.value(moments[i].fourths)) / (divisor * divisor);
        }
        gain.add(gains.data(), nullptr, n_numbers);
        variance.add(variances.data(), nullptr, n_numbers);
    }
    // A level of one row has no variance; rounding may leave it a trifle below zero.
    return {gain.value() / explained.total,
            std::sqrt(std::max(variance.value(), 0.0)) / explained.total};
}

}  // namespace

void combine(const Levels& levels, const Combinations& combinations, int32_t* numbers,
             int64_t* n_numbers, int n_threads) {
    parallel_for(combinations.n, n_threads, [&](int64_t i) {
        n_numbers[i] = number_rows(levels, combinations, i, numbers + i * levels.n_rows);
    });
}

void combination_gains(const Levels& levels, const Combinations& combinations,
                       const Targets& targets, double ridge, double* gains, double* errors,
                       int n_threads) {
    const Explained explained(targets, levels.n_rows, ridge);
    parallel_for(combinations.n, n_threads, [&](int64_t i) {
        std::vector<int32_t> numbers(levels.n_rows);
        const int32_t n_numbers = number_rows(levels, combinations, i, numbers.data());
        const Gain gain = gain_of(numbers.data(), n_numbers, explained);
        gains[i] = gain.gain;
        errors[i] = gain.error;
    });
}

}  // namespace sglb
