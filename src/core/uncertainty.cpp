#include "uncertainty.h"

#include <algorithm>
#include <bit>

#include "elementary.h"

namespace sglb {
namespace {

constexpr double smallest = 2.2250738585072014e-308;  // logarithm() wants normal numbers

// One state of two classes, in three loops: in one, a row's operations would form a chain longer
// than a processor looks ahead.
//
// With t = |z / width| and -t = n ln 2 + r, the exponential is a quotient,
//
//     e^-t = 2^n (b + r) / (b - r),   b = r coth(r / 2),
//
// so that the division which the probabilities need serves it, too: the rarer class has
// 2^n (b + r) / (b - r + 2^n (b + r)). ln 2 is one number here, not two as in exponential(): r is
// off by about t 2^-53 and a probability by that share of it, as if z had another last digit.
struct Logits {
    double bits;     // of a score of 1, 1 / (width ln 2)
    double longest;  // |score| that is told from longer ones: up to there 2^n is a normal double

    explicit Logits(double width) : bits(1.4426950408889634074 / width), longest(708.0 * width) {}
};

SGLB_KERNEL void reduce(Logits logits, int64_t n, const double* __restrict z,
                        double* __restrict rest, double* __restrict exponent) {
    for (int64_t i = 0; i < n; ++i) {
        const double bits = minimum(absolute(z[i]), logits.longest) * logits.bits;
        exponent[i] = round_magic - bits;  // n in its low bits
        rest[i] = ((exponent[i] - round_magic) + bits) * -0.69314718055994530942;
    }
}

// b - r in place of the rest, 2^n (b + r) in place of the exponent. The coefficients interpolate
// b(r^2) at Chebyshev's points of |r| <= ln(2) / 2; the quotient is within 2e-18.
SGLB_KERNEL void parts_of_exponential(int64_t n, double* __restrict rest,
                                      double* __restrict exponent) {
    for (int64_t i = 0; i < n; ++i) {
        const double r = rest[i];
        const double r2 = r * r;
        const double r4 = r2 * r2;
        const double p01 = r2 * 0.1666666666666666 + 2.0;
        const double p23 = r2 * 6.613756471622828e-05 - 0.0027777777777564404;
        const double p45 = r2 * 4.1437662804024295e-08 - 1.6534060033836456e-06;
        const double b = p01 + r4 * (p23 + r4 * p45);
        const uint64_t scale = std::bit_cast<uint64_t>(exponent[i]) << 52;
        rest[i] = b - r;
        exponent[i] = std::bit_cast<double>(std::bit_cast<uint64_t>(b + r) + scale);
    }
}

// Sums over the states of two classes, [tile] each.
struct TwoClassSums {
    double *first, *second;      // probabilities
    double *distance, *product;  // of the rarer class times its distance; highest probabilities
    const double* entropy;       // minus the logarithm of earlier products
};

// The likelier class has the rest to 1, exactly 1 where the other is too rare to be seen: such rows
// have no entropy but the other's.
SGLB_KERNEL void add_logits(Logits logits, int64_t n, const double* __restrict z,
                            const double* __restrict likely, const double* __restrict unlikely,
                            const TwoClassSums& sums) {
    double* __restrict first = sums.first;
    double* __restrict second = sums.second;
    double* __restrict distance = sums.distance;
    double* __restrict product = sums.product;
    for (int64_t i = 0; i < n; ++i) {
        const double low = unlikely[i] / (likely[i] + unlikely[i]);
        const double high = 1.0 - low;
        const bool positive = z[i] >= 0.0;
        first[i] += positive ? low : high;
        second[i] += positive ? high : low;
        distance[i] += low * minimum(absolute(z[i]), logits.longest);
        product[i] *= high;
    }
}

SGLB_KERNEL void add_softmax(int64_t n_classes, int64_t n, double* scores, double* sums,
                             double* __restrict distance, double* __restrict product) {
    double highest[tile];
    double total[tile];
    double weighted[tile];
    for (int64_t i = 0; i < n; ++i) highest[i] = scores[i];
    for (int64_t k = 1; k < n_classes; ++k)
        for (int64_t i = 0; i < n; ++i) highest[i] = maximum(highest[i], scores[k * tile + i]);
    for (int64_t i = 0; i < n; ++i) total[i] = weighted[i] = 0.0;
    for (int64_t k = 0; k < n_classes; ++k) {
        double* z = scores + k * tile;
        for (int64_t i = 0; i < n; ++i) {
            const double t = minimum(highest[i] - z[i], 708.0);
            z[i] = exponential(-t);
            total[i] += z[i];
            weighted[i] += z[i] * t;
        }
    }
    for (int64_t i = 0; i < n; ++i) {
        const double inverse = total[i] = 1.0 / total[i];
        distance[i] += weighted[i] * inverse;
        product[i] *= inverse;
    }
    for (int64_t k = 0; k < n_classes; ++k)
        for (int64_t i = 0; i < n; ++i) sums[k * tile + i] += scores[k * tile + i] * total[i];
}

SGLB_KERNEL void add_logarithms(int64_t n, double* __restrict product, double* __restrict entropy) {
    for (int64_t i = 0; i < n; ++i) {
        entropy[i] -= logarithm(product[i]);
        product[i] = 1.0;
    }
}

// Sums over the states to means, and what they add to the entropy of the mean.
SGLB_KERNEL void add_entropy(double n_states, int64_t n, double* __restrict sums,
                             double* __restrict total) {
    for (int64_t i = 0; i < n; ++i) {
        sums[i] /= n_states;
        total[i] -= sums[i] * logarithm(maximum(sums[i], smallest));
    }
}

// Jensen's inequality makes knowledge >= 0; rounding may not know.
SGLB_KERNEL void split_entropy(double n_states, int64_t n, const double* __restrict entropy,
                               const double* __restrict distance, const Entropies::Out& out) {
    const double* __restrict total = out.total;
    double* __restrict data = out.data;
    double* __restrict knowledge = out.knowledge;
    for (int64_t i = 0; i < n; ++i) {
        data[i] = minimum((entropy[i] + distance[i]) / n_states, total[i]);
        knowledge[i] = total[i] - data[i];
    }
}

// All that is left to do for two classes.
SGLB_KERNEL void finish_two(double inverse_width, double n_states, int64_t n,
                            const TwoClassSums& sums, const Entropies::Out& out) {
    const double* __restrict first = sums.first;
    const double* __restrict second = sums.second;
    const double* __restrict product = sums.product;
    const double* __restrict entropy = sums.entropy;
    const double* __restrict distance = sums.distance;
    double* __restrict mean = out.mean;
    double* __restrict knowledge = out.knowledge;
    double* __restrict data = out.data;
    double* __restrict total = out.total;
    for (int64_t i = 0; i < n; ++i) {
        const double p = first[i] / n_states;
        const double q = second[i] / n_states;
        const double of_mean =
            -(p * logarithm(maximum(p, smallest))) - q * logarithm(maximum(q, smallest));
        const double mean_of =
            ((entropy[i] - logarithm(product[i])) + distance[i] * inverse_width) / n_states;
        mean[2 * i] = p;
        mean[2 * i + 1] = q;
        total[i] = of_mean;
        data[i] = minimum(mean_of, of_mean);
        knowledge[i] = of_mean - data[i];
    }
}

SGLB_KERNEL void add_welford(double n_states, int64_t n, const double* __restrict x,
                             double* __restrict mean, double* __restrict square) {
    for (int64_t i = 0; i < n; ++i) {
        const double change = x[i] - mean[i];
        mean[i] += change / n_states;
        square[i] += change * (x[i] - mean[i]);
    }
}

AlignedVector<double> tiles(int64_t count, double value) {
    return AlignedVector<double>(static_cast<size_t>(count * tile), value);
}

}  // namespace

Entropies::Entropies(const Link& link, int64_t n_outputs)
    : two_(link.kind == Link::Kind::sigmoid),
      width_(link.parameter),
      n_classes_(two_ ? 2 : n_outputs),
      // A state's factor is at least 1 / n_classes; normal doubles end at 2^-1022.
      group_(1000 / std::bit_width(static_cast<uint64_t>(n_classes_))),
      sums_(tiles(n_classes_, 0.0)),
      distance_(tiles(1, 0.0)),
      product_(tiles(1, 1.0)),
      entropy_(tiles(1, 0.0)) {}

void Entropies::add(int64_t n, double* scores) {
    if (two_) {
        const Logits logits(width_);
        alignas(cache_line) double likely[tile], unlikely[tile];
        reduce(logits, n, scores, likely, unlikely);
        parts_of_exponential(n, likely, unlikely);
        add_logits(logits, n, scores, likely, unlikely,
                   {sums_.data(), sums_.data() + tile, distance_.data(), product_.data(),
                    entropy_.data()});
    } else {
        add_softmax(n_classes_, n, scores, sums_.data(), distance_.data(), product_.data());
    }
    if (++n_states_ % group_ == 0) add_logarithms(n, product_.data(), entropy_.data());
}

void Entropies::finish(int64_t n, int64_t begin, const Out& out) {
    const auto n_states = static_cast<double>(n_states_);
    const Out rows{out.mean + begin * n_classes_, out.knowledge + begin, out.data + begin,
                   out.total + begin};
    if (two_) {
        finish_two(
            1.0 / width_, n_states, n,
            {sums_.data(), sums_.data() + tile, distance_.data(), product_.data(), entropy_.data()},
            rows);
    } else {
        std::fill_n(rows.total, n, 0.0);
        for (int64_t k = 0; k < n_classes_; ++k)
            add_entropy(n_states, n, sums_.data() + k * tile, rows.total);
        to_row_major(sums_.data(), n_classes_, n, rows.mean);
        add_logarithms(n, product_.data(), entropy_.data());
        split_entropy(n_states, n, entropy_.data(), distance_.data(), rows);
    }
    for (auto* zeros : {&sums_, &distance_, &entropy_})
        std::fill(zeros->begin(), zeros->end(), 0.0);
    std::fill(product_.begin(), product_.end(), 1.0);
    n_states_ = 0;
}

Variance::Variance(const Link& link, int64_t n_outputs)
    : link_(link),
      n_outputs_(n_outputs),
      prediction_(tiles(n_outputs, 0.0)),
      mean_(tiles(n_outputs, 0.0)),
      square_(tiles(n_outputs, 0.0)) {}

void Variance::add(int64_t n, double* scores) {
    apply_link(link_, n_outputs_, n, scores, n_outputs_, prediction_.data());
    add_welford(static_cast<double>(++n_states_), n * n_outputs_, prediction_.data(), mean_.data(),
                square_.data());
}

void Variance::finish(int64_t n, int64_t begin, const Out& out) {
    std::copy_n(mean_.data(), n * n_outputs_, out.mean + begin * n_outputs_);
    for (int64_t i = 0; i < n * n_outputs_; ++i)
        out.variance[begin * n_outputs_ + i] = square_[i] / static_cast<double>(n_states_);
    for (auto* zeros : {&mean_, &square_}) std::fill(zeros->begin(), zeros->end(), 0.0);
    n_states_ = 0;
}

}  // namespace sglb
