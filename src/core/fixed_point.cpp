#include "fixed_point.h"

#include <algorithm>
#include <limits>

#include "parallel.h"

namespace sglb {

Summands::Summands(const double* values, const double* weight, int64_t n, int n_threads)
    : values_(values), weight_(weight), n_(n) {
    if (!values && !weight) return;
    constexpr auto infinity = std::bit_cast<int64_t>(std::numeric_limits<double>::infinity());
    int64_t largest = 0;  // as bits, which order like the numbers, infinity and NaN last
    for (int64_t row = 0; row < n; ++row) {
        const auto size = std::bit_cast<int64_t>(std::abs(product(row)));
        all_finite_ &= size < infinity;
        largest = std::max(largest, size < infinity ? size : 0);
    }
    largest_ = std::bit_cast<double>(largest);
    numbers_.resize(n);
    const FixedPoint unit(largest_);
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
            numbers_[row] = std::isfinite(product(row)) ? unit.of(product(row)) : 0;
    });
}

void Summands::by_group(const int32_t* groups, int64_t n_groups, double* sums) const {
    if (numbers_.empty()) {  // the sums of ones are exact
        std::fill_n(sums, n_groups, 0.0);
        for (int64_t row = 0; row < n_; ++row) sums[groups[row]] += 1.0;
        return;
    }
    std::vector<Wide> exact(static_cast<size_t>(n_groups));
    for (int64_t row = 0; row < n_; ++row) exact[groups[row]] += numbers_[row];
    const FixedPoint unit(largest_);
    for (int64_t i = 0; i < n_groups; ++i) sums[i] = unit.value(exact[i]);
    if (all_finite_) return;
    for (int64_t row = 0; row < n_; ++row)
        if (!std::isfinite(product(row))) sums[groups[row]] += product(row);
}

void running_totals(const double* values, int64_t n, double* sums) {
    const double largest = n ? *std::max_element(values, values + n) : 0.0;
    const FixedPoint unit(std::min(largest, std::numeric_limits<double>::max()));
    Wide sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        sum += unit.of(values[i]);
        sums[i] = unit.value(sum);
    }
}

}  // namespace sglb
