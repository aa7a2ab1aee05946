// Leaf values of one structure, and the update of the raw scores.
//
//     theta_j = -eps (G_j + sigma sqrt(C_j) xi_j) / C_j,       f <- rho f +
//     theta_leaf
//
// where raw = offset + f.
//
// G_j is the sum of weighted gradients in leaf j, C_j its curvature plus l2:
// the sum of weights (gradient leaves) or of weighted second derivatives
// (Newton leaves). xi_j is one standard normal per leaf and output: the mean of
// n normals is one normal with variance 1/n. A leaf without weight has value 0
// and no noise; where no row has any curvature, weights stand in for it. Sums are fixed-point
// integers, the same in any order.
//
// Of several Newton steps all but the last are whole and without noise; the last brings the noise,
// and eps multiplies their sum. They approach the minimum of the leaf's loss plus l2 / 2 value^2.
#pragma once

#include <cstdint>

#include "search.h"
#include "slopes.h"

namespace sglb {

// Where earlier steps have brought the leaves, [2^depth * n_outputs] each: the sum of the steps,
// and the last of them, infinite before the first. Null where there is one step only.
struct Approach {
    double* sum = nullptr;
    double* last = nullptr;
};

struct LeafInput {
    const uint8_t* columns;  // [n_features * n_rows] codes
    const Split* splits;
    int depth;
    Slopes slopes;  // Newton leaves where they have second derivatives
    Sample sample;
    const double* weight;  // [n_rows] or null
    double largest_gradient, largest_hessian,
        largest_weight;  // bounds of the absolute values
    double learning_rate, sigma, shrink, l2;
    const double* offset;  // [n_outputs], the part of raw that is never shrunk
    uint64_t seed;
    uint32_t step;
    Approach approach;
};

// OUT values [2^depth * n_outputs], gains [depth] or null: what each split added to the
// sum over leaves of G^2 / (W + l2), on all rows and without noise. IN/OUT raw
// [n_outputs * n_rows].
void fit_leaves(const LeafInput& input, Workspace& workspace, double* raw, double* values,
                double* gains, int n_threads);

// One whole step without noise: IN/OUT the input's approach, OUT ahead [n_outputs * n_rows]: the
// raw scores there, at which the next step wants its slopes; gains as above.
void approach_leaves(const LeafInput& input, Workspace& workspace, const double* raw, double* ahead,
                     double* gains, int n_threads);

// Leaf of rows begin..end, `columns` with n_rows rows: OUT index [end - begin].
void leaf_indices(const uint8_t* columns, int64_t n_rows, const Split* splits, int depth,
                  int64_t begin, int64_t end, uint8_t* index);
void leaf_indices(const uint8_t* columns, int64_t n_rows, const Split* splits, int depth,
                  int64_t begin, int64_t end, uint16_t* index);

// raw <- shrink * (raw - offset) + offset + values[leaf] on codes: IN/OUT raw
// [n_outputs * n_rows].
void add_tree(const uint8_t* columns, int64_t n_rows, int64_t n_outputs, const Split* splits,
              int depth, const double* values, double shrink, const double* offset, double* raw,
              int n_threads);

// Largest |x|; infinity if a value is not finite.
double largest(const double* x, int64_t n, int n_threads);

}  // namespace sglb
