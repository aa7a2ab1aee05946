// Categorical columns as level numbers: orders of rows, target statistics, combinations of columns.
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
};

// Combinations of up to `width` columns: members [n * width], unused places -1 at the end.
struct Combinations {
    const int32_t* members;
    int64_t n, width;
};

// Order number `copy` of n rows, each order as likely as any other: OUT order [n].
void permutation(uint64_t seed, uint32_t copy, int64_t n, uint32_t* order);

// Sums by level, rounded once (fixed_point.h). The table of column c begins at the sum of the
// n_levels before it. OUT sums [n_targets * total], counts [total], total the sum of all n_levels.
void level_sums(const Levels& levels, const Targets& targets, double* sums, double* counts,
                int n_threads);

// A row's statistic is (s + unit * mean) / (n + unit) over the rows of its level that come before
// it in an order; its code is 1 + the number of thresholds below that. Feature c * n_targets + k is
// target k by column c; row r in order p has place p * n_rows + r.
// OUT columns [n_columns * n_targets * n_orders * n_rows].
struct Ordered {
    const uint32_t* orders;  // [n_orders * n_rows]
    int64_t n_orders;
    const double* means;  // [n_targets]
    double unit;
    const double* thresholds;     // [features * width]
    const int32_t* n_thresholds;  // [features]
    int64_t width;
};
void ordered_codes(const Levels& levels, const Targets& targets, const Ordered& ordered,
                   uint8_t* columns, int n_threads);

// Levels of combinations, numbered as they first appear: OUT numbers [n * n_rows], n_numbers [n].
// The product of the members' n_levels must be below 2^63.
void combine(const Levels& levels, const Combinations& combinations, int32_t* numbers,
             int64_t* n_numbers, int n_threads);

// What a combination explains of centred targets g when each row is predicted by the others of its
// level: sum over levels of (S^2 - Q) / d, S = sum w g, Q = sum (w g)^2, d = n - sum w^2 / n +
// ridge, n = sum w, divided by sum w g^2; targets are added up. Its error is the standard deviation
// it has if the signs of the g are coins: the root of the sum of 2 (Q^2 - sum (w g)^4) / d^2,
// divided too. Sums over the rows of a level are integers, in which the largest summand has 62 bits
// less those that count the rows. OUT gains, errors [n]; 0 where (w g)^4 is not finite.
void combination_gains(const Levels& levels, const Combinations& combinations,
                       const Targets& targets, double ridge, double* gains, double* errors,
                       int n_threads);

// Keys numbered as they first appear: OUT numbers [n]. Returns how many there are.
int64_t number_keys(const uint64_t* keys, int64_t n, int32_t* numbers);

// Keys in a hash table: OUT slots [n_slots], a power of two above n_keys: the place of a key or -1.
void place_keys(const uint64_t* keys, int64_t n_keys, int32_t* slots, int64_t n_slots);

// OUT places [n]: where each wanted key stands among the placed ones, -1 where it does not.
void find_keys(const uint64_t* wanted, int64_t n, const uint64_t* keys, int64_t n_keys,
               const int32_t* slots, int64_t n_slots, int32_t* places, int n_threads);

}  // namespace sglb
