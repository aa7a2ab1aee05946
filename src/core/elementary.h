// exp, log and cos with the same bits on every processor.
//
// The C library's versions differ between releases and between the vector and the scalar form of a
// loop. These are straight-line IEEE arithmetic without branches or fused operations, so a compiler
// may evaluate them in vectors of any width and every lane gives the same bits.
// Accuracy: within 2 units in the last place of double over the stated domains.
#pragma once

#include <bit>
#include <cstdint>

// A kernel marked SGLB_KERNEL is compiled for the baseline, AVX2 and AVX-512; the loader picks one.
// Clang compiles the baseline alone: there functions without the clone's instructions, inlined ones
// too, cannot hand it vectors.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(SGLB_BASELINE) && !defined(__clang__)
#define SGLB_CLONES
#define SGLB_KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SGLB_KERNEL
#endif
#define SGLB_INLINE [[gnu::always_inline]] inline

namespace sglb {

// Adding this to |x| < 2^51 leaves round(x) in the low bits of the sum.
inline constexpr double round_magic = 6755399441055744.0;  // 1.5 * 2^52

SGLB_INLINE double minimum(double a, double b) { return a < b ? a : b; }
SGLB_INLINE double maximum(double a, double b) { return a > b ? a : b; }
SGLB_INLINE double absolute(double a) {
    return std::bit_cast<double>(std::bit_cast<uint64_t>(a) & 0x7fffffffffffffffULL);
}

// x = n ln 2 + r with whole n, and the polynomial for e^r; |x| < 2^31.
struct Reduced {
    double shifted, n, r;
    SGLB_INLINE explicit Reduced(double x) {
        shifted = x * 1.4426950408889634074 + round_magic;  // x / ln 2
        n = shifted - round_magic;
        // ln 2 in two pieces: the first has 32 bits, so n * ln2_high is exact.
        r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    }
    // e^r - 1. Taylor series to r^13 / 13!, |r| <= ln(2) / 2 making the remainder less than 1e-17.
    // Added in pairs (Estrin's scheme), which a processor can evaluate side by side.
    SGLB_INLINE double above_one() const {
        const double r2 = r * r;
        const double r4 = r2 * r2;
        const double r8 = r4 * r4;
        const double p23 = r * (1.0 / 6.0) + 1.0 / 2.0;
        const double p45 = r * (1.0 / 120.0) + 1.0 / 24.0;
        const double p67 = r * (1.0 / 5040.0) + 1.0 / 720.0;
        const double p89 = r * (1.0 / 362880.0) + 1.0 / 40320.0;
        const double p1011 = r * (1.0 / 39916800.0) + 1.0 / 3628800.0;
        const double p1213 = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
        const double tail = (p45 * r2 + p23) + r4 * (p89 * r2 + p67) + r8 * (p1213 * r2 + p1011);
        return tail * r2 + r;
    }
    SGLB_INLINE double polynomial() const { return above_one() + 1.0; }
};

// e^x for -708 <= x <= 709, where the result is a normal double.
SGLB_INLINE double exponential_within(double x) {
    const Reduced reduced(x);
    // Multiply by 2^n through the exponent field; the low bits of round_magic are zero.
    const uint64_t k = std::bit_cast<uint64_t>(reduced.shifted);
    return std::bit_cast<double>(std::bit_cast<uint64_t>(reduced.polynomial()) + (k << 52));
}

// e^x; arguments are clamped to the range above.
SGLB_INLINE double exponential(double x) {
    return exponential_within(minimum(maximum(x, -708.0), 709.0));
}

// ln x for positive normal x.
SGLB_INLINE double logarithm(double x) {
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    // Exponent such that the mantissa m lies in [sqrt(1/2), sqrt(2)).
    const uint64_t offset = bits - 0x3fe6a09e667f3bcdULL;
    const uint64_t exponent = offset >> 52;  // 12 bits, two's complement
    const double m = std::bit_cast<double>(bits - (offset & 0xfff0000000000000ULL));
    // To double without an integer conversion: flip the sign bit, place into 2^52, subtract.
    const double e = std::bit_cast<double>((exponent ^ 0x800) | 0x4330000000000000ULL) -
                     (4503599627370496.0 + 2048.0);
    const double f = m - 1.0;
    const double s = f / (m + 1.0);
    const double z = s * s;
    // 2 artanh(s) = 2 s (1 + z/3 + z^2/5 + ...), |s| <= 0.1716; z^11/23 < 1e-18.
    double p = 1.0 / 21.0;
    p = p * z + 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    p = p * z + 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    return e * 6.93147180369123816490e-01 + (e * 1.90821492927058770002e-10 + 2.0 * s * z * p) +
           2.0 * s;
}

// ln(1 + x) for 0 <= x <= 1, to the last digits for small x too: what 1 + x rounds away is added
// again, as it is, since where 1 + x is not nearly 1 that is less than the result's last digit.
SGLB_INLINE double logarithm_1p(double x) {
    const double sum = 1.0 + x;
    return logarithm(sum) + (x - (sum - 1.0));
}

// ln x in single precision for positive normal x, within 2e-7 of 1 or of the result.
SGLB_INLINE float logarithm_single(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t offset = bits - 0x3f3504f3U;  // as above
    const auto e = static_cast<float>(static_cast<int32_t>(offset) >> 23);
    const float m = std::bit_cast<float>(bits - (offset & 0xff800000U));
    const float s = (m - 1.0f) / (m + 1.0f);
    const float z = s * s;
    // z^5 / 11 < 2e-9.
    float p = 2.0f / 9.0f;
    p = p * z + 2.0f / 7.0f;
    p = p * z + 2.0f / 5.0f;
    p = p * z + 2.0f / 3.0f;
    return e * 0.69314718056f + (s * z * p + 2.0f * s);
}

// -cos(2 pi v) in single precision for 0 <= v <= 1/2, within 2e-7.
SGLB_INLINE float minus_cosine_single(float v) {
    const float r = 6.2831853072f * (v - 0.25f);  // sin(r), |r| <= pi / 2
    const float z = r * r;
    // Taylor series of sin to r^11: the remainder is below 6e-8.
    float p = -1.0f / 39916800.0f;
    p = p * z + 1.0f / 362880.0f;
    p = p * z - 1.0f / 5040.0f;
    p = p * z + 1.0f / 120.0f;
    p = p * z - 1.0f / 6.0f;
    return r + r * z * p;
}

// cos(2 pi u) for 0 <= u < 1.
SGLB_INLINE double cosine_turn(double u) {
    const double v = absolute(u - 0.5);                  // cos(2 pi u) = -cos(2 pi v), v in [0, .5]
    const double r = 6.283185307179586477 * (v - 0.25);  // -cos(2 pi v) = sin(r), |r| <= pi / 2
    const double z = r * r;
    // Taylor series of sin to r^23: the remainder is below 1e-20.
    double p = -1.0 / 25852016738884976640000.0;
    p = p * z + 1.0 / 51090942171709440000.0;
    p = p * z - 1.0 / 121645100408832000.0;
    p = p * z + 1.0 / 355687428096000.0;
    p = p * z - 1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return r + r * z * p;
}

// The same functions of any numbers, as IEEE has them for infinity, NaN and results that underflow:
// OUT out [n].
void fill_exponential(const double* values, int64_t n, double* out);
void fill_logarithm(const double* values, int64_t n, double* out);
void fill_logarithm_1p(const double* values, int64_t n, double* out);    // ln(1 + x)
void fill_exponential_m1(const double* values, int64_t n, double* out);  // e^x - 1

}  // namespace sglb
