// Levels of categorical columns: their statistics, combinations and numbers.
#include "categories.h"

#include <numeric>

#include "combinations.h"
#include "keys.h"
#include "tables.h"

namespace sglb::bindings {

namespace {

// Levels whose numbers stay below n_levels, because a table is written at them.
struct LevelsObject {
    In<int32_t, 2> data;
    In<int64_t, 1> n_levels;
    Levels levels;

    LevelsObject(In<int32_t, 2> numbers, In<int64_t, 1> counts)
        : data(numbers),
          n_levels(counts),
          levels{data.data(), n_levels.data(), length(data, 0), length(data, 1)} {
        require(length(n_levels, 0) == levels.n_columns, "n_levels must be (C,)");
        for (int64_t c = 0; c < levels.n_columns; ++c)
            for (int64_t row = 0; row < levels.n_rows; ++row) {
                const int64_t level = levels.data[c * levels.n_rows + row];
                require(level >= 0 && level < levels.n_levels[c], "level out of range");
            }
    }
};

struct TargetsObject {
    In<double, 2> values;
    MaybeVector weight;

    TargetsObject(In<double, 2> numbers, MaybeVector weights) : values(numbers), weight(weights) {
        require(!weight || weight->shape(0) == values.shape(1), "weight must be (N,)");
    }

