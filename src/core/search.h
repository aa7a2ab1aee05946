// Greedy search for the structure of an oblivious tree.
//
// Level by level, the split with the best score summed over all leaves wins;
// ties go to the first (feature, last code, missing left before missing right).
// A split that separates no weight is no candidate; where a level has no
// candidate the tree ends.
#pragma once

#include <cstdint>
#include <vector>

#include "sample.h"

namespace sglb {

// A split keeps the codes low..high left (bit 0) and sends the others right
// (bit 1).
struct Split {
    int32_t feature;
    uint8_t low, high;
};

inline constexpr int most_depth = 16;

// Candidates of a feature: codes 0..b go left; those, or 1..b where missing values (code 0) go
// right; code b alone goes left; the same but for code 0, which stands for none of several columns.
enum Kind : uint8_t { numbers = 0, numbers_or_missing = 1, levels = 2, bundle = 3 };
inline bool one_code_left(uint8_t kind) { return kind == levels || kind == bundle; }

// Codes of all rows, one row's side by side; where they are at hand, also one feature's.
struct Codes {
    const uint8_t* rows;  // [n_rows * stride]
    int64_t stride;
    int64_t n_features;
    const int32_t* n_codes;  // [n_features], codes 0 .. n_codes - 1 occur
    const uint8_t* kinds;    // [n_features], see Kind
    const uint8_t* columns;  // [n_features * n_rows], the same by feature, or null
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
    const int64_t* packed;  // [n_outputs * n]
    const uint32_t* rows;   // [n] rows the words belong to, or null for 0 .. n-1
    int64_t n;
    int64_t n_outputs;
    SearchRule rule;
};

// Scratch memory of a chain, reused from step to step.
struct Workspace {
    Draw draw;
    std::vector<int32_t> outputs;
    std::vector<uint32_t> order, other_order;
    std::vector<int64_t> words;
    std::vector<uint8_t> codes, bits, marks;
    std::vector<int64_t> hist, part_hist;
    std::vector<float> scores;
    std::vector<int32_t> parted;
    std::vector<uint8_t> leaf8;
    std::vector<uint16_t> leaf16;
};

// OUT splits [max_depth]. Returns the depth reached.
int search(const SearchInput& input, Workspace& workspace, Split* splits, int n_threads);

}  // namespace sglb
