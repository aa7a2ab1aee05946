#include "ranking_centred.h"

#include <cmath>
#include <limits>

#include "elementary.h"
#include "largest.h"

namespace sglb {
namespace {

// Bits of a sum of integers: one for the sign, one to spare.
constexpr int sum_bits = 62;

int exponent_of(double x) {
    int exponent = 0;
    std::frexp(x, &exponent);
    return exponent;
}

// The sum of n values, largest being the largest |value|.
double exact_sum(const double* value, int64_t n, double largest_value) {
    const int k = sum_bits - exponent_of(static_cast<double>(n)) - exponent_of(largest_value);
    // 2^k itself may overflow.
    const double first = std::ldexp(1.0, k / 2), second = std::ldexp(1.0, k - k / 2);
    int64_t total = 0;
    for (int64_t i = 0; i < n; ++i) total += std::llrint(value[i] * first * second);
    return std::ldexp(static_cast<double>(total), -k);
}

}  // namespace

double centred_residuals(const Queries& queries, const double* relevance, const double* weight,
                         const double* total, const double* raw, double* gradient, int n_threads) {
    parallel_queries(queries, n_threads, [&](int64_t begin, int64_t end, int64_t longest) {
        std::vector<double> value(static_cast<size_t>(longest));
        for (int64_t q = begin; q < end; ++q) {
            const uint32_t* rows = queries.rows(q);
            const int64_t n = queries.size(q);
            double largest_value = 0.0, poison = 0.0;
            for (int64_t i = 0; i < n; ++i) {
                const uint32_t row = rows[i];
                const double residual = raw[row] - relevance[row];
                const double x = weight ? residual * weight[row] : residual;
                gradient[row] = residual;
                value[static_cast<size_t>(i)] = x;
                poison += x - x;
                largest_value = std::max(largest_value, absolute(x));
            }
            const double mean = poison == 0.0 ? exact_sum(value.data(), n, largest_value) / total[q]
                                              : std::numeric_limits<double>::quiet_NaN();
            for (int64_t i = 0; i < n; ++i) gradient[rows[i]] -= mean;
        }
    });
    return largest(gradient, queries.n_rows, n_threads);
}

}  // namespace sglb
