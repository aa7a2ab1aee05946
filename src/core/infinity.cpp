#include "infinity.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

template <class T>
SGLB_INLINE bool is_infinite(T x) {
    return std::fabs(x) == std::numeric_limits<T>::infinity();
}

// Without a way out in the middle, and with an answer as wide as a value, so that many values are
// looked at side by side.
template <class T>
SGLB_INLINE bool any_of(const T* x, int64_t n) {
    std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t> any = 0;
    for (int64_t i = 0; i < n; ++i) any |= is_infinite(x[i]) ? 1 : 0;
    return any != 0;
}
SGLB_KERNEL bool any_infinite(const float* x, int64_t n) { return any_of(x, n); }
SGLB_KERNEL bool any_infinite(const double* x, int64_t n) { return any_of(x, n); }

// Position of the first in rows begin .. end, -1 without one.
template <class T>
int64_t find(const Table& x, const T* values, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
        for (int64_t f = 0; f < x.n_features; ++f)
            if (is_infinite(values[row * x.row_stride + f * x.feature_stride]))
                return row * x.n_features + f;
    return -1;
}

// Whether there is one in these rows: as they lie in memory, where they lie side by side.
template <class T>
bool any(const Table& x, const T* values, int64_t begin, int64_t end) {
    const T* first = values + begin * x.row_stride;
    const int64_t n_rows = end - begin;
    if (x.feature_stride == 1 && x.row_stride == x.n_features)
        return any_infinite(first, n_rows * x.n_features);
    bool any_found = false;
    if (x.row_stride == 1)
        for (int64_t f = 0; f < x.n_features; ++f)
            any_found |= any_infinite(first + f * x.feature_stride, n_rows);
    else if (x.feature_stride == 1)
        for (int64_t i = 0; i < n_rows; ++i)
            any_found |= any_infinite(first + i * x.row_stride, x.n_features);
    else
        any_found = find(x, values, begin, end) >= 0;
    return any_found;
}

template <class T>
int64_t first_of(const Table& x, const T* values, int n_threads) {
    std::atomic<bool> any_found{false};
    parallel_rows(x.n_rows, n_threads, [&](int64_t begin, int64_t end) {
        if (any(x, values, begin, end)) any_found.store(true, std::memory_order_relaxed);
    });
    return any_found ? find(x, values, 0, x.n_rows) : -1;
}

}  // namespace

int64_t first_infinity(const Table& x, int n_threads) {
    int64_t first = -1;
    with_type(x, [&](const auto* values) {
        if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(*values)>>)
            first = first_of(x, values, n_threads);
    });
    return first;
}

}  // namespace sglb