    Targets of(const Levels& levels) const {
        require(length(values, 1) == levels.n_rows, "targets must be (K, N)");
        return {values.data(), pointer(weight), length(values, 0)};
    }
};

struct PriorObject {
    In<double, 1> means;
    double unit;
};

Combinations combinations_of(const In<int32_t, 2>& members, const Levels& levels) {
    const Combinations result{members.data(), length(members, 0), length(members, 1)};
    for (int64_t i = 0; i < result.n; ++i) {
        double n_possible = 1.0;
        for (int64_t m = 0; m < result.width; ++m) {
            const int32_t member = result.members[i * result.width + m];
            require(member >= -1 && member < levels.n_columns, "member out of range");
            if (member >= 0) n_possible *= static_cast<double>(levels.n_levels[member]);
        }
        require(n_possible < most_keys, "a combination has too many possible levels");
    }
    return result;
}

void py_permutation(uint64_t seed, uint32_t copy, Array<uint32_t, 1> order) {
    require(length(order, 0) < int64_t{1} << 32, "order must have fewer than 2^32 rows");
    LockRelease release;
    permutation(seed, copy, length(order, 0), order.data());
}

void py_level_sums(const LevelsObject& object, const TargetsObject& target_object,
                   Array<double, 2> sums, Array<double, 1> counts, int n_threads) {
    const Levels& levels = object.levels;
    const Targets targets = target_object.of(levels);
    const int64_t total =
        std::accumulate(levels.n_levels, levels.n_levels + levels.n_columns, int64_t{0});
    require(length(counts, 0) == total && length(sums, 1) == total &&
                length(sums, 0) == targets.n_targets,
            "sums must be (K, L), counts (L,), L the sum of n_levels");
    LockRelease release;
    level_sums(levels, targets, sums.data(), counts.data(), n_threads);
}

void py_ordered_codes(const LevelsObject& object, const TargetsObject& target_object,
                      In<uint32_t, 2> orders, const PriorObject& prior, In<double, 2> thresholds,
                      In<int32_t, 1> n_thresholds, Array<uint8_t, 2> columns, int n_threads) {
    const Levels& levels = object.levels;
    const Targets targets = target_object.of(levels);
    const int64_t n_features = levels.n_columns * targets.n_targets;
    check_thresholds(thresholds, n_thresholds, n_features);
    require(length(orders, 1) == levels.n_rows && length(prior.means, 0) == targets.n_targets,
            "orders must be (P, N), means (K,)");
    for (size_t i = 0; i < orders.size(); ++i)
        require(orders.data()[i] < levels.n_rows, "a row of an order is out of range");
    require(
        length(columns, 0) == n_features && length(columns, 1) == length(orders, 0) * levels.n_rows,
        "columns must be (C * K, P * N)");
    const OrderedStatistics ordered{
        orders.data(),     length(orders, 0),   {prior.means.data(), prior.unit},
        thresholds.data(), n_thresholds.data(), length(thresholds, 1)};
    LockRelease release;
    ordered_codes(levels, targets, ordered, columns.data(), n_threads);
}

void py_combine(const LevelsObject& object, In<int32_t, 2> members, Array<int32_t, 2> numbers,
                Array<int64_t, 1> n_numbers, int n_threads) {
    const Levels& levels = object.levels;
    const Combinations combinations = combinations_of(members, levels);
    require(length(numbers, 0) == combinations.n && length(numbers, 1) == levels.n_rows &&
                length(n_numbers, 0) == combinations.n,
            "numbers must be (M, N), n_numbers (M,)");
    LockRelease release;
    combine(levels, combinations, numbers.data(), n_numbers.data(), n_threads);
}

void py_combination_gains(const LevelsObject& object, In<int32_t, 2> members,
                          const TargetsObject& target_object, double ridge, Array<double, 1> gains,
                          Array<double, 1> errors, int n_threads) {
    const Levels& levels = object.levels;
    const Combinations combinations = combinations_of(members, levels);
    const Targets targets = target_object.of(levels);
    require(length(gains, 0) == combinations.n && length(errors, 0) == combinations.n,
            "gains and errors must be (M,)");
    LockRelease release;
    combination_gains(levels, combinations, targets, ridge, gains.data(), errors.data(), n_threads);
}

int64_t py_number_keys(In<uint64_t, 1> keys, Array<int32_t, 1> numbers) {
    require(numbers.shape(0) == keys.shape(0), "numbers must be as long as keys");
    LockRelease release;
    return number_keys(keys.data(), length(keys, 0), numbers.data());
}

void check_slots(int64_t n_keys, int64_t n_slots) {
    require(n_slots > n_keys && (n_slots & (n_slots - 1)) == 0 && n_keys < int64_t{1} << 31,
            "slots must be a power of two above the number of keys");
}

void py_place_keys(In<uint64_t, 1> keys, Array<int32_t, 1> slots) {
    check_slots(length(keys, 0), length(slots, 0));
    LockRelease release;
    place_keys(keys.data(), length(keys, 0), slots.data(), length(slots, 0));
}

void py_find_keys(In<uint64_t, 1> wanted, In<uint64_t, 1> keys, In<int32_t, 1> slots,
                  Array<int32_t, 1> numbers, int n_threads) {
    check_slots(length(keys, 0), length(slots, 0));
    require(numbers.shape(0) == wanted.shape(0), "numbers must be as long as wanted");
    LockRelease release;
    find_keys(wanted.data(), length(wanted, 0),
              {keys.data(), length(keys, 0), slots.data(), length(slots, 0)}, numbers.data(),
              n_threads);
}

}  // namespace

void bind_categories(nb::module_& m) {
    m.def("permutation", &py_permutation, "seed"_a, "copy"_a, "order"_array);
    nb::class_<LevelsObject>(m, "Levels")
        .def(nb::init<In<int32_t, 2>, In<int64_t, 1>>(), "levels"_array, "n_levels"_array);
    nb::class_<TargetsObject>(m, "LevelTargets")
        .def(nb::init<In<double, 2>, MaybeVector>(), "values"_array, "weight"_array.none());
    nb::class_<PriorObject>(m, "Prior")
        .def(nb::init<In<double, 1>, double>(), "means"_array, "unit"_a);
    m.def("level_sums", &py_level_sums, "levels"_a, "targets"_a, "sums"_array, "counts"_array,
          "n_threads"_a);
    m.def("ordered_codes", &py_ordered_codes, "levels"_a, "targets"_a, "orders"_array, "prior"_a,
          "thresholds"_array, "n_thresholds"_array, "columns"_array, "n_threads"_a);
    m.def("combine", &py_combine, "levels"_a, "members"_array, "numbers"_array, "n_numbers"_array,
          "n_threads"_a);
    m.def("combination_gains", &py_combination_gains, "levels"_a, "members"_array, "targets"_a,
          "ridge"_a, "gains"_array, "errors"_array, "n_threads"_a);
    m.def("number_keys", &py_number_keys, "keys"_array, "numbers"_array);
    m.def("place_keys", &py_place_keys, "keys"_array, "slots"_array);
    m.def("find_keys", &py_find_keys, "wanted"_array, "keys"_array, "slots"_array, "numbers"_array,
          "n_threads"_a);
}

}  // namespace sglb::bindings
