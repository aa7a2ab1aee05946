#include "exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "elementary.h"

namespace sglb {
namespace {

constexpr int64_t limb_bits = 32;
constexpr uint64_t limb_mask = 0xffffffff;
// A summand changes a limb by less than 2^32, and a limb has 63 bits.
constexpr int64_t most_pending = int64_t{1} << 30;

// Rows whose sum is taken in vectors: 8 lanes of 128 summands.
constexpr int64_t block = 1024;
constexpr int64_t lanes = 8;

// Rump's extraction of the leading bits. With sigma = 2^m a power of two and |x| <= 2^(m - 8),
// q = (sigma + x) - sigma is x rounded to a multiple of 2^(m - 53), and x - q, at most that unit,
// is exact. 128 such q add up to less than 2^53 units, so that doubles hold their sum exactly. The
// rest is split once more with a sigma 2^45 times smaller, the unit times 2^8. Two splits see 90
// bits below the largest value: all of values up to 2^37 times smaller. What others have left is
// another block.
constexpr int64_t head_room = 8;
constexpr double next_sigma = 0x1p-45;
// Exponent fields of the largest value for which both sigmas are normal doubles.
constexpr int64_t least_exponent = 45 + 1, most_exponent = 2046 - head_room - 1;

// Eight lanes, which the compiler makes one, two or four registers of.
typedef double Doubles __attribute__((vector_size(8 * lanes)));
typedef int64_t Integers __attribute__((vector_size(8 * lanes)));
template <class Lanes>
struct __attribute__((packed, aligned(8), may_alias)) Unaligned {
    Lanes lanes;
};
template <class Lanes>
SGLB_INLINE Lanes load(const double* values) {
    return reinterpret_cast<const Unaligned<Lanes>*>(values)->lanes;
}

constexpr int64_t without_sign = 0x7fffffffffffffff;

// Bits of the largest absolute value of n, a multiple of eight; infinity and then NaN are largest.
SGLB_KERNEL int64_t largest_bits(const double* values, int64_t n) {
    Integers largest = {};
    for (int64_t at = 0; at < n; at += lanes) {
        const Integers bits = load<Integers>(values + at) & without_sign;
        largest = bits > largest ? bits : largest;
    }
    int64_t result = 0;
    for (int64_t i = 0; i < lanes; ++i) result = std::max<int64_t>(result, largest[i]);
    return result;
}

SGLB_INLINE Doubles split(Doubles& value, double sigma) {
    const Doubles head = (sigma + value) - sigma;
    value -= head;
    return head;
}

// Of n values, a multiple of eight: OUT the sums of the first and the second split, rest [n].
// Returns whether there is any rest.
SGLB_KERNEL bool split_sums(const double* values, int64_t n, double sigma, double* sums,
                            double* rest) {
    Doubles first = {}, second = {};
    Integers any = {};
    for (int64_t at = 0; at < n; at += lanes) {
        Doubles value = load<Doubles>(values + at);
        first += split(value, sigma);
        second += split(value, sigma * next_sigma);
        reinterpret_cast<Unaligned<Doubles>*>(rest + at)->lanes = value;
        any |= reinterpret_cast<Integers>(value) & without_sign;
    }
    int64_t bits = 0;
    for (int64_t i = 0; i < lanes; ++i) {
        sums[i] = first[i];
        sums[lanes + i] = second[i];
        bits |= any[i];
    }
    return bits;
}

SGLB_KERNEL void multiply(const double* values, const double* weight, int64_t n, double* products) {
    for (int64_t i = 0; i < n; ++i) products[i] = weight[i] * values[i];
}

}  // namespace

ExactSum::ExactSum(const State& state) : n_pending_(1) {
    std::copy_n(state.begin(), n_limbs, limbs_.begin());
    std::copy_n(state.begin() + n_limbs, 3, specials_.begin());
}

ExactSum::State ExactSum::state() const {
    ExactSum sum = *this;
    sum.carry();
    State state;
    std::copy(sum.limbs_.begin(), sum.limbs_.end(), state.begin());
    std::copy(specials_.begin(), specials_.end(), state.begin() + n_limbs);
    return state;
}

void ExactSum::carry() {
    for (size_t i = 0; i + 1 < limbs_.size(); ++i) {
        const int64_t over = limbs_[i] >> limb_bits;  // rounded down: what is left is never < 0
        limbs_[i] &= static_cast<int64_t>(limb_mask);
        limbs_[i + 1] += over;
    }
    n_pending_ = 1;
}

void ExactSum::add(double value) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const uint64_t exponent = bits >> 52 & 0x7ff;
    if (exponent == 0x7ff) {
        ++specials_[std::isnan(value) ? 0 : value > 0.0 ? 1 : 2];
        return;
    }
    if (n_pending_ == most_pending) carry();
    ++n_pending_;
    uint64_t mantissa = bits & 0xfffffffffffff;
    if (exponent) mantissa |= uint64_t{1} << 52;
    const uint64_t bit = exponent ? exponent - 1 : 0;  // of the mantissa's last bit
    const uint64_t shift = bit % limb_bits;
    const uint64_t above = mantissa >> (limb_bits - shift);
    const int64_t parts[3] = {static_cast<int64_t>(mantissa << shift & limb_mask),
                              static_cast<int64_t>(above & limb_mask),
                              static_cast<int64_t>(above >> limb_bits)};
    int64_t* limb = limbs_.data() + bit / limb_bits;
    const int64_t sign = -static_cast<int64_t>(bits >> 63);  // 0 or -1: x ^ -1 = -x - 1
    for (int i = 0; i < 3; ++i) limb[i] += (parts[i] ^ sign) - sign;
}

