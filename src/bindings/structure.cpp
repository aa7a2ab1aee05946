// The structure of a tree: the sample it is searched on, and the search.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "owned.h"
#include "sample.h"
#include "shard_object.h"
#include "slopes_object.h"
#include "structure_object.h"

namespace sglb::bindings {

namespace {

// A number of every split as a NumPy array.
template <auto member>
auto column(const StructureObject& structure) {
    std::vector<std::remove_cvref_t<decltype(Split{}.*member)>> numbers;
    for (int d = 0; d < structure.depth; ++d) numbers.push_back(structure.splits[d].*member);
    return owned(numbers);
}

nb::tuple columns(const StructureObject& structure) {
    return nb::make_tuple(column<&Split::feature>(structure), column<&Split::low>(structure),
                          column<&Split::high>(structure));
}

// The columns that structures are searched on.
struct SearchedColumns {
    In<int32_t, 1> n_codes;
    In<uint8_t, 1> kinds;

    SearchedColumns(In<int32_t, 1> counts, In<uint8_t, 1> forms) : n_codes(counts), kinds(forms) {
        check_columns(n_codes, kinds);
    }
};

// A sample and the objects that it points into.
struct SampleObject {
    Sample sample;
    nb::object shard, slopes;  // kept alive
    std::optional<SearchedColumns> columns;
    nb::object bundles = nb::none();  // how columns that are searched are features
    double time = 0.0;                // of the chain: learning rates so far

    void begin(nb::handle_t<ShardObject> shard_object, nb::handle_t<SlopesObject> slopes_object,
               SamplePlan plan, double noise, double subsample, BoundsPair bounds,
               const Draws& draws) {
        const auto& rows = nb::cast<const ShardObject&>(shard_object);
        const auto& object = nb::cast<const SlopesObject&>(slopes_object);
        require(object.slopes.n_rows == rows.n_rows(), "slopes must be (K, N)");
        require(!plan.newton || object.slopes.hessian || object.slopes.newton,
                "newton needs second derivatives");
        shard = nb::borrow(shard_object);
        slopes = nb::borrow(slopes_object);
        plan.n_outputs = std::min(plan.n_outputs, object.slopes.n_outputs);
        sample.begin({rows.codes,
                      object.of(rows.numbers),
                      {subsample, draws.seed, draws.step},
                      rows.weights.weights,
                      noise,
                      bounds_of(bounds),
                      plan,
                      draws.seed,
                      draws.step});
    }

    int n_threads() const { return nb::cast<const ShardObject&>(shard).n_threads; }

