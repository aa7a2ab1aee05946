// Combinations of categorical columns: their levels, and what they explain of a target.
#pragma once

#include <cstdint>

#include "categories.h"

namespace sglb {

// Combinations of up to `width` columns: members [n * width], unused places -1 at the end.
struct Combinations {
    const int32_t* members;
    int64_t n, width;
};

// The product of the n_levels of a combination's members is below this. A joint level is a key of
// 64 bits below the product, and the product of three counts, as doubles have it, is off by less
// than the rest.
inline constexpr double most_keys = 0x1p61;

// Levels of combinations, numbered as they first appear: OUT numbers [n * n_rows], n_numbers [n].
void combine(const Levels& levels, const Combinations& combinations, int32_t* numbers,
             int64_t* n_numbers, int n_threads);

// What a combination explains of centred targets g when each row is predicted by the others of its
// level: sum over levels of (S^2 - Q) / d, S = sum w g, Q = sum (w g)^2, d = n - sum w^2 / n +
// ridge, n = sum w, divided by sum w g^2; targets are added up. Its error is the standard deviation
// it has if the signs of the g are coins: the root of the sum of 2 (Q^2 - sum (w g)^4) / d^2,
// divided too. Sums over the rows of a level are integers, in which the largest summand has 62 bits
// less those that count the rows. OUT gains, errors [n]; 0 where (w g)^4 is not finite.
void combination_gains(const Levels& levels, const Combinations& combinations,
                       const Targets& targets, double ridge, double* gains, double* errors,
                       int n_threads);

}  // namespace sglb
