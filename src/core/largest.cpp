#include "largest.h"

#include <limits>
#include <vector>

#include "elementary.h"
#include "parallel.h"

namespace sglb {

double largest(const double* x, int64_t n, int n_threads) {
    const int64_t n_blocks = (n + block_rows - 1) / block_rows;
    std::vector<double> parts(static_cast<size_t>(n_blocks), 0.0);
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        double most = 0.0;
        double poison = 0.0;  // 0 * x is NaN for infinite and NaN x
        for (int64_t i = begin; i < end; ++i) {
            most = maximum(most, absolute(x[i]));
            poison += 0.0 * x[i];
        }
        parts[begin / block_rows] = poison == 0.0 ? most : std::numeric_limits<double>::infinity();
    });
    double most = 0.0;
    for (const double value : parts) most = maximum(most, value);
    return most;
}

}  // namespace sglb
