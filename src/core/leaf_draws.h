// Many draws of a function at rows: sums over partitions of the values of the rows' leaves.
#pragma once

#include <cstdint>

namespace sglb {

struct LeafDraws {
    int64_t n_partitions, n_outputs, n_draws;
    const int64_t* first;  // [n_partitions], where the leaves of a partition begin
    const float* values;   // [leaves of all partitions * n_outputs * n_draws]
};

// OUT out [n_outputs * n_rows * n_draws] = sum over partitions t of the values of leaf
// leaves[t * n_rows + i]. Partitions are added in their order: the same bits for any threads.
void add_leaf_draws(const LeafDraws& draws, const int32_t* leaves, int64_t n_rows, double* out,
                    int n_threads);

}  // namespace sglb
