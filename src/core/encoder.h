// Values to codes as bins.h defines them, prepared once for many rows.
//
// The thresholds of a feature lie as a search tree of single-precision numbers, level by level, so
// that a level fits into a register or two. Rounding to single precision never turns the order of
// two numbers around, it can only make them equal: a value that meets a threshold on its way down
// is looked up again among the exact ones.
#pragma once

#include <cstdint>
#include <vector>

#include "bins.h"

namespace sglb {

class Encoder {
  public:
    // Rows that encode() takes at a time; it may write up to the next multiple of 16 of them.
    static constexpr int64_t most_rows = 256;

    // Keeps the pointer to the thresholds [n_features * width].
    Encoder() = default;
    Encoder(const double* thresholds, const int32_t* n_thresholds, int64_t width,
            const std::vector<int32_t>& features);

    // The codes of rows begin..end of feature number j of those given.
    void encode(const Table& x, int64_t j, int64_t begin, int64_t end, uint8_t* codes) const;

  private:
    struct Feature {
        int32_t feature;
        int32_t n_thresholds;
        int levels;
        const double* thresholds;
        std::vector<float> tree;
    };
    static void encode_exactly(const Feature& feature, const Table& x, int64_t begin, int64_t end,
                               uint8_t* codes);
    std::vector<Feature> features_;
};

// OUT columns [n_features * n_rows]. `width` is the length of a feature's row of thresholds.
void encode(const Table& x, const double* thresholds, const int32_t* n_thresholds, int64_t width,
            uint8_t* columns, int n_threads);

}  // namespace sglb
