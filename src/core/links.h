// Links: raw scores to predictions, a tile of rows at a time.
//
//     identity     z
//     sigmoid      s(z / parameter), s(x) = 1 / (1 + e^-x), the probability of class 1
//     softmax      e^z_k / sum over j of e^z_j, the probability of class k
//     exponential  e^z, from z = parameter on its tangent there
//     sorted       the scores of a row in increasing order
//
// No raw score, however large, gives anything but a finite number.
#pragma once

#include <cstdint>
#include <string_view>

namespace sglb {

// Rows whose scores are handled at a time: they stay in the first-level cache.
inline constexpr int64_t tile = 256;

struct Link {
    enum class Kind { identity, sigmoid, softmax, exponential, sorted };
    Kind kind = Kind::identity;
    double parameter = 0.0;

    // Whether predictions are probabilities of classes.
    bool of_classes() const { return kind == Kind::sigmoid || kind == Kind::softmax; }
    // Whether scores of n_outputs become n_columns numbers: one each, and the one score of a
    // sigmoid also the probabilities of both classes.
    bool fits(int64_t n_outputs, int64_t n_columns) const;
};

// Throws std::invalid_argument for an unknown name, and for a width outside 1e-300 to 1e300.
Link find_link(std::string_view name, double parameter);

// Predictions of n <= tile rows. IN/OUT scores [n_outputs * tile], output-major, spoiled;
// OUT out [n * n_columns], one row's numbers side by side.
void apply_link(const Link& link, int64_t n_outputs, int64_t n, double* scores, int64_t n_columns,
                double* out);

// Numbers of n <= tile rows, [n_columns * tile], row by row: OUT out [n * n_columns].
void to_row_major(const double* numbers, int64_t n_columns, int64_t n, double* out);

// The same as apply_link for any number of rows, raw [n_outputs * n_rows].
void link_scores(const Link& link, const double* raw, int64_t n_outputs, int64_t n_rows,
                 int64_t n_columns, double* out, int n_threads);

}  // namespace sglb
