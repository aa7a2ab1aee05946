// Predictions of an ensemble.
#include "ensemble.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>
#include <string>

#include "code_trees.h"
#include "leaf_sums.h"
#include "leaf_values.h"
#include "links.h"
#include "structure_object.h"
#include "tables.h"

namespace sglb::bindings {

namespace {

void check_trees(const Trees& trees, int64_t n_features) {
    for (int64_t t = 0; t < trees.n_trees; ++t) {
        require(trees.depths[t] >= 0 && trees.depths[t] <= trees.max_depth, "depth out of range");
        for (int64_t d = 0; d < trees.depths[t]; ++d) {
            const int32_t feature = trees.features[t * trees.max_depth + d];
            require(feature >= 0 && feature < n_features, "feature out of range");
        }
    }
}

// The arrays that a chain's trees are kept in, a row a tree. A row of `moves` holds the transition,
// C and b, and the temperature of the step. Gains are those of the first sums of a tree.
struct TreesObject {
    Array<int32_t, 2> features;
    Array<uint8_t, 2> lows, highs;
    Array<int32_t, 1> depths;
    Array<double, 2> gains;
    Array<double, 3> values;
    Array<double, 2> cover, moves;

    TreesObject(Array<int32_t, 2> f, Array<uint8_t, 2> l, Array<uint8_t, 2> h, Array<int32_t, 1> d,
                Array<double, 2> g, Array<double, 3> v, Array<double, 2> c, Array<double, 2> m)
        : features(f), lows(l), highs(h), depths(d), gains(g), values(v), cover(c), moves(m) {
        require(same_shape(lows, features) && same_shape(highs, features) &&
                    depths.shape(0) == features.shape(0) && features.shape(1) <= most_depth &&
                    values.shape(0) == features.shape(0) &&
                    values.shape(1) == size_t{1} << features.shape(1),
                "tree arrays must be (T, D), (T,), (T, 2^D, K)");
        require(same_shape(gains, features) && cover.shape(0) == depths.shape(0) &&
                    cover.shape(1) == values.shape(1) && moves.shape(0) == depths.shape(0),
                "gains must be (T, D), cover (T, 2^D), moves (T, d d + d + 1)");
    }

    void write(int64_t t, const StructureObject& structure, In<double, 2> leaf_values,
               const LeafSums* sums, const LeafSums* first, double l2, const Transition& transition,
               double temperature) {
        const size_t depth = static_cast<size_t>(structure.depth), places = features.shape(1);
        const size_t n_leaves = structure.n_leaves(), row = static_cast<size_t>(t) * places;
        require(0 <= t && t < length(depths, 0), "tree out of range");
        const auto fits = [&](const LeafSums* of) {
            return !of || of->n_leaves == static_cast<int64_t>(n_leaves);
        };
        require(depth <= places && leaf_values.shape(0) == n_leaves &&
                    leaf_values.shape(1) == values.shape(2) && fits(sums) && fits(first),
                "values must be (2^depth, K), sums of this structure, depth at most D");
        const int64_t size = transition.size;
        require(size * (size + 1) + 1 == length(moves, 1), "the transition must be of this chain");
        for (size_t d = 0; d < depth; ++d) {
            features.data()[row + d] = structure.splits[d].feature;
            lows.data()[row + d] = structure.splits[d].low;
            highs.data()[row + d] = structure.splits[d].high;
        }
        if (first) split_gains(*first, l2, gains.data() + row);
        depths.data()[t] = structure.depth;
        std::copy_n(leaf_values.data(), leaf_values.size(),
                    values.data() + static_cast<size_t>(t) * values.shape(1) * values.shape(2));
        for (size_t j = 0; sums && j < n_leaves; ++j)
            cover.data()[static_cast<size_t>(t) * cover.shape(1) + j] = sums->weight(sums->sums[j]);
        double* move = moves.data() + static_cast<size_t>(t) * moves.shape(1);
        move = std::copy(transition.C.begin(), transition.C.end(), move);
        *std::copy(transition.b.begin(), transition.b.end(), move) = temperature;
    }

    Transition transition(int64_t t) const {
        require(0 <= t && t < length(depths, 0), "tree out of range");
        const double* move = moves.data() + static_cast<size_t>(t) * moves.shape(1);
        int64_t size = 1;
        while (size * (size + 1) + 1 < length(moves, 1)) ++size;
        return {size, std::vector<double>(move, move + size * size),
                std::vector<double>(move + size * size, move + size * (size + 1))};
    }

    Trees trees() const {
        return {length(features, 0), length(features, 1), length(values, 2), features.data(),
                lows.data(),         highs.data(),        depths.data(),     values.data()};
    }

    StructureObject structure(int64_t t) const {
        require(0 <= t && t < length(depths, 0), "tree out of range");
        require(depths.data()[t] >= 0 && depths.data()[t] <= length(features, 1),
                "depth out of range");
        const size_t row = static_cast<size_t>(t) * features.shape(1);
        StructureObject structure;
        structure.read(features.data() + row, lows.data() + row, highs.data() + row,
                       depths.data()[t]);
        return structure;
    }
};

// A predictor and the array it points to.
struct PredictorObject {
    In<double, 2> thresholds;
    Predictor predictor;

    PredictorObject(In<double, 2> borders, In<int32_t, 1> n_thresholds, const TreesObject& trees,
                    In<double, 2> weights, In<int64_t, 1> ends, In<double, 3> factors,
                    In<double, 1> offset)
        : thresholds(borders),
          predictor(make(thresholds, n_thresholds, trees, weights, ends, factors, offset)) {}

