#include "elementary.h"

#include <limits>

namespace sglb {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// 2^n for whole n with -1022 <= n <= 1023.
SGLB_INLINE double power_of_two(double n) {
    return std::bit_cast<double>((std::bit_cast<uint64_t>(n + round_magic) + 1023) << 52);
}

// e^x for any x, with the bits of exponential() where that does not clamp: the same polynomial
// times 2^n. In two factors, each a normal double, the product underflows gradually and may
// overflow.
SGLB_INLINE double exponential_anywhere(double x) {
    const double clamped = minimum(maximum(x, -746.0), 710.0);
    const Reduced reduced(clamped);
    const double half = (reduced.n * 0.5 + round_magic) - round_magic;
    const double result =
        reduced.polynomial() * power_of_two(half) * power_of_two(reduced.n - half);
    return x == x ? result : x;
}

// ln x for any x: minus infinity at 0, NaN below.
SGLB_INLINE double logarithm_anywhere(double x) {
    const bool is_tiny = x < std::numeric_limits<double>::min();
    const double normal = is_tiny ? x * 0x1p54 : x;
    const double inside = logarithm(normal) - (is_tiny ? 54.0 * 0.69314718055994530942 : 0.0);
    const double outside = x == 0.0 ? -infinity : x == infinity ? x : not_a_number;
    return x > 0.0 && x < infinity ? inside : outside;
}

// ln(1 + x): what 1 + x rounds away is added again, in units of 1 + x.
SGLB_INLINE double logarithm_1p_anywhere(double x) {
    const double sum = 1.0 + x;
    const double lost = (x - (sum - 1.0)) / sum;
    const double result = logarithm_anywhere(sum);
    return x > -1.0 && x < infinity ? result + lost : result;
}

// e^x - 1 = 2^n (e^r - 1) + (2^n - 1), exact for small x, where n is 0.
SGLB_INLINE double exponential_m1_anywhere(double x) {
    const Reduced reduced(minimum(maximum(x, -60.0), 700.0));
    const double scale = power_of_two(reduced.n);
    const double result = scale * reduced.above_one() + (scale - 1.0);
    return x > 700.0 ? exponential_anywhere(x) : x == x ? result : x;
}

}  // namespace

#define SGLB_FUNCTION(name, formula)                                      \
    SGLB_KERNEL void name(const double* values, int64_t n, double* out) { \
        for (int64_t i = 0; i < n; ++i) out[i] = formula(values[i]);      \
    }
SGLB_FUNCTION(fill_exponential, exponential_anywhere)
SGLB_FUNCTION(fill_logarithm, logarithm_anywhere)
SGLB_FUNCTION(fill_logarithm_1p, logarithm_1p_anywhere)
SGLB_FUNCTION(fill_exponential_m1, exponential_m1_anywhere)
#undef SGLB_FUNCTION

}  // namespace sglb
