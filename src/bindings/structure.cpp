// The structure of a tree: drawn rows, packed words, the search, and all of it in one call.
#include <algorithm>
#include <tuple>
#include <vector>

#include "grow.h"
#include "quantise.h"
#include "rows_object.h"
#include "slopes_object.h"
#include "structure_object.h"

namespace sglb::bindings {

namespace {

// A NumPy array of its own with the numbers of a vector.
template <class T>
using Owned = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
Owned<T> owned(const std::vector<T>& numbers) {
    T* data = new T[numbers.size()];
    std::copy(numbers.begin(), numbers.end(), data);
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return {data, {numbers.size()}, owner};
}

// A number of every split as a NumPy array.
template <class T>
Owned<T> column(const StructureObject& structure, T Split::* member) {
    std::vector<T> numbers;
    for (int d = 0; d < structure.depth; ++d) numbers.push_back(structure.splits[d].*member);
    return owned(numbers);
}

nb::tuple columns(const StructureObject& structure) {
    return nb::make_tuple(column(structure, &Split::feature), column(structure, &Split::low),
                          column(structure, &Split::high));
}

void check_rows(const MaybeRows& rows, size_t n_rows) {
    if (!rows) return;
    for (size_t i = 0; i < rows->shape(0); ++i)
        require(rows->data()[i] < n_rows, "a structure row is out of range");
}

using RowRange = std::pair<int64_t, int64_t>;

void check_range(const RowRange& range, int64_t n_rows) {
    require(0 <= range.first && range.first <= range.second && range.second <= n_rows,
            "range must lie in 0..N");
}

// Rows, lifts, mu, floor and the share of the rows that were looked at.
std::tuple<Owned<uint32_t>, Owned<double>, double, double, double> py_draw_rows(
    const SlopesObject& object, double subsample, MaybeVector weight, WeightFacts weight_facts,
    double sigma, RowRange range, int64_t n, uint64_t seed, uint32_t step, int n_threads) {
    const Slopes& slopes = object.slopes;
    check_range(range, slopes.n_rows);
    require(0 < n && n < range.second - range.first, "n must lie in 1..rows - 1");
    const Weights weights = weights_of(weight, weight_facts, object.first.shape(1));
    Draw draw;
    {
        nb::gil_scoped_release release;
        draw_rows({slopes,
                   {subsample, seed, step},
                   weights,
                   sigma,
                   range.first,
                   range.second,
                   n,
                   seed,
                   step},
                  draw, n_threads);
    }
    if (draw.dense) std::erase(draw.lift, 0.0);
    return {owned(draw.rows), owned(draw.lift), draw.mu, draw.floor, draw.share};
}

std::pair<double, double> py_quantise(const SlopesObject& object, double subsample,
                                      MaybeVector weight, WeightFacts weight_facts, MaybeRows rows,
                                      MaybeVector lift, double mu, double floor, double sigma,
                                      SlopeBounds largest, bool newton, uint64_t seed,
                                      uint32_t step, Array<int64_t, 2> packed, int n_threads) {
    const Slopes& slopes = object.slopes;
    const int64_t n = rows ? length(*rows, 0) : slopes.n_rows;
    require(length(packed, 0) == slopes.n_outputs && length(packed, 1) == n,
            "packed must be (K, n)");
    check_rows(rows, object.first.shape(1));
    require(!lift || (rows && length(*lift, 0) == n && mu > 0.0 && floor >= 0.0),
            "lift must be (n,) beside rows, mu positive, floor not negative");
    require(!newton || slopes.hessian || slopes.newton, "newton needs second derivatives");
    const QuantiseInput input{slopes,
                              {subsample, seed, step},
                              weights_of(weight, weight_facts, object.first.shape(1)),
                              {pointer(rows), pointer(lift), n, mu, floor},
                              sigma,
                              largest.first,
                              largest.second,
                              newton,
                              seed,
                              step};
    nb::gil_scoped_release release;
    const Scales scales = quantise_scales(input);
    quantise(input, scales, packed.data(), n_threads);
    return {scales.gradient / scales.unit, scales.mass / scales.unit};
}

void check_depth(int max_depth) {
    require(max_depth >= 1 && max_depth <= most_depth, "max_depth must lie in 1..16");
}

StructureObject py_search(Workspace& workspace, In<uint8_t, 2> code_rows, In<int32_t, 1> n_codes,
                          In<uint8_t, 1> kinds, In<int64_t, 2> packed, MaybeRows rows,
                          int max_depth, double l2, double random_strength, uint64_t seed,
                          uint32_t step, int n_threads) {
    check_depth(max_depth);
    require(packed.shape(1) == (rows ? rows->shape(0) : code_rows.shape(0)),
            "packed must hold one word per structure row");
    check_rows(rows, code_rows.shape(0));
    const SearchInput input{codes_of(code_rows, n_codes, kinds),
                            packed.data(),
                            length(packed, 1),
                            length(packed, 0),
                            pointer(rows),
                            length(packed, 1),
                            !rows,
                            {max_depth, l2, random_strength, seed, step}};
    StructureObject found;
    nb::gil_scoped_release release;
    found.depth = search(input, workspace, found.splits, n_threads);
    return found;
}

StructureObject py_grow(Workspace& workspace, const RowsObject& rows, const SlopesObject& object,
                        double subsample, double sigma, SlopeBounds largest, bool newton,
                        RowRange range, int64_t n_structure_rows,
                        std::optional<int64_t> n_structure_outputs, int max_depth, double l2,
                        double random_strength, uint64_t seed, uint32_t step, int n_threads) {
    check_depth(max_depth);
    const Slopes& slopes = object.slopes;
    require(slopes.n_rows == rows.n_rows(), "slopes must be (K, N)");
    require(n_structure_rows >= 0, "n_structure_rows must not be negative");
    require(n_structure_outputs.value_or(1) >= 1, "n_structure_outputs must be positive");
    check_range(range, slopes.n_rows);
    require(!newton || slopes.hessian || slopes.newton, "newton needs second derivatives");
    const GrowInput input{rows.codes,
                          slopes,
                          {subsample, seed, step},
                          rows.weights,
                          sigma,
                          largest.first,
                          largest.second,
                          newton,
                          range.first,
                          range.second,
                          n_structure_rows,
                          n_structure_outputs.value_or(slopes.n_outputs),
                          {max_depth, l2, random_strength, seed, step}};
    StructureObject found;
    nb::gil_scoped_release release;
    found.depth = grow(input, workspace, found.splits, n_threads);
    return found;
}

}  // namespace

void bind_structure(nb::module_& m) {
    nb::class_<Workspace>(m, "Workspace").def(nb::init<>());
    nb::class_<StructureObject>(m, "Structure")
        .def(nb::init<In<int32_t, 1>, In<uint8_t, 1>, In<uint8_t, 1>>(), "features"_array,
             "lows"_array, "highs"_array)
        .def_ro("depth", &StructureObject::depth)
        .def_prop_ro("n_leaves", &StructureObject::n_leaves)
        .def_prop_ro(
            "features", [](const StructureObject& one) { return column(one, &Split::feature); },
            nb::rv_policy::move)
        .def_prop_ro(
            "lows", [](const StructureObject& one) { return column(one, &Split::low); },
            nb::rv_policy::move)
        .def_prop_ro(
            "highs", [](const StructureObject& one) { return column(one, &Split::high); },
            nb::rv_policy::move)
        .def("__iter__", [](const StructureObject& one) { return nb::iter(columns(one)); })
        .def("__reduce__", [](const StructureObject& one) {
            return nb::make_tuple(nb::type<StructureObject>(), columns(one));
        });
    m.def("quantise", &py_quantise, "slopes"_a, "subsample"_a, "weight"_array.none(),
          "weight_facts"_a, "rows"_array.none(), "lift"_array.none(), "mu"_a, "floor"_a, "sigma"_a,
          "largest"_a, "newton"_a, "seed"_a, "step"_a, "packed"_array, "n_threads"_a);
    m.def("draw_rows", &py_draw_rows, "slopes"_a, "subsample"_a, "weight"_array.none(),
          "weight_facts"_a, "sigma"_a, "range"_a, "n"_a, "seed"_a, "step"_a, "n_threads"_a);
    m.def("search", &py_search, "workspace"_a, "code_rows"_array, "n_codes"_array, "kinds"_array,
          "packed"_array, "rows"_array.none(), "max_depth"_a, "l2"_a, "random_strength"_a, "seed"_a,
          "step"_a, "n_threads"_a);
    nb::class_<RowsObject>(m, "Rows").def(nb::init<In<uint8_t, 2>, In<uint8_t, 2>, In<int32_t, 1>,
                                                   In<uint8_t, 1>, MaybeVector, WeightFacts>(),
                                          "code_columns"_array, "code_rows"_array, "n_codes"_array,
                                          "kinds"_array, "weight"_array.none(), "weight_facts"_a);
    m.def("grow", &py_grow, "workspace"_a, "rows"_a, "slopes"_a, "subsample"_a, "sigma"_a,
          "largest"_a, "newton"_a, "range"_a, "n_structure_rows"_a, "n_structure_outputs"_a.none(),
          "max_depth"_a, "l2"_a, "random_strength"_a, "seed"_a, "step"_a, "n_threads"_a);
}

}  // namespace sglb::bindings
