// The structure of one tree from gradients: draw rows and outputs, quantise, search.
#pragma once

#include <cstdint>

#include "quantise.h"
#include "search.h"

namespace sglb {

struct GrowInput {
    Codes codes;
    Slopes slopes;
    Sample sample;
    Weights weights;
    double sigma;                              // standard deviation of the noise on a gradient of
                                               // weight 1
    double largest_gradient, largest_hessian;  // bound |gradient| and second derivatives
    bool newton;                               // scores G^2 / (H + l2) instead of G^2 / (W + l2)
    int64_t begin, end;                        // rows to search on
    int64_t n_structure_rows, n_structure_outputs;
    SearchRule rule;  // l2 in units of weights
};

// OUT splits [max_depth]. Returns the depth reached.
int grow(const GrowInput& input, Workspace& workspace, Split* splits, int n_threads);

}  // namespace sglb
