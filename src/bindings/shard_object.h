// Some rows of the training data as one Python object: checked once, used at every step.
#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.h"
#include "row_numbers.h"
#include "search.h"
#include "weights.h"
#include "workspace.h"

namespace sglb::bindings {

// Which numbers of a stream of noise a step uses.
struct Draws {
    uint64_t seed;
    uint32_t step;
};

struct WeightsObject {
    MaybeVector values;
    Weights weights;

    WeightsObject(MaybeVector weight, double unit, double largest, double total, double typical)
        : values(weight), weights{pointer(values), unit, largest, total, typical} {
        // No rows with weights are not rows without weights.
        static const double no_row = 1.0;
        if (values && !weights.weight) weights.weight = &no_row;
        require(unit > 0.0 && largest >= 0.0 && total >= 0.0 && typical > 0.0,
                "unit and typical weight must be positive, largest and total not negative");
    }
};

// How many codes each column has, and how they may be split.
inline void check_columns(const In<int32_t, 1>& n_codes, const In<uint8_t, 1>& kinds) {
    require(kinds.shape(0) == n_codes.shape(0), "n_codes and kinds must be (F,)");
    for (size_t f = 0; f < n_codes.shape(0); ++f)
        require(n_codes.data()[f] >= 1 && n_codes.data()[f] <= 256 && kinds.data()[f] <= 3,
                "n_codes must lie in 1..256, kinds in 0..3");
}

inline Codes codes_of(const In<uint8_t, 2>& code_rows, const In<int32_t, 1>& n_codes,
                      const In<uint8_t, 1>& kinds, int64_t n_rows) {
    require(code_rows.shape(1) % 8 == 0 && n_codes.shape(0) <= code_rows.shape(1) &&
                n_codes.shape(0) + 7 >= code_rows.shape(1),
            "code_rows must be (N, F padded to 8)");
    check_columns(n_codes, kinds);
    return {code_rows.shape(0) ? code_rows.data() : nullptr,
            length(code_rows, 1),
            length(n_codes, 0),
            n_codes.data(),
            kinds.data(),
            nullptr,
            n_rows};
}

// The number of the first row, rows of a copy in all shards, copies.
using Numbers = std::tuple<int64_t, int64_t, int64_t>;

struct ShardObject {
    In<uint8_t, 2> code_columns, code_rows;
    In<int32_t, 1> n_codes;
    In<uint8_t, 1> kinds;
    WeightsObject weights;
    Codes codes;
    RowNumbers numbers;
    int n_threads;
    Workspace workspace;

    ShardObject(In<uint8_t, 2> columns, In<uint8_t, 2> rows, In<int32_t, 1> counts,
                In<uint8_t, 1> forms, const WeightsObject& multiplicity, Numbers where, int threads)
        : code_columns(columns),
          code_rows(rows),
          n_codes(counts),
          kinds(forms),
          weights(multiplicity),
          codes(codes_of(code_rows, n_codes, kinds, n_rows())),
          n_threads(threads) {
        require(columns.shape(0) >= n_codes.shape(0) &&
                    (columns.shape(1) == rows.shape(0) || !rows.shape(0)),
                "code_columns must be (F, N), F at least the number of columns searched");
        require(rows.shape(0) || !columns.shape(1) || columns.shape(0) == n_codes.shape(0),
                "code_rows must be (N, F padded to 8) where columns are bundled");
        require(!weights.values || weights.values->shape(0) == columns.shape(1),
                "weight must be (N,)");
        // With fewer columns to search than features some are bundles, which have no codes by
        // feature.
        if (columns.shape(0) == n_codes.shape(0)) codes.columns = code_columns.data();
        const auto [first, n_in_all, n_copies] = where;
        require(n_copies >= 1 && n_rows() % n_copies == 0, "N must be a multiple of the copies");
        numbers = {first, n_rows() / n_copies, n_in_all, n_copies};
        require(first >= 0 && first + numbers.n_here <= n_in_all,
                "the rows of a shard must be rows of the table");
    }

    int64_t n_rows() const { return length(code_columns, 1); }
    int64_t n_features() const { return length(code_columns, 0); }
};

}  // namespace sglb::bindings
