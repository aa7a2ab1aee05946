// Categorical columns as level numbers: orders of rows and target statistics.
//
// A level is a number 0..n_levels - 1 of a column. Sums over the rows of a level are integers,
// those over levels are exact: neither depends on an order. The ordered statistics do by
// definition: they are sums along a stated permutation of the rows, taken one after the other by
// one thread. Rows in shards would have to be visited in the order of the permutation, with the
// sums handed on from row to row.
#pragma once

#include <cstdint>

namespace sglb {

// Level numbers [n_columns * n_rows], each below the n_levels of its column.
struct Levels {
    const int32_t* data;
    const int64_t* n_levels;
    int64_t n_columns, n_rows;
};

// What is averaged by level: values [n_targets * n_rows]; weight [n_rows] or null for ones.
struct Targets {
    const double* values;
    const double* weight;
    int64_t n_targets;
    double weight_of(int64_t row) const { return weight ? weight[row] : 1.0; }
};

// Order number `copy` of n rows, each order as likely as any other: OUT order [n].
void permutation(uint64_t seed, uint32_t copy, int64_t n, uint32_t* order);

// Sums by level, rounded once (fixed_point.h). The table of column c begins at the sum of the
// n_levels before it. OUT sums [n_targets * total], counts [total], total the sum of all n_levels.
void level_sums(const Levels& levels, const Targets& targets, double* sums, double* counts,
                int n_threads);

// What a level without rows has: the mean of each target, counted as `unit` rows.
struct Prior {
    const double* means;  // [n_targets]
    double unit;
};

// Orders of the rows, and the thresholds that turn statistics into codes.
struct OrderedStatistics {
    const uint32_t* orders;  // [n_orders * n_rows]
    int64_t n_orders;
    Prior prior;
    const double* thresholds;     // [features * width]
    const int32_t* n_thresholds;  // [features]
    int64_t width;
};

// A row's statistic is (s + unit * mean) / (n + unit) over the rows of its level that come before
// it in an order; its code is 1 + the number of thresholds below that. Feature c * n_targets + k is
// target k by column c; row r in order p stands at p * n_rows + r.
// OUT columns [n_columns * n_targets * n_orders * n_rows].
void ordered_codes(const Levels& levels, const Targets& targets, const OrderedStatistics& ordered,
                   uint8_t* columns, int n_threads);

}  // namespace sglb
