// Weights of rows, and what is known of those of all shards.
#pragma once

#include <cstdint>

namespace sglb {

// Without weights each row has weight 1.
struct Weights {
    const double* weight = nullptr;  // [n_rows] or null
    double unit = 1.0;               // weight of an ordinary row: 1 for multiplicities
    double largest = 1.0;            // of all shards, in units
    double total = 0.0;              // of all shards, in units
    // Sum of squared weights / sum of weights: rows of this weight, as many, know as much.
    double typical = 1.0;
};

}  // namespace sglb
