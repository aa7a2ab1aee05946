// The rows a chain learns from as one Python object: checked once, used at every step.
#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.h"
#include "sample.h"
#include "search.h"

namespace sglb::bindings {

// Unit of the weights; largest and total in that unit.
using WeightFacts = std::tuple<double, double, double>;

inline Weights weights_of(const MaybeVector& weight, const WeightFacts& facts, size_t n_rows) {
    require(!weight || weight->shape(0) == n_rows, "weight must be (N,)");
    const auto [unit, largest, total] = facts;
    require(unit > 0.0 && largest >= 0.0 && total >= 0.0,
            "the unit of the weights must be positive, largest and total not negative");
    return {pointer(weight), unit, largest, total};
}

inline Codes codes_of(const In<uint8_t, 2>& code_rows, const In<int32_t, 1>& n_codes,
                      const In<uint8_t, 1>& kinds) {
    require(code_rows.shape(1) % 8 == 0 && n_codes.shape(0) <= code_rows.shape(1) &&
                n_codes.shape(0) + 7 >= code_rows.shape(1) && kinds.shape(0) == n_codes.shape(0),
            "code_rows must be (N, F padded to 8), n_codes and kinds (F,)");
    for (size_t f = 0; f < n_codes.shape(0); ++f)
        require(n_codes.data()[f] >= 1 && n_codes.data()[f] <= 256 && kinds.data()[f] <= 3,
                "n_codes must lie in 1..256, kinds in 0..3");
    return {code_rows.data(), length(code_rows, 1), length(n_codes, 0),
            n_codes.data(),   kinds.data(),         nullptr};
}

struct RowsObject {
    In<uint8_t, 2> code_columns, code_rows;
    In<int32_t, 1> n_codes;
    In<uint8_t, 1> kinds;
    MaybeVector weight;
    Codes codes;
    Weights weights;
    double typical_weight;

    RowsObject(In<uint8_t, 2> columns, In<uint8_t, 2> rows, In<int32_t, 1> counts,
               In<uint8_t, 1> forms, MaybeVector multiplicity, WeightFacts facts)
        : code_columns(columns),
          code_rows(rows),
          n_codes(counts),
          kinds(forms),
          weight(multiplicity),
          codes(codes_of(code_rows, n_codes, kinds)),
          weights(weights_of(weight, facts, code_rows.shape(0))) {
        require(columns.shape(0) >= n_codes.shape(0) && columns.shape(1) == rows.shape(0),
                "code_columns must be (F, N), F at least the number of columns searched");
        // With fewer columns to search than features some are bundles, which have no codes by
        // feature.
        if (columns.shape(0) == n_codes.shape(0)) codes.columns = code_columns.data();
        typical_weight = sglb::typical_weight(weights, n_rows());
    }

    int64_t n_rows() const { return length(code_rows, 0); }
    double largest_weight() const { return weights.largest * weights.unit; }
};

}  // namespace sglb::bindings
