// Greedy search for the structure of an oblivious tree.
//
// Level by level, the split with the best score summed over all leaves wins;
// ties go to the first (feature, last code, missing left before missing right).
// A split that separates no weight is no candidate; where a level has no
// candidate the tree ends.
#pragma once

#include <cstdint>

#include "split.h"
#include "workspace.h"

namespace sglb {

// Candidates of a feature: codes 0..b go left; those, or 1..b where missing values (code 0) go
// right; code b alone goes left; the same but for code 0, which stands for none of several columns.
enum Kind : uint8_t { numbers = 0, numbers_or_missing = 1, levels = 2, bundle = 3 };
inline bool one_code_left(uint8_t kind) { return kind == levels || kind == bundle; }

// Codes of all rows: one row's side by side, or one feature's, or both.
struct Codes {
    const uint8_t* rows;  // [n_rows * stride], or null
    int64_t stride;
    int64_t n_features;
    const int32_t* n_codes;  // [n_features], codes 0 .. n_codes - 1 occur
    const uint8_t* kinds;    // [n_features], see Kind
    const uint8_t* columns;  // [n_features * n_rows], the same by feature, or null
    int64_t n_rows;
};

// How to search.
struct SearchRule {
    int max_depth;
    double l2;               // in units of the weights that it is added to
    double random_strength;  // standard deviation of the noise on sqrt(score),
                             // relative
    uint64_t seed;
    uint32_t step;
};

struct SearchInput {
    Codes codes;
    const int64_t* packed;  // [n_outputs * n_words]
    int64_t n_words;        // all rows have one, in their order, or those searched on, in theirs
    int64_t n_outputs;
    const uint32_t* rows;  // [n] rows searched on, never falling, or null for all
    int64_t n;
    bool by_row;  // all rows have words
    SearchRule rule;
};

// OUT splits [max_depth]. Returns the depth reached.
int search(const SearchInput& input, Workspace& workspace, Split* splits, int n_threads);

}  // namespace sglb
