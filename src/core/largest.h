// The largest absolute value of an array.
#pragma once

#include <cstdint>

namespace sglb {

// Largest |x|; infinity if a value is not finite.
double largest(const double* x, int64_t n, int n_threads);

}  // namespace sglb
