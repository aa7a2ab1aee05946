// Gradients of the built-in losses, row by row, from raw scores.
#pragma once

#include <cstdint>
#include <string_view>

namespace sglb {

// y [n_rows], raw / gradient / hessian [n_outputs * n_rows], output-major; hessian may be null.
// parameters: the loss's own (width, delta, level ...), unused ones 0.
// Returns the largest |gradient|, infinity if one is not finite.
// Throws std::invalid_argument for an unknown name.
double loss_gradient(std::string_view name, double parameter, double second_parameter,
                     int64_t n_rows, int64_t n_outputs, const double* y, const double* raw,
                     double* gradient, double* hessian, int n_threads);

}  // namespace sglb
