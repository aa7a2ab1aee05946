// Feature values to codes: thresholds per feature, then one byte per value.
//
//     code(x) = 0                              if x is missing (NaN)
//             = 1 + number of thresholds < x   otherwise, so x <= t_0 has code 1
#pragma once

#include <cstdint>

namespace sglb {

enum class Type { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 };

// A matrix as the caller holds it: any of the types above, any strides (in elements).
struct Table {
    const void* data;
    Type type;
    int64_t n_rows, n_features;
    int64_t row_stride, feature_stride;
};

// Calls f(pointer of the table's type).
template <class F>
void with_type(const Table& x, F&& f) {
    switch (x.type) {
        case Type::f32:
            return f(static_cast<const float*>(x.data));
        case Type::f64:
            return f(static_cast<const double*>(x.data));
        case Type::i8:
            return f(static_cast<const int8_t*>(x.data));
        case Type::i16:
            return f(static_cast<const int16_t*>(x.data));
        case Type::i32:
            return f(static_cast<const int32_t*>(x.data));
        case Type::i64:
            return f(static_cast<const int64_t*>(x.data));
        case Type::u8:
            return f(static_cast<const uint8_t*>(x.data));
        case Type::u16:
            return f(static_cast<const uint16_t*>(x.data));
        case Type::u32:
            return f(static_cast<const uint32_t*>(x.data));
        case Type::u64:
            return f(static_cast<const uint64_t*>(x.data));
    }
}

// Which rows thresholds are found on: OUT rows [n], rising, of n_rows. Needs n <= n_rows.
void threshold_rows(int64_t n_rows, int64_t n, uint64_t seed, int64_t* rows);

// Thresholds of every feature, found on at most sample_rows rows.
// OUT thresholds [n_features * (max_bins - 1)], increasing, padded with +infinity; n_thresholds.
void find_thresholds(const Table& x, int max_bins, int64_t sample_rows, uint64_t seed,
                     double* thresholds, int32_t* n_thresholds, int n_threads);

// OUT rows [n_rows * stride]: the same codes with one row's codes side by side, padded with 0.
void to_rows(const uint8_t* columns, int64_t n_features, int64_t n_rows, int64_t stride,
             uint8_t* rows, int n_threads);

}  // namespace sglb