    void draw(nb::handle_t<ShardObject> shard_object, nb::handle_t<SlopesObject> slopes_object,
              const SamplePlan& plan, double noise, double subsample, BoundsPair bounds,
              const Draws& draws) {
        begin(shard_object, slopes_object, plan, noise, subsample, bounds, draws);
        require(nb::cast<const ShardObject&>(shard).numbers.whole(),
                "a shard with some of the rows draws its part of a sample in stages");
        const int threads = n_threads();
        LockRelease release;
        sample.finish(threads);
    }
};

SamplePlan plan_of(int64_t n_rows, int64_t n_outputs, bool newton) {
    require(n_rows >= 0 && n_outputs >= 1, "a plan wants no rows or more, and an output");
    return {n_rows, n_outputs, newton};
}

std::vector<double> py_pilot(const SampleObject& object) {
    if (!object.sample.needs_pilot()) return {};
    Pilot pilot;
    object.sample.look(pilot);
    std::vector<double> numbers(pilot.squares, pilot.squares + Pilot::most);
    numbers.insert(numbers.end(), pilot.weights, pilot.weights + Pilot::most);
    return numbers;
}

int64_t py_draw_part(SampleObject& object, In<double, 1> numbers) {
    Pilot pilot;
    require(numbers.size() == (object.sample.needs_pilot() ? 2 * Pilot::most : 0),
            "the pilots of all shards, added up, are wanted");
    if (numbers.size()) {
        std::copy_n(numbers.data(), Pilot::most, pilot.squares);
        std::copy_n(numbers.data() + Pilot::most, Pilot::most, pilot.weights);
    }
    return object.sample.draw_part(pilot, object.n_threads());
}

std::vector<int64_t> py_squares(SampleObject& object, int64_t before, int64_t n_in_all) {
    object.sample.count(before, n_in_all);
    return object.sample.needs_squares() ? object.sample.squares() : std::vector<int64_t>{};
}

void py_pack(SampleObject& object, In<int64_t, 1> squares) {
    object.sample.pack({squares.data(), squares.data() + squares.size()}, object.n_threads());
}

// Rows, codes of a row and outputs of a part of a sample.
std::tuple<int64_t, int64_t, int64_t> py_part_shape(const SampleObject& object) {
    const Sample& sample = object.sample;
    return {sample.n_rows(), sample.n_columns(), sample.n_outputs()};
}

std::vector<double> py_write(const SampleObject& object, Array<uint8_t, 2> codes,
                             Array<int64_t, 2> words) {
    const Sample& sample = object.sample;
    require(length(codes, 0) == sample.n_rows() && length(codes, 1) == sample.n_columns() &&
                length(words, 0) == sample.n_outputs() && length(words, 1) == sample.n_rows(),
            "codes must be (N, C), words (K, N)");
    LockRelease release;
    sample.write(codes.data(), words.data());
    const Packing packing = sample.packing();
    return {packing.scales.gradient, packing.scales.mass, packing.scales.unit,
            packing.scales.fine ? 1.0 : 0.0, packing.share};
}

void py_join(SampleObject& object, const std::vector<In<uint8_t, 2>>& codes,
             const std::vector<In<int64_t, 2>>& words, In<double, 1> packing,
             const SearchedColumns& columns, int64_t n_in_all, int64_t n_copies,
             const Draws& draws) {
    require(!codes.empty() && codes.size() == words.size() && packing.size() == 5,
            "a sample is joined from one part or more");
    const int64_t width = length(columns.n_codes, 0), n_words = length(words.front(), 0);
    std::vector<SamplePart> parts;
    for (size_t i = 0; i < codes.size(); ++i) {
        require(length(codes[i], 1) == width && length(words[i], 0) == n_words &&
                    length(codes[i], 0) == length(words[i], 1),
                "codes must be (N, C), words (K, N)");
        parts.push_back({length(codes[i], 0), codes[i].data(), words[i].data()});
    }
    object.columns = columns;
    SampleInput input{};
    input.codes = {nullptr,
                   (width + 7) / 8 * 8,
                   width,
                   object.columns->n_codes.data(),
                   object.columns->kinds.data(),
                   nullptr,
                   0};
    input.slopes.numbers = {0, n_in_all, n_in_all, n_copies};
    input.seed = draws.seed;
    input.step = draws.step;
    const double* scale = packing.data();
    LockRelease release;
    object.sample.join(input, {{scale[0], scale[1], scale[2], scale[3] != 0.0}, scale[4]}, parts,
                       n_words);
}

// A search has scratch memory of its own, used from step to step.
struct SearchObject {
    Workspace workspace;
    int max_depth;
    double l2;
    int n_threads;

    SearchObject(int depth, double regularization, int threads)
        : max_depth(depth), l2(regularization), n_threads(threads) {
        require(max_depth >= 1 && max_depth <= most_depth, "max_depth must lie in 1..16");
    }

