// The two probabilities of a logit, without cancellation at either end.
#pragma once

#include "elementary.h"

namespace sglb {

// With t = |z| and e = e^-t, the likelier class has probability 1 / (1 + e), the other one e times
// as much. t stops where the exponential does, so that t e is finite.
struct Logit {
    double t, e;
    double odds;  // 1 + e
    bool positive;
    SGLB_INLINE explicit Logit(double z) {
        t = minimum(absolute(z), 708.0);
        e = exponential_within(-t);
        odds = 1.0 + e;
        positive = z >= 0.0;
    }
    // Probabilities of the classes, given 1 / odds.
    SGLB_INLINE double first(double inverse) const { return positive ? e * inverse : inverse; }
    SGLB_INLINE double second(double inverse) const { return positive ? inverse : e * inverse; }
};

}  // namespace sglb
