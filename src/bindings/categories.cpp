// Levels of categorical columns: their statistics, combinations and numbers.
#include "categories.h"

#include "tables.h"

namespace sglb::bindings {

namespace {

// Levels whose numbers stay below n_levels: a table is written at them.
Levels levels_of(const In<int32_t, 2>& levels, const In<int64_t, 1>& n_levels) {
    const Levels found{levels.data(), n_levels.data(), length(levels, 0), length(levels, 1)};
    require(length(n_levels, 0) == found.n_columns, "n_levels must be (C,)");
    for (int64_t c = 0; c < found.n_columns; ++c)
        for (int64_t row = 0; row < found.n_rows; ++row) {
            const int64_t level = found.data[c * found.n_rows + row];
            require(level >= 0 && level < found.n_levels[c], "level out of range");
        }
    return found;
}

Targets targets_of(const In<double, 2>& targets, const MaybeVector& weight, const Levels& levels) {
    require(length(targets, 1) == levels.n_rows && (!weight || length(*weight, 0) == levels.n_rows),
            "targets must be (K, N), weight (N,)");
    return {targets.data(), pointer(weight), length(targets, 0)};
}

Combinations combinations_of(const In<int32_t, 2>& members, const Levels& levels) {
    const Combinations found{members.data(), length(members, 0), length(members, 1)};
    for (int64_t i = 0; i < found.n; ++i) {
        double n_possible = 1.0;
        for (int64_t m = 0; m < found.width; ++m) {
            const int32_t member = found.members[i * found.width + m];
            require(member >= -1 && member < levels.n_columns, "member out of range");
            if (member >= 0) n_possible *= static_cast<double>(levels.n_levels[member]);
        }
        require(n_possible < 0x1p62, "a combination has too many possible levels");
    }
    return found;
}

void py_permutation(uint64_t seed, uint32_t copy, Array<uint32_t, 1> order) {
    require(length(order, 0) < int64_t{1} << 32, "order must have fewer than 2^32 rows");
    nb::gil_scoped_release release;
    permutation(seed, copy, length(order, 0), order.data());
}

void py_level_sums(In<int32_t, 2> levels, In<int64_t, 1> n_levels, In<double, 2> targets,
                   MaybeVector weight, Array<double, 2> sums, Array<double, 1> counts,
                   int n_threads) {
    const Levels found = levels_of(levels, n_levels);
    const Targets wanted = targets_of(targets, weight, found);
    int64_t total = 0;
    for (int64_t c = 0; c < found.n_columns; ++c) total += found.n_levels[c];
    require(length(counts, 0) == total && length(sums, 1) == total &&
                length(sums, 0) == wanted.n_targets,
            "sums must be (K, L), counts (L,), L the sum of n_levels");
    nb::gil_scoped_release release;
    level_sums(found, wanted, sums.data(), counts.data(), n_threads);
}

void py_ordered_codes(In<int32_t, 2> levels, In<int64_t, 1> n_levels, In<double, 2> targets,
                      MaybeVector weight, In<uint32_t, 2> orders, In<double, 1> means, double unit,
                      In<double, 2> thresholds, In<int32_t, 1> n_thresholds,
                      Array<uint8_t, 2> columns, int n_threads) {
    const Levels found = levels_of(levels, n_levels);
    const Targets wanted = targets_of(targets, weight, found);
    const int64_t n_features = found.n_columns * wanted.n_targets;
    check_thresholds(thresholds, n_thresholds, n_features);
    require(length(orders, 1) == found.n_rows && length(means, 0) == wanted.n_targets,
            "orders must be (P, N), means (K,)");
    for (size_t i = 0; i < orders.size(); ++i)
        require(orders.data()[i] < found.n_rows, "a row of an order is out of range");
    require(
        length(columns, 0) == n_features && length(columns, 1) == length(orders, 0) * found.n_rows,
        "columns must be (C * K, P * N)");
    const Ordered ordered{orders.data(),     length(orders, 0),   means.data(),         unit,
                          thresholds.data(), n_thresholds.data(), length(thresholds, 1)};
    nb::gil_scoped_release release;
    ordered_codes(found, wanted, ordered, columns.data(), n_threads);
}

void py_combine(In<int32_t, 2> levels, In<int64_t, 1> n_levels, In<int32_t, 2> members,
                Array<int32_t, 2> numbers, Array<int64_t, 1> n_numbers, int n_threads) {
    const Levels found = levels_of(levels, n_levels);
    const Combinations wanted = combinations_of(members, found);
    require(length(numbers, 0) == wanted.n && length(numbers, 1) == found.n_rows &&
                length(n_numbers, 0) == wanted.n,
            "numbers must be (M, N), n_numbers (M,)");
    nb::gil_scoped_release release;
    combine(found, wanted, numbers.data(), n_numbers.data(), n_threads);
}

void py_combination_gains(In<int32_t, 2> levels, In<int64_t, 1> n_levels, In<int32_t, 2> members,
                          In<double, 2> targets, MaybeVector weight, double ridge,
                          Array<double, 1> gains, Array<double, 1> errors, int n_threads) {
    const Levels found = levels_of(levels, n_levels);
    const Combinations wanted = combinations_of(members, found);
    const Targets explained = targets_of(targets, weight, found);
    require(length(gains, 0) == wanted.n && length(errors, 0) == wanted.n,
            "gains and errors must be (M,)");
    nb::gil_scoped_release release;
    combination_gains(found, wanted, explained, ridge, gains.data(), errors.data(), n_threads);
}

int64_t py_number_keys(In<uint64_t, 1> keys, Array<int32_t, 1> numbers) {
    require(numbers.shape(0) == keys.shape(0), "numbers must be as long as keys");
    nb::gil_scoped_release release;
    return number_keys(keys.data(), length(keys, 0), numbers.data());
}

void check_slots(int64_t n_keys, int64_t n_slots) {
    require(n_slots > n_keys && (n_slots & (n_slots - 1)) == 0 && n_keys < int64_t{1} << 31,
            "slots must be a power of two above the number of keys");
}

void py_place_keys(In<uint64_t, 1> keys, Array<int32_t, 1> slots) {
    check_slots(length(keys, 0), length(slots, 0));
    nb::gil_scoped_release release;
    place_keys(keys.data(), length(keys, 0), slots.data(), length(slots, 0));
}

void py_find_keys(In<uint64_t, 1> wanted, In<uint64_t, 1> keys, In<int32_t, 1> slots,
                  Array<int32_t, 1> places, int n_threads) {
    check_slots(length(keys, 0), length(slots, 0));
    require(places.shape(0) == wanted.shape(0), "places must be as long as wanted");
    nb::gil_scoped_release release;
    find_keys(wanted.data(), length(wanted, 0), keys.data(), length(keys, 0), slots.data(),
              length(slots, 0), places.data(), n_threads);
}

}  // namespace

void bind_categories(nb::module_& m) {
    m.def("permutation", &py_permutation, "seed"_a, "copy"_a, "order"_array);
    m.def("level_sums", &py_level_sums, "levels"_array, "n_levels"_array, "targets"_array,
          "weight"_array.none(), "sums"_array, "counts"_array, "n_threads"_a);
    m.def("ordered_codes", &py_ordered_codes, "levels"_array, "n_levels"_array, "targets"_array,
          "weight"_array.none(), "orders"_array, "means"_array, "unit"_a, "thresholds"_array,
          "n_thresholds"_array, "columns"_array, "n_threads"_a);
    m.def("combine", &py_combine, "levels"_array, "n_levels"_array, "members"_array,
          "numbers"_array, "n_numbers"_array, "n_threads"_a);
    m.def("combination_gains", &py_combination_gains, "levels"_array, "n_levels"_array,
          "members"_array, "targets"_array, "weight"_array.none(), "ridge"_a, "gains"_array,
          "errors"_array, "n_threads"_a);
    m.def("number_keys", &py_number_keys, "keys"_array, "numbers"_array);
    m.def("place_keys", &py_place_keys, "keys"_array, "slots"_array);
    m.def("find_keys", &py_find_keys, "wanted"_array, "keys"_array, "slots"_array, "places"_array,
          "n_threads"_a);
}

}  // namespace sglb::bindings
