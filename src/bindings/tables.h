// Raw tables of any number type, and the thresholds that turn them into codes.
#pragma once

#include "arrays.h"
#include "bins.h"

namespace sglb::bindings {

using AnyMatrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

inline Type type_of(nb::dlpack::dtype type) {
    const auto is = [&](nb::dlpack::dtype other) { return type == other; };
    if (is(nb::dtype<float>())) return Type::f32;
    if (is(nb::dtype<double>())) return Type::f64;
    if (is(nb::dtype<int8_t>())) return Type::i8;
    if (is(nb::dtype<int16_t>())) return Type::i16;
    if (is(nb::dtype<int32_t>())) return Type::i32;
    if (is(nb::dtype<int64_t>())) return Type::i64;
    if (is(nb::dtype<uint8_t>()) || is(nb::dtype<bool>())) return Type::u8;
    if (is(nb::dtype<uint16_t>())) return Type::u16;
    if (is(nb::dtype<uint32_t>())) return Type::u32;
    if (is(nb::dtype<uint64_t>())) return Type::u64;
    throw std::invalid_argument("x must be an array of floats or integers of 64 bits at most");
}

inline Table table_of(const AnyMatrix& x) {
    return {x.data(), type_of(x.dtype()), length(x, 0), length(x, 1), x.stride(0), x.stride(1)};
}

inline void check_thresholds(const In<double, 2>& thresholds, const In<int32_t, 1>& n_thresholds,
                             int64_t n_features) {
    require(length(thresholds, 0) == n_features && length(n_thresholds, 0) == n_features &&
                thresholds.shape(1) <= 254,
            "thresholds must be (F, at most 254)");
    for (int64_t f = 0; f < n_features; ++f)
        require(n_thresholds.data()[f] >= 0 && n_thresholds.data()[f] <= length(thresholds, 1),
                "n_thresholds out of range");
}

}  // namespace sglb::bindings
