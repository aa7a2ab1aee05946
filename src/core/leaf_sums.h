// Sums of gradients, second derivatives and weights over the rows of each leaf.
//
// Sums are fixed-point integers, the same in any order: those of several shards add up to those of
// one that holds all rows.
#pragma once

#include <cstdint>
#include <vector>

#include "slopes.h"
#include "split.h"
#include "weights.h"
#include "workspace.h"

namespace sglb {

// Sums of one leaf and output.
struct LeafSum {
    int64_t gradient = 0, curvature = 0, weight = 0;
};

struct LeafSums {
    int64_t n_leaves = 1, n_outputs = 1;
    bool newton = false;
    double gradient_scale = 1.0, curvature_scale = 1.0, weight_scale = 1.0;  // powers of two
    double share = 1.0;            // of the rows that were looked at
    double least_curvature = 0.0;  // below which a part of the rows knows too little of a leaf
    std::vector<LeafSum> sums;     // [n_outputs * n_leaves]

    static double unscale(int64_t sum, double scale) {
        return scale > 0.0 ? static_cast<double>(sum) / scale : 0.0;
    }
    double gradient(const LeafSum& sum) const { return unscale(sum.gradient, gradient_scale); }
    double curvature(const LeafSum& sum) const { return unscale(sum.curvature, curvature_scale); }
    double weight(const LeafSum& sum) const { return unscale(sum.weight, weight_scale); }
};

struct LeafSumsInput {
    const uint8_t* columns;  // [n_features * n_rows] codes
    const Split* splits;
    int depth;
    Slopes slopes;  // second derivatives are summed where they are wanted
    Subsample subsample;
    Weights weights;
    SlopeBounds bounds;
    // Where a loss is evaluated: this is added to the raw scores of the rows of a leaf,
    // [2^depth * n_outputs]; null for the raw scores as they are, and for slopes in arrays.
    const double* shift = nullptr;
    int64_t row_stride = 1;  // one of this many lines of 64 rows is looked at, another in each step
};

// OUT sums. Leaves the leaf of every row that it has looked at in the workspace.
void sum_leaves(const LeafSumsInput& input, Workspace& workspace, LeafSums& sums, int n_threads);

}  // namespace sglb
