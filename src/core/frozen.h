// Steps of chains on frozen partitions of rows, many draws side by side.
//
// The state of M draws is [n_outputs * n_rows * M]: a row's draws lie together, so that its leaf is
// read once for all of them and the values of a leaf are one run of M numbers. Draws never mix: a
// draw has the same bits beside any others.
//
// No sum over rows depends on their order. A summand is rounded to a multiple of a unit,
//
//     (x + magic) - magic,    magic = 1.5 * 2^52 units,
//
// chosen for each draw so that the sum of all |summands| is at most 2^51 units. Then every partial
// sum is a whole number of units below 2^53, which a double holds exactly.
#pragma once

#include <cstdint>

#include "noise.h"

namespace sglb {

struct DrawShape {
    int64_t n_outputs, n_rows, n_draws;
};

// Where rows are: the leaf of each, [n_rows], and the number of leaves.
struct RowLeaves {
    const int32_t* leaf;
    int64_t n_leaves;
};

// Leaves of a run of rows, first_row .. first_row + n_rows - 1, in several partitions.
struct PartitionLeaves {
    const int32_t* leaves;  // [n_partitions * n_rows]
    const int64_t* first;   // [n_partitions]: where the values of a partition begin
    int64_t n_partitions, first_row, n_rows;
};

// Weighted second derivatives of a row at the centre, diag(diagonal) - factor factor'.
struct Curvature {
    const double* diagonal;  // [n_outputs * n_rows]
    const double* factor;    // [n_outputs * n_rows] or null for 0
};

// Sums over the rows of each leaf of curvature * state: OUT sums [n_leaves * n_outputs * n_draws].
void sum_curvature(const DrawShape& shape, const double* state, const Curvature& curvature,
                   const RowLeaves& rows, const double* magic, double* sums, int n_threads);

// The same of weight * gradient, gradient being laid out as a state; a weight of null is 1.
void sum_gradient(const DrawShape& shape, const double* gradient, const double* weight,
                  const RowLeaves& rows, const double* magic, double* sums, int n_threads);

// IN/OUT state: state <- shrink * state + values[leaf], values [n_leaves * n_outputs * n_draws].
// OUT largest [n_draws]: the largest |state| of each draw.
void advance_draws(const DrawShape& shape, const RowLeaves& rows, const double* values,
                   double shrink, double* state, double* largest, int n_threads);

// IN/OUT state of the rows of `rows`: their leaves' values in all partitions are added, partition
// after partition. Values are [leaves of all partitions * n_outputs * n_draws].
void add_partitions(const DrawShape& shape, const PartitionLeaves& rows, const double* values,
                    double* state, int n_threads);

// OUT out [n_leaves * n_outputs * n_draws]: normal number (leaf << 32) + first_draw + m of an
// output's stream. So the noise of a draw does not depend on the draws beside it.
void draw_normals(Stream stream, uint32_t first_draw, int64_t n_leaves, int64_t n_outputs,
                  int64_t n_draws, double* out);

}  // namespace sglb
