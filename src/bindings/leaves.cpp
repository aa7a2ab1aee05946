// Leaf sums, leaf values, and trees applied to codes.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <tuple>
#include <vector>

#include "code_trees.h"
#include "largest.h"
#include "leaf_sums.h"
#include "leaf_values.h"
#include "parallel.h"
#include "shard_object.h"
#include "slopes_object.h"
#include "structure_object.h"

namespace sglb::bindings {

namespace {

double py_largest(nb::ndarray<const double, nb::c_contig, nb::device::cpu> values, int n_threads) {
    LockRelease release;
    return largest(values.data(), static_cast<int64_t>(values.size()), n_threads);
}

// Where several Newton steps have come to, and the rows they look at.
struct PathObject {
    Array<double, 2> sum, last, curvature;  // (2^depth, K)
    int64_t row_stride;

    PathObject(Array<double, 2> sums, Array<double, 2> steps, Array<double, 2> curvatures,
               int64_t stride)
        : sum(sums), last(steps), curvature(curvatures), row_stride(stride) {
        require(same_shape(sum, last) && same_shape(sum, curvature),
                "sum, last and curvature must be (2^depth, K)");
        require(row_stride >= 1, "row_stride must be 1 or more");
    }

    NewtonPath path() const { return {sum.data(), last.data(), curvature.data()}; }
    bool fits(int64_t n_leaves, int64_t n_outputs) const {
        return length(sum, 0) == n_leaves && length(sum, 1) == n_outputs;
    }
};

void py_leaf_sums(LeafSums& sums, ShardObject& shard, const StructureObject& structure,
                  const SlopesObject& object, double subsample, BoundsPair bounds,
                  const Draws& draws, const PathObject* path) {
    structure.check_features(shard.n_features());
    require(object.slopes.n_rows == shard.n_rows(), "slopes must be (K, N)");
    LeafSumsInput input{shard.code_columns.data(),
                        structure.splits,
                        structure.depth,
                        object.of(shard.numbers),
                        {subsample, draws.seed, draws.step},
                        shard.weights.weights,
                        bounds_of(bounds)};
    if (path) {
        require(path->fits(int64_t{1} << structure.depth, object.slopes.n_outputs),
                "path must be (2^depth, K)");
        require(object.slopes.hessian || object.slopes.newton, "several steps are Newton steps");
        require(path->row_stride == 1 || !object.slopes.gradient,
                "row_stride must be 1 where slopes are in arrays");
        if (!object.slopes.gradient) input.shift = path->sum.data();
        input.row_stride = path->row_stride;
    }
    LockRelease release;
    sum_leaves(input, shard.workspace, sums, shard.n_threads);
}

void check_sums(const LeafSums& sums, const PathObject* path) {
    require(!sums.sums.empty(), "nothing has been summed");
    require(!path || path->fits(sums.n_leaves, sums.n_outputs), "path must be (2^depth, K)");
}

LeafRule rule_of(double l2, double trust_radius) {
    require(trust_radius > 0.0, "trust_radius must be above 0");
    return {l2, trust_radius};
}

void py_leaf_values(const LeafSums& sums, const LeafRule& rule, double learning_rate, double noise,
                    const Draws& draws, const PathObject* path, Array<double, 2> values) {
    check_sums(sums, path);
    require(length(values, 0) == sums.n_leaves && length(values, 1) == sums.n_outputs,
            "values must be (2^depth, K)");
    const LeafMove move{learning_rate, noise, draws.seed, draws.step};
    const NewtonPath way = path ? path->path() : NewtonPath{};
    leaf_values(sums, rule, move, path ? &way : nullptr, values.data());
}

void py_advance_path(const LeafSums& sums, const LeafRule& rule, const PathObject& path) {
    check_sums(sums, &path);
    advance_path(sums, rule, path.path());
}

// Integers of another shard, added to these.
void py_add(LeafSums& sums, const LeafSums& other) {
    check_sums(sums, nullptr);
    require(sums.n_leaves == other.n_leaves && sums.n_outputs == other.n_outputs &&
                sums.gradient_scale == other.gradient_scale &&
                sums.curvature_scale == other.curvature_scale &&
                sums.weight_scale == other.weight_scale,
            "sums of shards must be of one structure and to one scale");
    for (size_t i = 0; i < sums.sums.size(); ++i) {
        sums.sums[i].gradient += other.sums[i].gradient;
        sums.sums[i].curvature += other.sums[i].curvature;
        sums.sums[i].weight += other.sums[i].weight;
    }
}

// Sums as Python's pickle keeps them.
using SumsState = std::tuple<int64_t, int64_t, bool, std::vector<double>, nb::bytes>;

SumsState state_of(const LeafSums& sums) {
    return {sums.n_leaves,
            sums.n_outputs,
            sums.newton,
            {sums.gradient_scale, sums.curvature_scale, sums.weight_scale, sums.share,
             sums.least_curvature},
            nb::bytes(sums.sums.data(), sums.sums.size() * sizeof(LeafSum))};
}

void set_state(LeafSums& sums, const SumsState& state) {
    const auto& [n_leaves, n_outputs, newton, scales, bytes] = state;
    const auto n = static_cast<size_t>(n_leaves * n_outputs);
    require(scales.size() == 5 && (bytes.size() == n * sizeof(LeafSum) || bytes.size() == 0),
            "this is not the state of sums");
    new (&sums)
        LeafSums{n_leaves,  n_outputs, newton,
                 scales[0], scales[1], scales[2],
                 scales[3], scales[4], std::vector<LeafSum>(bytes.size() / sizeof(LeafSum))};
    std::memcpy(sums.sums.data(), bytes.data(), bytes.size());
}

void py_look_ahead(ShardObject& shard, const StructureObject& structure, const PathObject& path,
                   In<double, 2> raw, Array<double, 2> ahead) {
    structure.check_features(shard.n_features());
    require(length(raw, 1) == shard.n_rows() && same_shape(raw, ahead) &&
                path.fits(int64_t{1} << structure.depth, length(raw, 0)),
            "raw and ahead must be (K, N), path (2^depth, K)");
    const std::vector<double> start(raw.shape(0), 0.0);
    std::copy_n(raw.data(), raw.size(), ahead.data());
    const Transition stay;
    const Step step{structure.splits, structure.depth, path.sum.data(), stay,
                    start.data(),     length(raw, 0),  length(raw, 1)};
    LockRelease release;
    advance(shard.code_columns.data(), step, shard.workspace, ahead.data(), shard.n_threads);
}

Transition transition_of(In<double, 2> C, In<double, 1> b) {
    require(C.shape(0) == C.shape(1) && C.shape(0) == b.shape(0) && b.shape(0) >= 1,
            "C must be (d, d), b (d,)");
    return {length(b, 0), std::vector<double>(C.data(), C.data() + C.size()),
            std::vector<double>(b.data(), b.data() + b.size())};
}

Step step_of(const StructureObject& structure, const In<double, 2>& values,
             const Transition& transition, const In<double, 1>& offset,
             const Array<double, 3>& state) {
    require(length(state, 0) == transition.size && values.shape(0) >= structure.n_leaves() &&
                values.shape(1) == state.shape(1) && offset.shape(0) == state.shape(1),
            "state must be (d, K, N), values (2^depth, K), offset (K,)");
    return {structure.splits, structure.depth,  values.data(),   transition,
            offset.data(),    length(state, 1), length(state, 2)};
}

void py_advance(ShardObject& shard, const StructureObject& structure, In<double, 2> values,
                const Transition& transition, In<double, 1> offset, Array<double, 3> state) {
    structure.check_features(shard.n_features());
    const Step step = step_of(structure, values, transition, offset, state);
    require(step.n_rows == shard.n_rows(), "state must be (d, K, N)");
    LockRelease release;
    advance(shard.code_columns.data(), step, shard.workspace, state.data(), shard.n_threads);
}

void py_add_tree(In<uint8_t, 2> columns, const StructureObject& structure, In<double, 2> values,
                 const Transition& transition, In<double, 1> offset, Array<double, 3> state,
                 int n_threads) {
    structure.check_features(length(columns, 0));
    const Step step = step_of(structure, values, transition, offset, state);
    require(step.n_rows == length(columns, 1), "state must be (d, K, N), columns (F, N)");
    LockRelease release;
    advance(columns.data(), step, state.data(), n_threads);
}

}  // namespace

void bind_leaves(nb::module_& m) {
    m.def("largest", &py_largest, "values"_array, "n_threads"_a);
    nb::class_<Transition>(m, "Transition")
        .def(
            "__init__",
            [](Transition* self, In<double, 2> C, In<double, 1> b) {
                new (self) Transition(transition_of(C, b));
            },
            "C"_array, "b"_array);
    nb::class_<LeafRule>(m, "LeafRule")
        .def(
            "__init__",
            [](LeafRule* self, double l2, double trust_radius) {
                new (self) LeafRule(rule_of(l2, trust_radius));
            },
            "l2"_a, "trust_radius"_a);
    nb::class_<PathObject>(m, "NewtonPath")
        .def(nb::init<Array<double, 2>, Array<double, 2>, Array<double, 2>, int64_t>(), "sum"_array,
             "last"_array, "curvature"_array, "row_stride"_a);
    nb::class_<LeafSums>(m, "LeafSums")
        .def(nb::init<>())
        .def(nb::init<const LeafSums&>(), "other"_a)
        .def("sum", &py_leaf_sums, "shard"_a, "structure"_a, "slopes"_a, "subsample"_a, "bounds"_a,
             "draws"_a, "path"_a.none())
        .def("add", &py_add, "other"_a)
        .def("__getstate__", &state_of)
        .def("__setstate__", &set_state)
        .def_prop_ro("shape",
                     [](const LeafSums& self) { return std::pair(self.n_leaves, self.n_outputs); });
    m.def("leaf_values", &py_leaf_values, "sums"_a, "rule"_a, "learning_rate"_a, "noise"_a,
          "draws"_a, "path"_a.none(), "values"_array);
    m.def("advance_path", &py_advance_path, "sums"_a, "rule"_a, "path"_a);
    m.def("look_ahead", &py_look_ahead, "shard"_a, "structure"_a, "path"_a, "raw"_array,
          "ahead"_array);
    m.def("advance", &py_advance, "shard"_a, "structure"_a, "values"_array, "transition"_a,
          "offset"_array, "state"_array);
    m.def("add_tree", &py_add_tree, "columns"_array, "structure"_a, "values"_array, "transition"_a,
          "offset"_array, "state"_array, "n_threads"_a);
}

}  // namespace sglb::bindings
