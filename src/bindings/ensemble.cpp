// Predictions of an ensemble.
#include "ensemble.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>
#include <string>

#include "links.h"
#include "structure_object.h"
#include "tables.h"

namespace sglb::bindings {

namespace {

Trees trees_of(const In<int32_t, 2>& features, const In<uint8_t, 2>& lows,
               const In<uint8_t, 2>& highs, const In<int32_t, 1>& depths,
               const In<double, 3>& values, int64_t n_features) {
    const Trees trees{length(features, 0), length(features, 1), length(values, 2), features.data(),
                      lows.data(),         highs.data(),        depths.data(),     values.data()};
    const auto same = [&](const auto& a) {
        return a.shape(0) == features.shape(0) && a.shape(1) == features.shape(1);
    };
    require(same(lows) && same(highs) && length(depths, 0) == trees.n_trees &&
                trees.max_depth <= most_depth && length(values, 0) == trees.n_trees &&
                values.shape(1) == size_t{1} << trees.max_depth,
            "tree arrays must be (T, D), (T,), (T, 2^D, K)");
    for (int64_t t = 0; t < trees.n_trees; ++t) {
        require(trees.depths[t] >= 0 && trees.depths[t] <= trees.max_depth, "depth out of range");
        for (int64_t d = 0; d < trees.depths[t]; ++d) {
            const int32_t feature = trees.features[t * trees.max_depth + d];
            require(feature >= 0 && feature < n_features, "feature out of range");
        }
    }
    return trees;
}

States states_of(const In<int64_t, 1>& ends, const In<double, 1>& factors,
                 const In<double, 1>& offset, const Trees& trees) {
    const States states{length(ends, 0), ends.data(), factors.data(), offset.data()};
    require(length(factors, 0) == states.n_states && length(offset, 0) == trees.n_outputs,
            "ends and factors must be (S,), offset (K,)");
    for (int64_t s = 0; s < states.n_states; ++s)
        require(ends.data()[s] >= (s ? ends.data()[s - 1] : 0) && ends.data()[s] <= trees.n_trees,
                "ends must rise within 0..T");
    return states;
}

// The arrays that a chain's trees are kept in, a row a tree.
struct TreesObject {
    Array<int32_t, 2> features;
    Array<uint8_t, 2> lows, highs;
    Array<double, 2> gains;
    Array<int32_t, 1> depths;
    Array<double, 1> shrinks;
    Array<double, 3> values;

    TreesObject(Array<int32_t, 2> f, Array<uint8_t, 2> l, Array<uint8_t, 2> h, Array<double, 2> g,
                Array<int32_t, 1> d, Array<double, 1> s, Array<double, 3> v)
        : features(f), lows(l), highs(h), gains(g), depths(d), shrinks(s), values(v) {
        trees_of(In<int32_t, 2>(f), In<uint8_t, 2>(l), In<uint8_t, 2>(h), In<int32_t, 1>(d),
                 In<double, 3>(v), std::numeric_limits<int32_t>::max());
        require(same_shape(gains, features) && shrinks.shape(0) == depths.shape(0),
                "gains must be (T, D), shrinks (T,)");
    }

    void write(int64_t t, const StructureObject& structure, In<double, 2> leaf_values,
               In<double, 1> split_gains, double shrink) {
        const size_t depth = static_cast<size_t>(structure.depth), places = features.shape(1);
        require(0 <= t && t < length(depths, 0), "tree out of range");
        require(depth <= places && split_gains.shape(0) == depth &&
                    leaf_values.shape(0) == structure.n_leaves() &&
                    leaf_values.shape(1) == values.shape(2),
                "values must be (2^depth, K), gains (depth,), depth at most D");
        const size_t row = static_cast<size_t>(t) * places;
        for (size_t d = 0; d < depth; ++d) {
            features.data()[row + d] = structure.splits[d].feature;
            lows.data()[row + d] = structure.splits[d].low;
            highs.data()[row + d] = structure.splits[d].high;
            gains.data()[row + d] = split_gains.data()[d];
        }
        depths.data()[t] = structure.depth;
        shrinks.data()[t] = shrink;
        std::copy_n(leaf_values.data(), leaf_values.size(),
                    values.data() + static_cast<size_t>(t) * values.shape(1) * values.shape(2));
    }

    StructureObject structure(int64_t t) const {
        require(0 <= t && t < length(depths, 0), "tree out of range");
        require(depths.data()[t] >= 0 && depths.data()[t] <= length(features, 1),
                "depth out of range");
        const size_t row = static_cast<size_t>(t) * features.shape(1);
        StructureObject found;
        found.read(features.data() + row, lows.data() + row, highs.data() + row, depths.data()[t]);
        return found;
    }
};

// A predictor and the array it points to.
struct PredictorObject {
    In<double, 2> thresholds;
    Predictor predictor;

    PredictorObject(In<double, 2> thresholds, In<int32_t, 1> n_thresholds, In<int32_t, 2> features,
                    In<uint8_t, 2> lows, In<uint8_t, 2> highs, In<int32_t, 1> depths,
                    In<double, 3> values, In<int64_t, 1> ends, In<double, 1> factors,
                    In<double, 1> offset)
        : thresholds(thresholds),
          predictor(make(thresholds, n_thresholds,
                         trees_of(features, lows, highs, depths, values, length(thresholds, 0)),
                         ends, factors, offset)) {}