    // The first trees, as many as have weights (T, d); every part of the state has its outputs.
    static Predictor make(const In<double, 2>& thresholds, const In<int32_t, 1>& n_thresholds,
                          const TreesObject& trees, const In<double, 2>& weights,
                          const In<int64_t, 1>& ends, const In<double, 3>& factors,
                          const In<double, 1>& offset) {
        check_thresholds(thresholds, n_thresholds, length(thresholds, 0));
        const size_t n_trees = weights.shape(0), size = weights.shape(1);
        require(n_trees <= trees.depths.shape(0) && size >= 1 &&
                    factors.shape(0) == ends.shape(0) && factors.shape(1) == size &&
                    factors.shape(2) == size && offset.shape(0) == trees.values.shape(2),
                "weights must be (at most T, d), ends (S,), factors (S, d, d), offset (K,)");
        for (size_t s = 0; s < ends.shape(0); ++s)
            require(ends.data()[s] >= (s ? ends.data()[s - 1] : 0) &&
                        ends.data()[s] <= static_cast<int64_t>(n_trees),
                    "ends must rise within 0..T");
        const std::vector<double> values = weighted(trees.values, weights);
        Trees kept = trees.trees();
        kept.n_trees = static_cast<int64_t>(n_trees);
        kept.n_outputs *= static_cast<int64_t>(size);
        kept.values = values.data();
        check_trees(kept, length(thresholds, 0));
        const States states{length(ends, 0), ends.data(), static_cast<int64_t>(size),
                            factors.data(), offset.data()};
        return Predictor(thresholds.data(), n_thresholds.data(), length(thresholds, 0),
                         length(thresholds, 1), kept, states);
    }

    static std::vector<double> weighted(const Array<double, 3>& values,
                                        const In<double, 2>& weights) {
        const size_t n_leaves = values.shape(1), n_outputs = values.shape(2);
        const size_t n_trees = weights.shape(0), size = weights.shape(1);
        std::vector<double> out(n_trees * n_leaves * size * n_outputs);
        size_t at = 0;
        for (size_t t = 0; t < n_trees; ++t)
            for (size_t j = 0; j < n_leaves; ++j)
                for (size_t i = 0; i < size; ++i)
                    for (size_t k = 0; k < n_outputs; ++k)
                        out[at++] = values.data()[(t * n_leaves + j) * n_outputs + k] *
                                    weights.data()[t * size + i];
        return out;
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
    LockRelease release;
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
    LockRelease release;
    predictor.linked(table, kernel, length(out, 1), out.data(), n_threads);
}

void py_predict_entropies(const PredictorObject& object, AnyMatrix x, const std::string& link,
                          double parameter, Array<double, 2> mean, Array<double, 2> parts,
                          int n_threads) {
    const Predictor& predictor = object.predictor;
    const Link kernel = find_link(link, parameter);
    const size_t n = x.shape(0);
    require(kernel.of_classes() && predictor.n_states() > 0,
            "entropies need probabilities of at least one state");
    require(mean.shape(0) == n && length(mean, 1) > 1 &&
                kernel.fits(predictor.n_outputs(), length(mean, 1)) && parts.shape(0) == 3 &&
                parts.shape(1) == n,
            "mean must be (N, C), parts (3, N)");
    const Table table = object.table(x);
    LockRelease release;
    double* knowledge = parts.data();
    predictor.entropies(table, kernel, {mean.data(), knowledge, knowledge + n, knowledge + 2 * n},
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
    LockRelease release;
    predictor.variance(table, kernel, {mean.data(), variance.data()}, n_threads);
}

}  // namespace

void bind_ensemble(nb::module_& m) {
    nb::class_<TreesObject>(m, "Trees")
        .def(nb::init<Array<int32_t, 2>, Array<uint8_t, 2>, Array<uint8_t, 2>, Array<int32_t, 1>,
                      Array<double, 2>, Array<double, 3>, Array<double, 2>, Array<double, 2>>(),
             "features"_array, "lows"_array, "highs"_array, "depths"_array, "gains"_array,
             "values"_array, "cover"_array, "moves"_array)
        .def("write", &TreesObject::write, "t"_a, "structure"_a, "values"_array, "sums"_a.none(),
             "first"_a.none(), "l2"_a, "transition"_a, "temperature"_a)
        .def("structure", &TreesObject::structure, "t"_a)
        .def("transition", &TreesObject::transition, "t"_a);
    nb::class_<PredictorObject>(m, "Predictor")
        .def(nb::init<In<double, 2>, In<int32_t, 1>, const TreesObject&, In<double, 2>,
                      In<int64_t, 1>, In<double, 3>, In<double, 1>>(),
             "thresholds"_array, "n_thresholds"_array, "trees"_a, "weights"_array, "ends"_array,
             "factors"_array, "offset"_array);
    m.def("predict", &py_predict, "predictor"_a, "x"_array, "out"_array, "n_threads"_a);
    m.def("predict_linked", &py_predict_linked, "predictor"_a, "x"_array, "link"_a, "parameter"_a,
          "out"_array, "n_threads"_a);
    m.def("predict_entropies", &py_predict_entropies, "predictor"_a, "x"_array, "link"_a,
          "parameter"_a, "mean"_array, "parts"_array, "n_threads"_a);
    m.def("predict_variance", &py_predict_variance, "predictor"_a, "x"_array, "link"_a,
          "parameter"_a, "mean"_array, "variance"_array, "n_threads"_a);
}

}  // namespace sglb::bindings
