// Infinite values in a table of numbers.
#pragma once

#include "bins.h"

namespace sglb {

// Position of the first infinite value, row * n_features + feature, in the order of the rows; -1
// without one. NaN is not infinite.
int64_t first_infinity(const Table& x, int n_threads);

}  // namespace sglb