    static Predictor make(const In<double, 2>& thresholds, const In<int32_t, 1>& n_thresholds,
                          const Trees& trees, const In<int64_t, 1>& ends,
                          const In<double, 1>& factors, const In<double, 1>& offset) {
        check_thresholds(thresholds, n_thresholds, length(thresholds, 0));
        return Predictor(thresholds.data(), n_thresholds.data(), length(thresholds, 0),
                         length(thresholds, 1), trees, states_of(ends, factors, offset, trees));
    }

    Table table(const AnyMatrix& x) const {
        require(length(x, 1) == predictor.n_features(), "x must be (N, F)");
        return table_of(x);
    }
};

void py_predict(const PredictorObject& object, AnyMatrix x, Array<double, 2> out, int n_threads) {
    const Predictor& predictor = object.predictor;
    require(out.shape(1) == x.shape(0) &&
                length(out, 0) == predictor.n_states() * predictor.n_outputs(),
            "out must be (S * K, N)");
    const Table table = object.table(x);
    nb::gil_scoped_release release;
    predictor.raw(table, out.data(), n_threads);
}

void py_predict_linked(const PredictorObject& object, AnyMatrix x, const std::string& link,
                       double parameter, Array<double, 2> out, int n_threads) {
    const Predictor& predictor = object.predictor;
    const Link kernel = find_link(link, parameter);
    require(out.shape(0) == x.shape(0) && predictor.n_states() == 1 &&
                kernel.fits(predictor.n_outputs(), length(out, 1)),
            "out must be (N, C) with a column for each prediction of one state");
    const Table table = object.table(x);
    nb::gil_scoped_release release;
    predictor.linked(table, kernel, length(out, 1), out.data(), n_threads);
}

void py_predict_entropies(const PredictorObject& object, AnyMatrix x, const std::string& link,
                          double parameter, Array<double, 2> mean, Array<double, 1> knowledge,
                          Array<double, 1> data, Array<double, 1> total, int n_threads) {
    const Predictor& predictor = object.predictor;
    const Link kernel = find_link(link, parameter);
    const size_t n = x.shape(0);
    require(kernel.of_classes() && predictor.n_states() > 0,
            "entropies need probabilities of at least one state");
    require(mean.shape(0) == n && length(mean, 1) > 1 &&
                kernel.fits(predictor.n_outputs(), length(mean, 1)) && knowledge.shape(0) == n &&
                data.shape(0) == n && total.shape(0) == n,
            "mean must be (N, C), knowledge, data and total (N,)");
    const Table table = object.table(x);
    nb::gil_scoped_release release;
    predictor.entropies(table, kernel, {mean.data(), knowledge.data(), data.data(), total.data()},
                        n_threads);
}

void py_predict_variance(const PredictorObject& object, AnyMatrix x, const std::string& link,
                         double parameter, Array<double, 2> mean, Array<double, 2> variance,
                         int n_threads) {
    const Predictor& predictor = object.predictor;
    const Link kernel = find_link(link, parameter);
    require(mean.shape(0) == x.shape(0) && same_shape(mean, variance) && predictor.n_states() > 0 &&
                kernel.fits(predictor.n_outputs(), length(mean, 1)) &&
                length(mean, 1) == predictor.n_outputs(),
            "mean and variance must be (N, K)");
    const Table table = object.table(x);
    nb::gil_scoped_release release;
    predictor.variance(table, kernel, {mean.data(), variance.data()}, n_threads);
}

}  // namespace

void bind_ensemble(nb::module_& m) {
    nb::class_<TreesObject>(m, "Trees")
        .def(nb::init<Array<int32_t, 2>, Array<uint8_t, 2>, Array<uint8_t, 2>, Array<double, 2>,
                      Array<int32_t, 1>, Array<double, 1>, Array<double, 3>>(),
             "features"_array, "lows"_array, "highs"_array, "gains"_array, "depths"_array,
             "shrinks"_array, "values"_array)
        .def("write", &TreesObject::write, "t"_a, "structure"_a, "values"_array, "gains"_array,
             "shrink"_a)
        .def("structure", &TreesObject::structure, "t"_a);
    nb::class_<PredictorObject>(m, "Predictor")
        .def(
            nb::init<In<double, 2>, In<int32_t, 1>, In<int32_t, 2>, In<uint8_t, 2>, In<uint8_t, 2>,
                     In<int32_t, 1>, In<double, 3>, In<int64_t, 1>, In<double, 1>, In<double, 1>>(),
            "thresholds"_array, "n_thresholds"_array, "features"_array, "lows"_array, "highs"_array,
            "depths"_array, "values"_array, "ends"_array, "factors"_array, "offset"_array);
    m.def("predict", &py_predict, "predictor"_a, "x"_array, "out"_array, "n_threads"_a);
    m.def("predict_linked", &py_predict_linked, "predictor"_a, "x"_array, "link"_a, "parameter"_a,
          "out"_array, "n_threads"_a);
    m.def("predict_entropies", &py_predict_entropies, "predictor"_a, "x"_array, "link"_a,
          "parameter"_a, "mean"_array, "knowledge"_array, "data"_array, "total"_array,
          "n_threads"_a);
    m.def("predict_variance", &py_predict_variance, "predictor"_a, "x"_array, "link"_a,
          "parameter"_a, "mean"_array, "variance"_array, "n_threads"_a);
}

}  // namespace sglb::bindings
