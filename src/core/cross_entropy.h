// The cross-entropy of classes, for metrics and energies.
#pragma once

#include <cstdint>

namespace sglb {

// Minus the log-probability of each row's class, y being 0 .. n_classes - 1. One output is
// the log-odds of class 1. raw [n_outputs * n_rows], output-major; OUT out [n_rows],
// NaN where a score is NaN.
void cross_entropy(int64_t n_rows, int64_t n_outputs, const double* y, const double* raw,
                   double* out);

}  // namespace sglb
