// Sums of leaf values over stretches of trees, at a tile of rows.
//
// Values are rounded once to whole multiples of a unit, a power of two for each stretch and output,
//
//     unit = 2^max(E - 46, F - 52),
//     every |value| < 2^E,   sum over the stretch's trees of the largest |value| < 2^F,
//
// and not below the smallest double. Then all sums are whole numbers below 2^53: exact in doubles,
// hence the same in any order and with any instructions. A sum over n trees is at most n / 2 units
// from that of the values as they were. As long as no tree outweighs 1/64 of the whole stretch that
// is n 2^-53 of the bound 2^F, what adding up doubles would be allowed to err.
#pragma once

#include <cstdint>
#include <vector>

#include "register_sums.h"
#include "search.h"

namespace sglb {

// Trees as plain arrays, tree t at row t of each.
struct Trees {
    int64_t n_trees;
    int64_t max_depth;
    int64_t n_outputs;
    const int32_t* features;  // [n_trees * max_depth]
    const uint8_t* lows;      // [n_trees * max_depth]
    const uint8_t* highs;     // [n_trees * max_depth]
    const int32_t* depths;    // [n_trees]
    const double* values;     // [n_trees * 2^max_depth * n_outputs], weighted
};

class TreeSums {
  public:
    // Columns of codes start at multiples of this many bytes, the last one being padded.
    static constexpr int64_t alignment = 64;

    // Stretch s has the trees ends[s - 1] <= t < ends[s]. Throws std::invalid_argument if a value
    // is not finite.
    TreeSums(const Trees& trees, int64_t n_features, const std::vector<int64_t>& ends);

    int64_t n_trees() const { return n_trees_; }
    int64_t n_outputs() const { return n_outputs_; }
    // The features that some tree uses. Codes are those of these features.
    const std::vector<int32_t>& features() const { return features_; }
    // Distance of the columns of codes of up to tile rows.
    int64_t stride(int64_t n_rows) const;

    // OUT sums [n_outputs * tile] of stretch s at n <= tile rows, in units. Codes are column-major.
    void find(int64_t s, const uint8_t* codes, int64_t stride, int64_t n, double* sums) const;
    double unit(int64_t s, int64_t k) const { return units_[s * n_outputs_ + k]; }

  private:
    bool few(int64_t n_rows) const;
    void use_features(const Trees& trees, int64_t n_features);
    void round_stretch(const Trees& trees, int64_t first, int64_t last);
    template <class Index>
    void add(const uint8_t* codes, int64_t stride, int64_t n, int64_t first, int64_t last,
             double* sums) const;
    void add_by_row(const uint8_t* codes, int64_t stride, int64_t n, int64_t first, int64_t last,
                    double* sums) const;

    int64_t n_trees_, max_depth_, n_outputs_;
    std::vector<int32_t> depths_;
    std::vector<Split> splits_;      // [n_trees * max_depth], features being numbers of used ones
    std::vector<int32_t> features_;  // those
    std::vector<int64_t> ends_;
    std::vector<double> units_;   // [n_stretches * n_outputs]
    std::vector<double> values_;  // in units, [n_trees * 2^max_depth * n_outputs]
    RegisterSums registers_;      // the same values, where that is possible
};

}  // namespace sglb
