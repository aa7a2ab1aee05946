// Chains on frozen partitions of rows, and predictions of their draws.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <vector>

#include "arrays.h"
#include "code_trees.h"
#include "frozen.h"
#include "leaf_draws.h"
#include "parallel.h"
#include "shard_object.h"
#include "structure_object.h"

namespace sglb::bindings {

namespace {

template <class State>
DrawShape shape_of(const State& state) {
    return {length(state, 0), length(state, 1), length(state, 2)};
}

// The leaves of the rows of a state, sums or values being (L, K, M).
template <class Values>
RowLeaves leaves_of(const In<int32_t, 1>& leaf, const DrawShape& shape, const Values& values) {
    require(length(leaf, 0) == shape.n_rows && length(values, 1) == shape.n_outputs &&
                length(values, 2) == shape.n_draws,
            "a state must be (K, N, M), leaf (N,), sums and values (L, K, M)");
    const RowLeaves rows{leaf.data(), length(values, 0)};
    // As unsigned numbers, of which a negative one is large.
    uint32_t last = 0;
    for (int64_t i = 0; i < shape.n_rows; ++i)
        last = std::max(last, static_cast<uint32_t>(rows.leaf[i]));
    require(shape.n_rows == 0 || static_cast<int64_t>(last) < rows.n_leaves, "leaf out of range");
    return rows;
}

// Reject leaves (T, n) of partitions that are not among their values, first[t] .. first[t + 1] - 1.
void require_leaves(const In<int32_t, 2>& leaves, const In<int64_t, 1>& first, int64_t n_values) {
    const int64_t n_partitions = length(leaves, 0), n_rows = length(leaves, 1);
    for (int64_t t = 0; t < n_partitions; ++t) {
        const int64_t begin = first.data()[t];
        const int64_t end = t + 1 < n_partitions ? first.data()[t + 1] : n_values;
        require(0 <= begin && begin <= end && end <= n_values, "first must rise to L");
        uint32_t last = 0;
        for (int64_t i = 0; i < n_rows; ++i)
            last = std::max(last, static_cast<uint32_t>(leaves.data()[t * n_rows + i]));
        require(n_rows == 0 || static_cast<int64_t>(last) < end - begin, "leaf out of range");
    }
}

void py_sum_curvature(In<double, 3> state, In<double, 2> diagonal, MaybeMatrix<double> factor,
                      In<int32_t, 1> leaf, In<double, 1> magic, Array<double, 3> sums,
                      int n_threads) {
    const DrawShape shape = shape_of(state);
    const RowLeaves rows = leaves_of(leaf, shape, sums);
    require(length(diagonal, 0) == shape.n_outputs && length(diagonal, 1) == shape.n_rows &&
                (!factor || same_shape(*factor, diagonal)) && length(magic, 0) == shape.n_draws,
            "diagonal and factor must be (K, N), magic (M,)");
    LockRelease release;
    sum_curvature(shape, state.data(), {diagonal.data(), pointer(factor)}, rows, magic.data(),
                  sums.data(), n_threads);
}

void py_sum_gradient(In<double, 3> gradient, MaybeVector weight, In<int32_t, 1> leaf,
                     In<double, 1> magic, Array<double, 3> sums, int n_threads) {
    const DrawShape shape = shape_of(gradient);
    const RowLeaves rows = leaves_of(leaf, shape, sums);
    require((!weight || length(*weight, 0) == shape.n_rows) && length(magic, 0) == shape.n_draws,
            "weight must be (N,), magic (M,)");
    LockRelease release;
    sum_gradient(shape, gradient.data(), pointer(weight), rows, magic.data(), sums.data(),
                 n_threads);
}

void py_advance_draws(In<int32_t, 1> leaf, In<double, 3> values, double shrink,
                      Array<double, 3> state, Array<double, 1> largest, int n_threads) {
    const DrawShape shape = shape_of(state);
    const RowLeaves rows = leaves_of(leaf, shape, values);
    require(length(largest, 0) == shape.n_draws, "largest must be (M,)");
    LockRelease release;
    advance_draws(shape, rows, values.data(), shrink, state.data(), largest.data(), n_threads);
}

void py_add_partitions(In<int32_t, 2> leaves, In<int64_t, 1> first, In<double, 3> values,
                       int64_t first_row, Array<double, 3> state, int n_threads) {
    const DrawShape shape = shape_of(state);
    const int64_t n_partitions = length(leaves, 0), n_rows = length(leaves, 1);
    require(length(first, 0) == n_partitions && length(values, 1) == shape.n_outputs &&
                length(values, 2) == shape.n_draws && first_row >= 0 &&
                first_row + n_rows <= shape.n_rows,
            "leaves must be (T, n), first (T,), values (L, K, M), state (K, N, M) of N >= "
            "first_row + n rows");
    require_leaves(leaves, first, length(values, 0));
    LockRelease release;
    add_partitions(shape, {leaves.data(), first.data(), n_partitions, first_row, n_rows},
                   values.data(), state.data(), n_threads);
}

void py_draw_normals(const Draws& draws, uint32_t role, uint32_t first_draw, Array<double, 3> out) {
    LockRelease release;
    draw_normals({draws.seed, draws.step, static_cast<Role>(role)}, first_draw, length(out, 0),
                 length(out, 1), length(out, 2), out.data());
}

void py_tree_leaves(In<uint8_t, 2> columns, const std::vector<StructureObject*>& structures,
                    int64_t first_row, Array<int32_t, 2> leaves, int n_threads) {
    const int64_t n_rows = length(columns, 1), n = length(leaves, 1);
    require(length(leaves, 0) == static_cast<int64_t>(structures.size()) && first_row >= 0 &&
                first_row + n <= n_rows,
            "leaves must be (T, n), n rows of the columns");
    for (const StructureObject* structure : structures)
        structure->check_features(length(columns, 0));
    LockRelease release;
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        for (size_t t = 0; t < structures.size(); ++t)
            leaf_indices(columns.data() + first_row + begin, n_rows, structures[t]->splits,
                         structures[t]->depth, end - begin,
                         leaves.data() + static_cast<int64_t>(t) * n + begin);
    });
}

