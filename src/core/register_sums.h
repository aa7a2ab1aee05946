// Sums over trees of at most 256 leaves, looked up in registers (AVX-512).
//
// Leaf values are whole numbers of at most 46 bits, cut into four digits of 12 bits with a sign:
//
//     value = d_0 + 2^12 d_1 + 2^24 d_2 + 2^36 d_3,   -2^11 <= d_p < 2^11.
//
// One digit of 64 leaves fills two registers, and one instruction looks 32 rows up in them; trees
// of more leaves are looked up in parts. Digits of 16 trees add up within 16 bits, pairs of digits
// of 128 trees within 32 bits, and the rest in doubles, exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "search.h"

namespace sglb {

class RegisterSums {
  public:
    static constexpr int value_bits = 46;
    static constexpr int64_t most_depth = 8;
    static constexpr int64_t rows = 128;  // handled at a time

    // Whether this build and this processor can.
    static bool available();

    RegisterSums() = default;
    // Whole numbers [n_trees * 2^max_depth * n_outputs], splits [n_trees * max_depth].
    RegisterSums(const double* values, const Split* splits, const int32_t* depths, int64_t n_trees,
                 int64_t max_depth, int64_t n_outputs);

    bool empty() const { return pages_.empty(); }

    // OUT sums[i], output k of trees first .. last at row i < n, n <= tile a multiple of `rows`.
    // Codes are column-major, columns `stride` apart, a multiple of 64; so is the first address.
    void find(const uint8_t* codes, int64_t stride, int64_t n, int64_t first, int64_t last,
              int64_t k, double* sums) const;

  private:
    // A split whose codes are repeated four times: a load repeats four bytes for free, not one.
    struct WideSplit {
        int64_t feature;
        uint32_t low, span;
    };
    // One digit of 64 leaves.
    struct alignas(64) Page {
        int16_t of[64];
    };
    // Some trees at `rows` rows.
    struct Group {
        const uint8_t* codes;
        int64_t stride;
        const WideSplit* splits;
        int64_t max_depth;
        const int32_t* depths;
        const Page* pages;
        int64_t n_trees;
    };
    struct Pairs;
    static void cut(const double* values, int64_t stride, int64_t n, Page* pages);
    template <int n_parts>
    static void add_group(const Group& group, bool fresh, Pairs& pairs);
    template <bool fresh>
    static void join(const Pairs& pairs, double* sums);

    int64_t n_trees_ = 0, max_depth_ = 0;
    int64_t n_parts_ = 0;            // of 64 leaves a tree
    std::vector<WideSplit> splits_;  // [n_trees * max_depth]
    std::vector<int32_t> depths_;
    std::vector<Page> pages_;  // [n_outputs * n_trees * n_parts * n_digits]
};

}  // namespace sglb
