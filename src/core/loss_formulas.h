// The built-in losses of one output as formulas.
//
// Each is a small functor (y, raw score) -> gradient and second derivative of one row, in
// straight-line arithmetic, so that one loop serves them all and runs in vectors.
//
// Notation: z raw score, r = z - y, m = 2 y - 1 (the class as -1 or +1), s(x) = 1 / (1 + e^-x).
// Where a gradient is bounded, no finite score overflows on the way to it.
#pragma once

#include "elementary.h"
#include "losses.h"

namespace sglb::formulas {

using Parameters = LossParameters;

struct Slope {
    double gradient;
    double hessian;
};

// s(x) and s'(x) = s(x) s(-x). The clamp of exponential() keeps every factor finite.
struct Sigmoid {
    double value;
    double slope;
    SGLB_INLINE explicit Sigmoid(double x) {
        const double e = exponential(-x);
        value = 1.0 / (1.0 + e);
        slope = (e * value) * value;
    }
};

// Residuals of robust losses in units of their width: past this the losses are flat (or straight)
// to the last bit, and the square of a larger number could overflow.
SGLB_INLINE double limit_residual(double t) { return minimum(maximum(t, -1e100), 1e100); }

struct Squared {
    explicit Squared(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const { return {z - y, 1.0}; }
};

struct Logistic {
    explicit Logistic(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double m = 2.0 * y - 1.0;
        const Sigmoid wrong(-m * z);  // probability of the other class
        return {-m * wrong.value, wrong.slope};
    }
};

// 1 - s(m z / width)
struct Sla {
    double inverse_width;
    explicit Sla(const Parameters& p) : inverse_width(1.0 / p[0]) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double m = 2.0 * y - 1.0;
        const Sigmoid wrong(-m * z * inverse_width);
        const double slope = inverse_width * wrong.slope;
        return {-m * slope, slope * inverse_width * (1.0 - 2.0 * wrong.value)};
    }
};

// (y - s(z))^2 = s(-m z)^2
struct Savage {
    explicit Savage(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double m = 2.0 * y - 1.0;
        const Sigmoid wrong(-m * z);
        const double half = wrong.value * wrong.slope;
        return {-2.0 * m * half, 2.0 * half * (2.0 - 3.0 * wrong.value)};
    }
};

// sqrt(r^2 + width^2) - width
struct Absolute {
    double inverse_width;
    explicit Absolute(const Parameters& p) : inverse_width(1.0 / p[0]) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double t = limit_residual((z - y) * inverse_width);
        const double square = 1.0 + t * t;
        const double root = std::sqrt(square);  // one exactly rounded instruction
        return {t / root, inverse_width / (square * root)};
    }
};

// r^2 / 2 up to |r| = delta, straight beyond
struct Huber {
    double delta;
    explicit Huber(const Parameters& p) : delta(p[0]) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double r = z - y;
        return {minimum(maximum(r, -delta), delta), absolute(r) <= delta ? 1.0 : 0.0};
    }
};

// factor (level u + width log(1 + e^(-u / width))), u = y - z
struct Quantile {
    double level;
    double inverse_width;
    double factor;
    SGLB_INLINE Slope operator()(double y, double z) const {
        const Sigmoid below((z - y) * inverse_width);
        return {factor * (below.value - level), factor * (below.slope * inverse_width)};
    }
};

// e^z - y z, e^z continued from `limit` on as the parabola of the same value, slope and curvature.
struct Poisson {
    static constexpr double limit = 30.0;
    explicit Poisson(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double curvature = exponential(minimum(z, limit));
        return {curvature * (1.0 + maximum(z - limit, 0.0)) - y, curvature};
    }
};

// Slope of e^x, continued from `limit` on as above.
SGLB_INLINE double exponential_slope(double x, double limit) {
    return exponential(minimum(x, limit)) * (1.0 + maximum(x - limit, 0.0));
}

// Both of the following are sums of a falling and a rising exponential. The curvature is the mean
// of their slopes, with which no Newton step is longer than 2 (losses/amounts.py).
constexpr double exponent_limit = 200.0;

// y e^-z + z
struct Gamma {
    explicit Gamma(const Parameters&) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double falling = y * exponential_slope(-z, exponent_limit);
        return {1.0 - falling, 0.5 * (1.0 + falling)};
    }
};

// y e^((1 - power) z) / (power - 1) + e^((2 - power) z) / (2 - power)
struct Tweedie {
    double low, high;
    explicit Tweedie(const Parameters& p) : low(1.0 - p[0]), high(2.0 - p[0]) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double falling = y * exponential_slope(low * z, exponent_limit);
        const double rising = exponential_slope(high * z, exponent_limit);
        return {rising - falling, 0.5 * (rising + falling)};
    }
};

// scale^2 / 2 log(1 + (r / scale)^2)
struct Cauchy {
    double scale;
    double inverse_scale;
    explicit Cauchy(const Parameters& p) : scale(p[0]), inverse_scale(1.0 / p[0]) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double t = limit_residual((z - y) * inverse_scale);
        const double trust = 1.0 / (1.0 + t * t);
        return {scale * (t * trust), ((1.0 - t * t) * trust) * trust};
    }
};

// scale^2 / 2 (1 - e^-(r / scale)^2)
struct Welsch {
    double scale;
    double inverse_scale;
    explicit Welsch(const Parameters& p) : scale(p[0]), inverse_scale(1.0 / p[0]) {}
    SGLB_INLINE Slope operator()(double y, double z) const {
        const double t = limit_residual((z - y) * inverse_scale);
        const double trust = exponential(-t * t);
        return {scale * (t * trust), (1.0 - 2.0 * t * t) * trust};
    }
};

}  // namespace sglb::formulas