    StructureObject run(const SampleObject& object, double random_strength) {
        StructureObject result;
        LockRelease release;
        const SearchInput input =
            object.sample.search_input({max_depth, l2, random_strength, 0, 0});
        result.depth = search(input, workspace, result.splits, n_threads);
        return result;
    }
};

void bind_rows(nb::module_& m) {
    nb::class_<Draws>(m, "Draws")
        .def(nb::init<uint64_t, uint32_t>(), "seed"_a, "step"_a)
        .def_ro("seed", &Draws::seed)
        .def_ro("step", &Draws::step)
        .def("__reduce__", [](const Draws& self) {
            return nb::make_tuple(nb::type<Draws>(), nb::make_tuple(self.seed, self.step));
        });
    nb::class_<WeightsObject>(m, "Weights")
        .def(nb::init<MaybeVector, double, double, double, double>(), "weight"_array.none(),
             "unit"_a, "largest"_a, "total"_a, "typical"_a);
    nb::class_<ShardObject>(m, "Shard")
        .def(nb::init<In<uint8_t, 2>, In<uint8_t, 2>, In<int32_t, 1>, In<uint8_t, 1>,
                      const WeightsObject&, Numbers, int>(),
             "code_columns"_array, "code_rows"_array, "n_codes"_array, "kinds"_array, "weights"_a,
             "numbers"_a, "n_threads"_a);
}

void bind_splits(nb::module_& m) {
    nb::class_<StructureObject>(m, "Structure")
        .def(nb::init<In<int32_t, 1>, In<uint8_t, 1>, In<uint8_t, 1>>(), "features"_array,
             "lows"_array, "highs"_array)
        .def_ro("depth", &StructureObject::depth)
        .def_prop_ro("n_leaves", &StructureObject::n_leaves)
        .def_prop_ro("features", &column<&Split::feature>, nb::rv_policy::move)
        .def_prop_ro("lows", &column<&Split::low>, nb::rv_policy::move)
        .def_prop_ro("highs", &column<&Split::high>, nb::rv_policy::move)
        .def("__iter__", [](const StructureObject& self) { return nb::iter(columns(self)); })
        .def("__reduce__", [](const StructureObject& self) {
            return nb::make_tuple(nb::type<StructureObject>(), columns(self));
        });
}

}  // namespace

void bind_structure(nb::module_& m) {
    bind_rows(m);
    bind_splits(m);
    nb::class_<SamplePlan>(m, "SamplePlan")
        .def(
            "__init__",
            [](SamplePlan* self, int64_t n_rows, int64_t n_outputs, bool newton) {
                new (self) SamplePlan(plan_of(n_rows, n_outputs, newton));
            },
            "n_rows"_a, "n_outputs"_a, "newton"_a)
        .def("__reduce__", [](const SamplePlan& self) {
            return nb::make_tuple(nb::type<SamplePlan>(),
                                  nb::make_tuple(self.n_rows, self.n_outputs, self.newton));
        });
    nb::class_<SearchedColumns>(m, "SearchedColumns")
        .def(nb::init<In<int32_t, 1>, In<uint8_t, 1>>(), "n_codes"_array, "kinds"_array);
    nb::class_<SampleObject>(m, "Sample")
        .def(nb::init<>())
        .def("draw", &SampleObject::draw, "shard"_a, "slopes"_a, "plan"_a, "noise"_a, "subsample"_a,
             "bounds"_a, "draws"_a)
        .def("begin", &SampleObject::begin, "shard"_a, "slopes"_a, "plan"_a, "noise"_a,
             "subsample"_a, "bounds"_a, "draws"_a)
        .def("pilot", [](const SampleObject& self) { return owned(py_pilot(self)); })
        .def("draw_part", &py_draw_part, "pilot"_array)
        .def(
            "squares",
            [](SampleObject& self, int64_t before, int64_t n_in_all) {
                return owned(py_squares(self, before, n_in_all));
            },
            "before"_a, "n_in_all"_a)
        .def("pack", &py_pack, "squares"_array)
        .def_prop_ro("planned_rows",
                     [](const SampleObject& self) { return self.sample.planned_rows(); })
        .def_prop_ro("packed_for",
                     [](const SampleObject& self) { return self.sample.packed_for(); })
        .def_prop_ro("part_shape", &py_part_shape)
        .def(
            "write",
            [](const SampleObject& self, Array<uint8_t, 2> codes, Array<int64_t, 2> words) {
                return owned(py_write(self, codes, words));
            },
            "codes"_array, "words"_array)
        .def("join", &py_join, "codes"_a, "words"_a, "packing"_array, "columns"_a, "n_in_all"_a,
             "n_copies"_a, "draws"_a)
        .def_rw("bundles", &SampleObject::bundles, nb::arg().none())
        .def_rw("time", &SampleObject::time)
        .def_prop_ro("n_table_rows",
                     [](const SampleObject& self) { return self.sample.n_table_rows(); })
        .def_prop_ro("seed", [](const SampleObject& self) { return self.sample.seed(); })
        .def_prop_ro("step", [](const SampleObject& self) { return self.sample.step(); })
        .def_prop_ro("n_rows", [](const SampleObject& self) { return self.sample.n_rows(); });
    nb::class_<SearchObject>(m, "GreedySearch")
        .def(nb::init<int, double, int>(), "max_depth"_a, "l2"_a, "n_threads"_a)
        .def("run", &SearchObject::run, "sample"_a, "random_strength"_a);
}

}  // namespace sglb::bindings
