// Trees at the codes of training rows, and the step of the chain's state there.
#pragma once

#include <cstdint>
#include <vector>

#include "split.h"
#include "workspace.h"

namespace sglb {

inline constexpr int byte_depth = 8;  // up to this depth the number of a leaf fits a byte

// Leaves of n rows; the code of row i of feature f is codes[f * stride + i]. OUT index [n].
void leaf_indices(const uint8_t* codes, int64_t stride, const Split* splits, int depth, int64_t n,
                  uint8_t* index);
void leaf_indices(const uint8_t* codes, int64_t stride, const Split* splits, int depth, int64_t n,
                  uint16_t* index);
void leaf_indices(const uint8_t* codes, int64_t stride, const Split* splits, int depth, int64_t n,
                  int32_t* index);

// How a state moves: S <- C S + b (x) tree, with S [size * n_outputs * n_rows]. The model is S[0].
struct Transition {
    int64_t size = 1;
    std::vector<double> C = {1.0};  // [size * size]
    std::vector<double> b = {1.0};  // [size]
};

struct Step {
    const Split* splits;
    int depth;
    const double* values;  // [2^depth * n_outputs]
    const Transition& transition;
    const double* offset;  // [n_outputs], the part of the raw scores that never moves
    int64_t n_outputs, n_rows;
};

// Takes a step: IN/OUT state [size * n_outputs * n_rows], whose first part holds raw scores,
// offset + S[0].
void advance(const uint8_t* columns, const Step& step, double* state, int n_threads);

// The same where the workspace may know the leaves of the rows already.
void advance(const uint8_t* columns, const Step& step, const Workspace& workspace, double* state,
             int n_threads);

}  // namespace sglb
