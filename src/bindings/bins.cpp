// Thresholds and codes.
#include "encoder.h"
#include "infinity.h"
#include "tables.h"

namespace sglb::bindings {

namespace {

void py_threshold_rows(int64_t n_rows, uint64_t seed, Array<int64_t, 1> rows) {
    const int64_t n = length(rows, 0);
    require(n <= n_rows && n_rows < int64_t{1} << 31, "rows must be at most n_rows < 2^31");
    LockRelease release;
    threshold_rows(n_rows, n, seed, rows.data());
}

void py_find_thresholds(AnyMatrix x, int max_bins, int64_t sample_rows, uint64_t seed,
                        Array<double, 2> thresholds, Array<int32_t, 1> n_thresholds,
                        int n_threads) {
    require(max_bins >= 2 && max_bins <= 255, "max_bins must lie in 2..255");
    require(thresholds.shape(0) == x.shape(1) && length(thresholds, 1) == max_bins - 1 &&
                n_thresholds.shape(0) == x.shape(1),
            "thresholds must be (F, max_bins - 1)");
    const Table table = table_of(x);
    LockRelease release;
    find_thresholds(table, max_bins, sample_rows, seed, thresholds.data(), n_thresholds.data(),
                    n_threads);
}

void py_encode(AnyMatrix x, In<double, 2> thresholds, In<int32_t, 1> n_thresholds,
               Array<uint8_t, 2> columns, int n_threads) {
    check_thresholds(thresholds, n_thresholds, length(x, 1));
    require(columns.shape(0) == x.shape(1) && columns.shape(1) == x.shape(0),
            "columns must be (F, N)");
    const Table table = table_of(x);
    LockRelease release;
    encode(table, thresholds.data(), n_thresholds.data(), length(thresholds, 1), columns.data(),
           n_threads);
}

void py_to_rows(In<uint8_t, 2> columns, Array<uint8_t, 2> rows, int n_threads) {
    require(rows.shape(0) == columns.shape(1) && rows.shape(1) >= columns.shape(0) &&
                rows.shape(1) % 8 == 0,
            "rows must be (N, F padded to a multiple of 8)");
    LockRelease release;
    to_rows(columns.data(), length(columns, 0), length(columns, 1), length(rows, 1), rows.data(),
            n_threads);
}

int64_t py_first_infinity(AnyMatrix x, int n_threads) {
    const Table table = table_of(x);
    LockRelease release;
    return first_infinity(table, n_threads);
}

}  // namespace

void bind_bins(nb::module_& m) {
    m.def("threshold_rows", &py_threshold_rows, "n_rows"_a, "seed"_a, "rows"_array);
    m.def("find_thresholds", &py_find_thresholds, "x"_array, "max_bins"_a, "sample_rows"_a,
          "seed"_a, "thresholds"_array, "n_thresholds"_array, "n_threads"_a);
    m.def("encode", &py_encode, "x"_array, "thresholds"_array, "n_thresholds"_array,
          "columns"_array, "n_threads"_a);
    m.def("first_infinity", &py_first_infinity, "x"_array, "n_threads"_a);
    m.def("to_rows", &py_to_rows, "columns"_array, "rows"_array, "n_threads"_a);
}

}  // namespace sglb::bindings
