// Leaf values, and trees applied to codes.
#include "leaves.h"

#include "code_trees.h"
#include "parallel.h"
#include "rows_object.h"
#include "slopes_object.h"
#include "structure_object.h"

namespace sglb::bindings {

namespace {

double py_largest(nb::ndarray<const double, nb::c_contig, nb::device::cpu> values, int n_threads) {
    nb::gil_scoped_release release;
    return largest(values.data(), static_cast<int64_t>(values.size()), n_threads);
}

// What every step in the leaves needs; the rest, zero here, is for the last.
LeafInput input_of(const RowsObject& rows, const StructureObject& structure,
                   const SlopesObject& object, double subsample, SlopeBounds largest, double l2,
                   double reach, uint64_t seed, uint32_t step) {
    structure.check_features(length(rows.code_columns, 0));
    LeafInput input{};
    input.columns = rows.code_columns.data();
    input.splits = structure.splits;
    input.depth = structure.depth;
    input.slopes = object.slopes;
    input.sample = {subsample, seed, step};
    input.weight = rows.weights.weight;
    input.largest_gradient = largest.first;
    input.largest_hessian = largest.second;
    input.largest_weight = rows.largest_weight();
    input.typical_weight = rows.typical_weight;
    input.l2 = l2;
    require(reach > 0.0, "reach must be above 0");
    input.reach = reach;
    input.seed = seed;
    input.step = step;
    return input;
}

template <class Raw>
void check_raw(const RowsObject& rows, const SlopesObject& object, const Raw& raw) {
    require(length(raw, 1) == rows.n_rows() && same_shape(object.first, raw),
            "raw and slopes must be (K, N)");
}

// (3, 2^depth, K): the planes of an approach.
Approach approach_of(const Array<double, 3>& path, size_t n_leaves, size_t n_outputs) {
    require(path.shape(0) == 3 && path.shape(1) == n_leaves && path.shape(2) == n_outputs,
            "path must be (3, 2^depth, K)");
    const size_t size = n_leaves * n_outputs;
    return {path.data(), path.data() + size, path.data() + 2 * size};
}

void py_fit_leaves(Workspace& workspace, const RowsObject& rows, const StructureObject& structure,
                   const SlopesObject& object, double subsample, SlopeBounds largest,
                   double learning_rate, double sigma, double shrink, double l2, double reach,
                   In<double, 1> offset, uint64_t seed, uint32_t step,
                   std::optional<Array<double, 3>> path, Array<double, 2> raw,
                   Array<double, 2> values, std::optional<Array<double, 1>> gains, int n_threads) {
    const size_t n_leaves = structure.n_leaves();
    check_raw(rows, object, raw);
    require(values.shape(0) == n_leaves && values.shape(1) == raw.shape(0) &&
                offset.shape(0) == raw.shape(0) && (!gains || length(*gains, 0) >= structure.depth),
            "values must be (2^depth, K), offset (K,), gains (depth,)");
    LeafInput input = input_of(rows, structure, object, subsample, largest, l2, reach, seed, step);
    input.learning_rate = learning_rate;
    input.sigma = sigma;
    input.shrink = shrink;
    input.offset = offset.data();
    std::optional<Approach> approach;
    if (path) approach = approach_of(*path, n_leaves, raw.shape(0));
    nb::gil_scoped_release release;
    fit_leaves(input, approach ? &*approach : nullptr, workspace, raw.data(), values.data(),
               pointer(gains), n_threads);
}

void py_approach_leaves(Workspace& workspace, const RowsObject& rows,
                        const StructureObject& structure, const SlopesObject& object,
                        double subsample, SlopeBounds largest, double l2, double reach,
                        uint64_t seed, uint32_t step, int64_t every, In<double, 2> raw,
                        Array<double, 3> path, MaybeOut ahead,
                        std::optional<Array<double, 1>> gains, int n_threads) {
    check_raw(rows, object, raw);
    require(ahead ? same_shape(*ahead, raw) : !object.slopes.gradient,
            "ahead must be (K, N), or None beside a loss");
    require(every == 1 || (every > 1 && !ahead), "every must be 1 or more, and 1 with ahead");
    require(!gains || length(*gains, 0) >= structure.depth, "gains must be (depth,)");
    require(object.slopes.hessian || object.slopes.newton, "several steps are Newton steps");
    LeafInput input = input_of(rows, structure, object, subsample, largest, l2, reach, seed, step);
    input.every = every;
    const Approach approach = approach_of(path, structure.n_leaves(), raw.shape(0));
    nb::gil_scoped_release release;
    approach_leaves(input, approach, workspace, raw.data(), pointer(ahead), pointer(gains),
                    n_threads);
}

void py_leaf_indices(In<uint8_t, 2> columns, const StructureObject& structure,
                     Array<uint16_t, 1> out, int n_threads) {
    structure.check_features(length(columns, 0));
    require(out.shape(0) == columns.shape(1), "out must be (N,)");
    nb::gil_scoped_release release;
    parallel_rows(length(out, 0), n_threads, [&](int64_t begin, int64_t end) {
        leaf_indices(columns.data(), length(columns, 1), structure.splits, structure.depth, begin,
                     end, out.data() + begin);
    });
}

void py_add_tree(In<uint8_t, 2> columns, const StructureObject& structure, In<double, 2> values,
                 double shrink, In<double, 1> offset, Array<double, 2> raw, int n_threads) {
    structure.check_features(length(columns, 0));
    require(raw.shape(1) == columns.shape(1) && values.shape(0) >= structure.n_leaves() &&
                values.shape(1) == raw.shape(0) && offset.shape(0) == raw.shape(0),
            "raw must be (K, N), values (2^depth, K), offset (K,), columns (F, N)");
    nb::gil_scoped_release release;
    add_tree(columns.data(), length(columns, 1), length(raw, 0), structure.splits, structure.depth,
             values.data(), shrink, offset.data(), raw.data(), n_threads);
}

}  // namespace

void bind_leaves(nb::module_& m) {
    m.def("largest", &py_largest, "values"_array, "n_threads"_a);
    m.def("fit_leaves", &py_fit_leaves, "workspace"_a, "rows"_a, "structure"_a, "slopes"_a,
          "subsample"_a, "largest"_a, "learning_rate"_a, "sigma"_a, "shrink"_a, "l2"_a, "reach"_a,
          "offset"_array, "seed"_a, "step"_a, "path"_array.none(), "raw"_array, "values"_array,
          "gains"_array.none(), "n_threads"_a);
    m.def("approach_leaves", &py_approach_leaves, "workspace"_a, "rows"_a, "structure"_a,
          "slopes"_a, "subsample"_a, "largest"_a, "l2"_a, "reach"_a, "seed"_a, "step"_a, "every"_a,
          "raw"_array, "path"_array, "ahead"_array.none(), "gains"_array.none(), "n_threads"_a);
    m.def("leaf_indices", &py_leaf_indices, "columns"_array, "structure"_a, "out"_array,
          "n_threads"_a);
    m.def("add_tree", &py_add_tree, "columns"_array, "structure"_a, "values"_array, "shrink"_a,
          "offset"_array, "raw"_array, "n_threads"_a);
}

}  // namespace sglb::bindings
