// Sums of doubles that do not depend on the order of the summands.
//
// An ExactSum holds the sum of everything that was added as one integer, wide enough for any finite
// double, and rounds it to the nearest double (ties to even) when it is asked for its value. So any
// order, and any cut of the rows into shards, whose sums are merged, give the same bits.
#pragma once

#include <array>
#include <cstdint>

namespace sglb {

class ExactSum {
  public:
    // Limb i counts multiples of 2^(32 i - 1074), the smallest double: 2,098 bits for the range of
    // doubles, the others for 2^63 summands and a sign.
    static constexpr int64_t n_limbs = 68;
    // Limbs after a carry, then how often NaN, infinity and minus infinity were added.
    using State = std::array<int64_t, n_limbs + 3>;

    ExactSum() = default;
    explicit ExactSum(const State& state);
    State state() const;

    void add(double value);
    // The sum of values [n], or of the rounded products weight[i] * values[i].
    void add(const double* values, const double* weight, int64_t n);
    void merge(const ExactSum& other);

    // 0 without summands; infinity and NaN as IEEE arithmetic has them in sums of such. A sum of
    // finite numbers is infinite only where it is itself beyond the range of doubles.
    double value() const;

  private:
    void add_block(const double* values, int64_t n);
    void carry();

    std::array<int64_t, n_limbs> limbs_{};
    std::array<int64_t, 3> specials_{};  // NaN, infinity, minus infinity
    int64_t n_pending_ = 0;              // summands that the limbs hold without a carry
};

}  // namespace sglb