void ExactSum::add_block(const double* values, int64_t n) {
    double rest[block], sums[2 * lanes];
    const int64_t whole = n / lanes * lanes;
    for (int64_t i = whole; i < n; ++i) add(values[i]);
    for (bool any = whole > 0; any; values = rest) {
        const int64_t largest = largest_bits(values, whole), exponent = largest >> 52;
        if (!largest) return;
        if (exponent < least_exponent || exponent > most_exponent) {
            for (int64_t i = 0; i < whole; ++i) add(values[i]);
            return;
        }
        const double sigma = std::bit_cast<double>((exponent + 1 + head_room) << 52);
        any = split_sums(values, whole, sigma, sums, rest);
        for (const double sum : sums) add(sum);
    }
}

void ExactSum::add(const double* values, const double* weight, int64_t n) {
    double products[block];
    for (int64_t at = 0; at < n; at += block) {
        const int64_t count = std::min(block, n - at);
        if (weight) multiply(values + at, weight + at, count, products);
        add_block(weight ? products : values + at, count);
    }
}

void ExactSum::merge(const ExactSum& other) {
    ExactSum more = other;
    more.carry();
    carry();
    for (size_t i = 0; i < limbs_.size(); ++i) limbs_[i] += more.limbs_[i];
    for (size_t i = 0; i < specials_.size(); ++i) specials_[i] += more.specials_[i];
    n_pending_ = 2;
}

double ExactSum::value() const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (specials_[0] || (specials_[1] && specials_[2]))
        return std::numeric_limits<double>::quiet_NaN();
    if (specials_[1]) return infinity;
    if (specials_[2]) return -infinity;
    ExactSum sum = *this;
    sum.carry();
    auto& limbs = sum.limbs_;
    const bool negative = limbs.back() < 0;
    if (negative) {
        for (int64_t& limb : limbs) limb = -limb;
        sum.carry();
    }
    int64_t top = n_limbs - 1;
    while (top > 0 && !limbs[top]) --top;
    const auto limb = [&](int64_t i) { return i < n_limbs ? static_cast<uint64_t>(limbs[i]) : 0; };
    // 54 bits from the highest one on, the last of which decides about rounding.
    const int64_t highest = limb_bits * top + std::bit_width(limb(top)) - 1;
    const int64_t last = std::max<int64_t>(highest - 53, 0);
    const int64_t first_limb = last / limb_bits, shift = last % limb_bits;
    uint64_t bits = (limb(first_limb) | limb(first_limb + 1) << limb_bits) >> shift;
    if (shift) bits |= limb(first_limb + 2) << (64 - shift);
    int64_t exponent = last - 1074;
    if (highest > 52) {
        bool sticky = limb(first_limb) & ((uint64_t{1} << shift) - 1);
        for (int64_t i = 0; i < first_limb; ++i) sticky |= limb(i) != 0;
        const bool is_half = bits & 1;
        bits >>= 1;
        bits += is_half && (sticky || (bits & 1));
        ++exponent;
    }
    const double size = std::ldexp(static_cast<double>(bits), static_cast<int>(exponent));
    return negative ? -size : size;
}

}  // namespace sglb
