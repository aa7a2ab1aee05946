// Leaf values from the sums over the leaves' rows.
//
//     theta_j = -eps (G_j + sigma sqrt(C_j) xi_j) / C_j
//
// G_j is the sum of weighted gradients in leaf j, C_j its curvature plus l2: the sum of weights
// (gradient leaves) or of weighted second derivatives (Newton leaves; per weight at least a
// thousandth of its mean over all rows). xi_j is one standard normal
// per leaf and output: the mean of n normals is one normal with variance 1/n. A leaf without weight
// has value 0 and no noise; where no row has any curvature, weights stand in for it.
//
// Of several Newton steps each begins where the ones before it have come to, and eps multiplies
// their sum: they approach the minimum of the leaf's loss plus l2 / 2 value^2. The noise is that of
// a single step: it comes last, and with the curvature of the first, since later steps would undo
// it. None of several steps is longer than the trust radius r, and eps times an only step is no
// longer than max(eps, 1/2) r. Steps before the last may look at a part of the
// rows: where they err, the last one, on all rows, is left with the square of the error.
#pragma once

#include <cstdint>

#include "leaf_sums.h"

namespace sglb {

// Where the Newton steps before the last have brought the leaves, [2^depth * n_outputs] each.
// Before the first step sum and curvature are 0 and the last step is infinite.
struct NewtonPath {
    double* sum;        // of the steps
    double* last;       // step
    double* curvature;  // at the first, without l2, per weight
};

struct LeafRule {
    double l2;
    double trust_radius;  // of each of several Newton steps; eps times an only step: see above
};

struct LeafMove {
    double learning_rate, noise;
    uint64_t seed;
    uint32_t step;
};

// OUT values [2^depth * n_outputs]. IN path, or null if this is the only step.
void leaf_values(const LeafSums& sums, const LeafRule& rule, const LeafMove& move,
                 const NewtonPath* path, double* values);

// A step before the last: IN/OUT path.
void advance_path(const LeafSums& sums, const LeafRule& rule, const NewtonPath& path);

// OUT gains [depth]: what each split adds to the sum over leaves of G^2 / (W + l2), without noise;
// sums over a part of the rows estimate it.
void split_gains(const LeafSums& sums, double l2, double* gains);

}  // namespace sglb
