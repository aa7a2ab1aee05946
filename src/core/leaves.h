// Leaf values of one structure, and the update of the raw scores.
//
//     theta_j = -eps (G_j + sigma sqrt(C_j) xi_j) / C_j,       f <- rho f + theta_leaf
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
// Of several Newton steps each begins where the ones before it have come to, and eps multiplies
// their sum: they approach the minimum of the leaf's loss plus l2 / 2 value^2. The noise is that of
// a single step: it comes last, and with the curvature of the first, since later steps would undo
// it. No step is longer than the loss's reach. Steps before the last may look at a part of the
// rows: where they err, the last one, on all rows, is left with the square of the error.
#pragma once

#include <cstdint>

#include "slopes.h"
#include "split.h"
#include "workspace.h"

namespace sglb {

// Where the steps before the last have brought the leaves, [2^depth * n_outputs] each. Before the
// first step the sum and the bend are 0 and the last step infinite.
struct Approach {
    double* sum;   // of the steps
    double* last;  // step
    double* bend;  // curvature at the first, without l2, per weight
};

struct LeafInput {
    const uint8_t* columns;  // [n_features * n_rows] codes
    const Split* splits;
    int depth;
    Slopes slopes;  // Newton leaves where they have second derivatives
    Sample sample;
    const double* weight;  // [n_rows] or null
    double largest_gradient, largest_hessian,
        largest_weight;     // bounds of the absolute values
    double typical_weight;  // as in sample.h
    double learning_rate, sigma, shrink, l2;
    double reach;  // of a Newton step; a lone one may be longer if eps leaves less than half of it
    const double* offset;  // [n_outputs], the part of raw that is never shrunk
    uint64_t seed;
    uint32_t step;
    int64_t every = 1;  // one of so many lines of 64 rows is looked at, another in the next tree
};

// OUT values [2^depth * n_outputs], gains [depth] or null: what each split added to the
// sum over leaves of G^2 / (W + l2), on all rows and without noise. IN/OUT raw
// [n_outputs * n_rows]. IN approach, or null if this is the only step. Where it has come to is
// where a loss is evaluated; slopes in arrays are those at the scores that `approach_leaves` gave
// last.
void fit_leaves(const LeafInput& input, const Approach* approach, Workspace& workspace, double* raw,
                double* values, double* gains, int n_threads);

// A step before the last: IN/OUT approach, OUT ahead [n_outputs * n_rows], or null with a loss: the
// raw scores where the next step wants its slopes; gains as above. Uses neither noise nor learning
// rate nor offset. From a part of the rows gains are estimated.
void approach_leaves(const LeafInput& input, const Approach& approach, Workspace& workspace,
                     const double* raw, double* ahead, double* gains, int n_threads);

// Largest |x|; infinity if a value is not finite.
double largest(const double* x, int64_t n, int n_threads);

}  // namespace sglb