void py_add_leaf_draws(In<int32_t, 2> leaves, In<int64_t, 1> first, In<float, 3> values,
                       Array<double, 3> out, int n_threads) {
    const int64_t n_partitions = length(leaves, 0), n_rows = length(leaves, 1);
    require(length(first, 0) == n_partitions && length(out, 0) == length(values, 1) &&
                length(out, 1) == n_rows && length(out, 2) == length(values, 2),
            "leaves must be (T, N), first (T,), values (L, K, M), out (K, N, M)");
    require_leaves(leaves, first, length(values, 0));
    const LeafDraws draws{n_partitions, length(values, 1), length(values, 2), first.data(),
                          values.data()};
    LockRelease release;
    add_leaf_draws(draws, leaves.data(), n_rows, out.data(), n_threads);
}

}  // namespace

void bind_posterior(nb::module_& m) {
    m.def("sum_curvature", &py_sum_curvature, "state"_array, "diagonal"_array,
          "factor"_array.none(), "leaf"_array, "magic"_array, "sums"_array, "n_threads"_a);
    m.def("sum_gradient", &py_sum_gradient, "gradient"_array, "weight"_array.none(), "leaf"_array,
          "magic"_array, "sums"_array, "n_threads"_a);
    m.def("advance_draws", &py_advance_draws, "leaf"_array, "values"_array, "shrink"_a,
          "state"_array, "largest"_array, "n_threads"_a);
    m.def("add_partitions", &py_add_partitions, "leaves"_array, "first"_array, "values"_array,
          "first_row"_a, "state"_array, "n_threads"_a);
    m.def("draw_normals", &py_draw_normals, "draws"_a, "role"_a, "first_draw"_a, "out"_array);
    m.def("tree_leaves", &py_tree_leaves, "columns"_array, "structures"_a, "first_row"_a,
          "leaves"_array, "n_threads"_a);
    m.def("add_leaf_draws", &py_add_leaf_draws, "leaves"_array, "first"_array, "values"_array,
          "out"_array, "n_threads"_a);
}

}  // namespace sglb::bindings
