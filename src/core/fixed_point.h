// Sums by group as integers, for more groups than there is room for exact sums.
//
// All summands are counted in one unit, a power of two 2^95 times smaller than the largest of them
// may be; what is smaller than the unit is cut off. So the sum of values that differ by less than a
// factor of 2^42 is exact, of others it is closer than the rounding of a double to the sum of their
// absolute values, and it never depends on their order. Shards need the largest value of all rows
// before they add, as gradients do (quantise.h).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace sglb {

__extension__ typedef __int128 Wide;

class FixedPoint {
  public:
    // For up to 2^31 numbers no larger than `largest`, which is finite.
    explicit FixedPoint(double largest) : largest_exponent_(exponent_of(largest)) {
        const auto exponent = static_cast<int>(largest_exponent_ - 1075 - spare_bits);
        first_half_ = std::ldexp(1.0, exponent / 2);
        second_half_ = std::ldexp(1.0, exponent - exponent / 2);
    }

    Wide of(double value) const {
        const uint64_t bits = std::bit_cast<uint64_t>(value);
        uint64_t mantissa = bits & 0xfffffffffffff;
        if (bits >> 52 & 0x7ff) mantissa |= uint64_t{1} << 52;
        const int64_t above = exponent_of(value) - largest_exponent_;
        const int64_t shift = (above < 0 ? above : 0) + spare_bits;
        const Wide size = shift >= 0    ? static_cast<Wide>(mantissa) << shift
                          : shift > -64 ? static_cast<Wide>(mantissa >> -shift)
                                        : 0;
        return bits >> 63 ? -size : size;
    }

    // The nearest double.
    double value(Wide sum) const { return static_cast<double>(sum) * first_half_ * second_half_; }

  private:
    // Below the last bit of the largest value: 53 + 42 bits, 31 for the number of summands, a sign.
    static constexpr int64_t spare_bits = 42;

    // The exponent field, where 0 means what 1 does.
    static int64_t exponent_of(double value) {
        const auto field = static_cast<int64_t>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff);
        return field ? field : 1;
    }

    int64_t largest_exponent_;
    double first_half_, second_half_;  // the unit, which itself may be no double, is their product
};

// Products of n values and weights, either of which may be null for ones, made ready to be summed.
class Summands {
  public:
    Summands(const double* values, const double* weight, int64_t n, int n_threads);

    // Sums by group 0..n_groups - 1: OUT sums [n_groups]. NaN and infinity as IEEE arithmetic has
    // them in sums of such; other groups are summed exactly beside them.
    void by_group(const int32_t* groups, int64_t n_groups, double* sums) const;

  private:
    double product(int64_t row) const {
        return (weight_ ? weight_[row] : 1.0) * (values_ ? values_[row] : 1.0);
    }

    const double* values_;
    const double* weight_;
    double largest_ = 0.0;
    int64_t n_;
    bool all_finite_ = true;
    std::vector<Wide> numbers_;  // [n], 0 of what is not finite; empty where all are 1
};

// Sums of the first 1, 2, ... of n values that are not negative: OUT sums [n].
void running_totals(const double* values, int64_t n, double* sums);

}  // namespace sglb
