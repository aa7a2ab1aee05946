#include "tree_sums.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "code_trees.h"
#include "elementary.h"
#include "links.h"

namespace sglb {
namespace {

constexpr int group = 8;                  // trees whose values are added in one pass over the rows
constexpr int sum_bits = 52;              // of the bound of a sum: rounding may lift a sum above it
constexpr int smallest_exponent = -1074;  // of a double
// Up to this many rows are walked through the trees one by one, which costs 6 ns a row and tree.
// All others come in whole vectors, which take 16 ns a tree in registers and about 50 ns else.
constexpr int64_t few_rows = 8, few_rows_of_registers = 2;

// Registers take 512 bytes a tree and output, however few leaves there are. For trees too shallow
// to have a quarter of that in values, 8 MB must do.
constexpr int64_t padded_depth = 4, most_padded = 1 << 14;

// to[i] += the values of some trees at the leaves of row i, one after the other. Compiled for the
// baseline only: scalar loads are faster than a gather.
template <int n_trees, class Index>
void add_values(const double* const* values, const Index (*index)[tile], int64_t stride, int64_t n,
                double* to) {
    for (int64_t i = 0; i < n; ++i) {
        double sum = to[i];
        for (int j = 0; j < n_trees; ++j) sum += values[j][index[j][i] * stride];
        to[i] = sum;
    }
}

// Finds the loop for a number of trees that is known when it runs.
template <int most = group, class Index>
void add_values(int64_t n_trees, const double* const* values, const Index (*index)[tile],
                int64_t stride, int64_t n, double* to) {
    if (n_trees == most) return add_values<most>(values, index, stride, n, to);
    if constexpr (most > 1) add_values<most - 1>(n_trees, values, index, stride, n, to);
}

// The largest of n absolute values, `stride` apart; not a number if one is not finite.
double largest_value(const double* values, int64_t stride, int64_t n) {
    double most = 0.0;
    double poison = 0.0;  // 0 * x is NaN for infinite and NaN x
    for (int64_t i = 0; i < n; ++i) {
        most = maximum(most, absolute(values[i * stride]));
        poison += 0.0 * values[i * stride];
    }
    return most + poison;
}

// The exponent of the unit of trees with these largest absolute values.
int unit_exponent(const std::vector<double>& largest) {
    const double most = *std::max_element(largest.begin(), largest.end());
    int value_exponent = 0;  // E
    std::frexp(most, &value_exponent);
    double bound = 0.0;  // in units of 2^E, so that it is finite
    for (const double value : largest) bound += std::ldexp(value, -value_exponent);
    int excess = 0;  // F - E
    std::frexp(bound, &excess);
    const int bits = std::max(-RegisterSums::value_bits, excess - sum_bits);
    return std::max(smallest_exponent, value_exponent + bits);
}

// Values `stride` apart in units of 2^exponent, to the nearest whole number.
void round_values(const double* from, int64_t stride, int64_t n, int exponent, double* to) {
    // 2^-exponent may be too large for a double.
    const double first = std::ldexp(1.0, -(exponent / 2));
    const double second = std::ldexp(1.0, -(exponent - exponent / 2));
    for (int64_t i = 0; i < n; ++i)
        to[i * stride] = (from[i * stride] * first * second + round_magic) - round_magic;
}

}  // namespace

TreeSums::TreeSums(const Trees& trees, int64_t n_features, const std::vector<int64_t>& ends)
    : n_trees_(trees.n_trees),
      max_depth_(trees.max_depth),
      n_outputs_(trees.n_outputs),
      depths_(trees.depths, trees.depths + trees.n_trees),
      ends_(ends),
      values_(static_cast<size_t>((trees.n_trees << trees.max_depth) * trees.n_outputs)) {
    use_features(trees, n_features);
    int64_t first = 0;
    for (const int64_t end : ends_) {
        round_stretch(trees, first, end);
        first = end;
    }
    const bool small = max_depth_ >= padded_depth || n_trees_ * n_outputs_ <= most_padded;
    if (small && max_depth_ <= RegisterSums::most_depth && RegisterSums::available())
        registers_ = RegisterSums(values_.data(), splits_.data(), depths_.data(), n_trees_,
                                  max_depth_, n_outputs_);
}

// Numbers the features that some tree uses, in order; splits refer to these numbers.
void TreeSums::use_features(const Trees& trees, int64_t n_features) {
    std::vector<int32_t> number(static_cast<size_t>(n_features), -1);
    splits_.resize(n_trees_ * max_depth_, Split{0, 0, 0});
    for (int64_t t = 0; t < n_trees_; ++t)
        for (int64_t d = 0; d < trees.depths[t]; ++d) {
            const int64_t at = t * max_depth_ + d;
            int32_t& used = number[trees.features[at]];
            if (used < 0) {
                used = static_cast<int32_t>(features_.size());
                features_.push_back(trees.features[at]);
            }
            splits_[at] = {used, trees.lows[at], trees.highs[at]};
        }
}

// Leaves that a shallow tree does not have stay 0.
void TreeSums::round_stretch(const Trees& trees, int64_t first, int64_t last) {
    std::vector<double> largest(static_cast<size_t>(last - first), 0.0);
    const auto begin = [&](int64_t t, int64_t k) { return (t << max_depth_) * n_outputs_ + k; };
    for (int64_t k = 0; k < n_outputs_; ++k) {
        for (int64_t t = first; t < last; ++t) {
            const double most = largest_value(trees.values + begin(t, k), n_outputs_,
                                              int64_t{1} << trees.depths[t]);
            if (!(most == most))
                throw std::invalid_argument("leaf values of tree " + std::to_string(t) +
                                            " must be finite");
            largest[t - first] = most;
        }
        const int exponent = largest.empty() ? 0 : unit_exponent(largest);
        for (int64_t t = first; t < last; ++t)
            round_values(trees.values + begin(t, k), n_outputs_, int64_t{1} << trees.depths[t],
                         exponent, values_.data() + begin(t, k));
        units_.push_back(std::ldexp(1.0, exponent));
    }
}

bool TreeSums::few(int64_t n_rows) const {
    return n_rows <= (registers_.empty() ? few_rows : few_rows_of_registers);
}

int64_t TreeSums::stride(int64_t n_rows) const {
    constexpr int64_t whole = RegisterSums::rows;
    return few(n_rows) ? alignment : std::min(tile, (n_rows + whole - 1) / whole * whole);
}

template <class Index>
void TreeSums::add(const uint8_t* codes, int64_t stride, int64_t n, int64_t first, int64_t last,
                   double* sums) const {
    alignas(64) Index index[group][tile];
    const int64_t padded = (n + 63) / 64 * 64;
    const int64_t size = (int64_t{1} << max_depth_) * n_outputs_;
    for (int64_t t = first; t < last; t += group) {
        const int64_t present = std::min<int64_t>(group, last - t);
        for (int64_t j = 0; j < present; ++j)
            leaf_indices(codes, stride, splits_.data() + (t + j) * max_depth_, depths_[t + j],
                         padded, index[j]);
        for (int64_t k = 0; k < n_outputs_; ++k) {
            const double* values[group];
            for (int64_t j = 0; j < present; ++j) values[j] = values_.data() + (t + j) * size + k;
            if (n_outputs_ == 1)
                add_values(present, values, index, 1, n, sums);
            else
                add_values(present, values, index, n_outputs_, n, sums + k * tile);
        }
    }
}

void TreeSums::add_by_row(const uint8_t* codes, int64_t stride, int64_t n, int64_t first,
                          int64_t last, double* sums) const {
    const int64_t size = (int64_t{1} << max_depth_) * n_outputs_;
    for (int64_t t = first; t < last; ++t) {
        const Split* splits = splits_.data() + t * max_depth_;
        const int depth = depths_[t];
        for (int64_t i = 0; i < n; ++i) {
            int64_t leaf = 0;
            for (int d = 0; d < depth; ++d) {
                const Split& split = splits[d];
                const auto offset =
                    static_cast<uint8_t>(codes[split.feature * stride + i] - split.low);
                const bool right = offset > static_cast<uint8_t>(split.high - split.low);
                leaf |= static_cast<int64_t>(right) << d;
            }
            const double* values = values_.data() + t * size + leaf * n_outputs_;
            for (int64_t k = 0; k < n_outputs_; ++k) sums[k * tile + i] += values[k];
        }
    }
}

void TreeSums::find(int64_t s, const uint8_t* codes, int64_t stride, int64_t n,
                    double* sums) const {
    const int64_t first = s ? ends_[s - 1] : 0;
    const int64_t last = ends_[s];
    if (!few(n) && !registers_.empty()) {
        constexpr int64_t whole = RegisterSums::rows;
        const int64_t padded = (n + whole - 1) / whole * whole;
        for (int64_t k = 0; k < n_outputs_; ++k)
            registers_.find(codes, stride, padded, first, last, k, sums + k * tile);
        return;
    }
    for (int64_t k = 0; k < n_outputs_; ++k) std::fill_n(sums + k * tile, n, 0.0);
    if (few(n)) {
        add_by_row(codes, stride, n, first, last, sums);
    } else if (max_depth_ <= byte_depth) {
        add<uint8_t>(codes, stride, n, first, last, sums);
    } else {
        add<uint16_t>(codes, stride, n, first, last, sums);
    }
}

}  // namespace sglb
