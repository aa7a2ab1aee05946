// Gradients of the built-in losses, row by row, from raw scores.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sglb {

// The rows one call works on: output k of row i is at raw[k * raw_stride + i] and at
// gradient[k * stride + i].
struct LossRows {
    int64_t n;
    int64_t raw_stride;
    int64_t stride;
    int64_t n_outputs;
    const double* y;
    const double* raw;
    double* gradient;
    double* hessian;  // may be null
};

// The loss's own parameters (width, delta, level ...), at least two of them, unused ones 0.
using LossParameters = std::vector<double>;

// A built-in loss with its parameters.
struct LossKernel {
    // Returns the bits of the largest |gradient|, which order like the numbers themselves.
    using Function = int64_t (*)(const LossParameters&, const LossRows&);
    Function function = nullptr;
    LossParameters parameters;
    int64_t run(const LossRows& rows) const { return function(parameters, rows); }
};

// Throws std::invalid_argument for an unknown name, or a number of parameters or outputs that the
// loss does not have.
LossKernel find_loss(std::string_view name, LossParameters parameters, int64_t n_outputs);

// y [n_rows], raw / gradient / hessian [n_outputs * n_rows], output-major; hessian may be null.
// Returns the largest |gradient|, infinity if one is not finite.
double loss_gradient(const LossKernel& loss, int64_t n_rows, int64_t n_outputs, const double* y,
                     const double* raw, double* gradient, double* hessian, int n_threads);

}  // namespace sglb
