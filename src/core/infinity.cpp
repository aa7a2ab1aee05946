#include "infinity.h"

#include <atomic>
#include <bit>
#include <type_traits>

#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

// The bits of infinity, the sign shifted out.
struct Single {
    using Bits = uint32_t;
    static constexpr Bits infinity = 0xff000000U;
};
struct Double {
    using Bits = uint64_t;
    static constexpr Bits infinity = 0xffe0000000000000ULL;
};

template <class T>
using FormatOf = std::conditional_t<std::is_same_v<T, float>, Single, Double>;

template <class T>
SGLB_INLINE bool is_infinite(T x) {
    using Format = FormatOf<T>;
    return std::bit_cast<typename Format::Bits>(x) << 1 == Format::infinity;
}

// Without a way out in the middle, and with an answer as wide as a value, so that many values are
// looked at side by side.
template <class T>
SGLB_INLINE bool any_of(const T* x, int64_t n) {
    typename FormatOf<T>::Bits found = 0;
    for (int64_t i = 0; i < n; ++i) found |= is_infinite(x[i]) ? 1 : 0;
    return found != 0;
}
SGLB_KERNEL bool any_infinite(const float* x, int64_t n) { return any_of(x, n); }
SGLB_KERNEL bool any_infinite(const double* x, int64_t n) { return any_of(x, n); }

// The first place in rows begin .. end, -1 without one.
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
    bool found = false;
    if (x.row_stride == 1)
        for (int64_t f = 0; f < x.n_features; ++f)
            found |= any_infinite(first + f * x.feature_stride, n_rows);
    else if (x.feature_stride == 1)
        for (int64_t i = 0; i < n_rows; ++i)
            found |= any_infinite(first + i * x.row_stride, x.n_features);
    else
        found = find(x, values, begin, end) >= 0;
    return found;
}

template <class T>
int64_t first_of(const Table& x, const T* values, int n_threads) {
    std::atomic<bool> found{false};
    parallel_rows(x.n_rows, n_threads, [&](int64_t begin, int64_t end) {
        if (any(x, values, begin, end)) found.store(true, std::memory_order_relaxed);
    });
    return found ? find(x, values, 0, x.n_rows) : -1;
}

}  // namespace

int64_t first_infinity(const Table& x, int n_threads) {
    int64_t place = -1;
    with_type(x, [&](const auto* values) {
        if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(*values)>>)
            place = first_of(x, values, n_threads);
    });
    return place;
}

}  // namespace sglb
