// The only file that knows Python: checks shapes, releases the interpreter
// lock, calls the core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "bins.h"
#include "categories.h"
#include "encoder.h"
#include "ensemble.h"
#include "grow.h"
#include "leaves.h"
#include "links.h"
#include "losses.h"
#include "noise.h"
#include "parallel.h"
#include "quantise.h"
#include "search.h"
#include "slopes.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace sglb;

namespace {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using In = Array<const T, N>;
template <class T>
using MaybeMatrix = std::optional<In<T, 2>>;
using MaybeVector = std::optional<In<double, 1>>;
using MaybeRows = std::optional<In<uint32_t, 1>>;
using AnyMatrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

// An array argument: taken as it is or refused. A conversion would fill a copy
// and lose it.
auto operator""_array(const char* name, size_t) { return nb::arg(name).noconvert(); }

int64_t length(const auto& array, size_t axis) { return static_cast<int64_t>(array.shape(axis)); }

// The caller is Python code of this package: a wrong shape is a bug there, said
// plainly.
void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class M>
auto pointer(const M& maybe) -> decltype(maybe->data()) {
    return maybe ? maybe->data() : nullptr;
}

Type type_of(nb::dlpack::dtype type) {
    const auto is = [&](nb::dlpack::dtype other) { return type == other; };
    if (is(nb::dtype<float>())) return Type::f32;
    if (is(nb::dtype<double>())) return Type::f64;
    if (is(nb::dtype<int8_t>())) return Type::i8;
    if (is(nb::dtype<int16_t>())) return Type::i16;
    if (is(nb::dtype<int32_t>())) return Type::i32;
    if (is(nb::dtype<int64_t>())) return Type::i64;
    if (is(nb::dtype<uint8_t>()) || is(nb::dtype<bool>())) return Type::u8;
    if (is(nb::dtype<uint16_t>())) return Type::u16;
    if (is(nb::dtype<uint32_t>())) return Type::u32;
    if (is(nb::dtype<uint64_t>())) return Type::u64;
    throw std::invalid_argument("x must be an array of floats or integers of 64 bits at most");
}

Table table_of(const AnyMatrix& x) {
    return {x.data(), type_of(x.dtype()), length(x, 0), length(x, 1), x.stride(0), x.stride(1)};
}

// Splits from their three arrays, first n of them.
std::vector<Split> splits_of(const In<int32_t, 1>& features, const In<uint8_t, 1>& lows,
                             const In<uint8_t, 1>& highs, int64_t n_features) {
    const size_t depth = features.shape(0);
    require(lows.shape(0) == depth && highs.shape(0) == depth && depth <= most_depth,
            "features, lows, highs must have one length, at most 16");
    std::vector<Split> splits(depth);
    for (size_t d = 0; d < depth; ++d) {
        splits[d] = {features.data()[d], lows.data()[d], highs.data()[d]};
        require(splits[d].feature >= 0 && splits[d].feature < n_features, "feature out of range");
    }
    return splits;
}

void py_words(uint64_t seed, uint32_t step, uint32_t role, uint32_t output, uint64_t first,
              Array<uint32_t, 2> out) {
    require(out.shape(1) == 4, "out must have 4 columns");
    fill_words({seed, step, static_cast<Role>(role), output}, first, length(out, 0), out.data());
}

void py_normals(uint64_t seed, uint32_t step, uint32_t role, uint32_t output, uint64_t first,
                Array<double, 1> out, int n_threads) {
    nb::gil_scoped_release release;
    fill_normals({seed, step, static_cast<Role>(role), output}, first, length(out, 0), out.data(),
                 n_threads);
}

void py_find_thresholds(AnyMatrix x, int max_bins, int64_t sample_rows, uint64_t seed,
                        Array<double, 2> thresholds, Array<int32_t, 1> n_thresholds,
                        int n_threads) {
    require(max_bins >= 2 && max_bins <= 255, "max_bins must lie in 2..255");
    require(thresholds.shape(0) == x.shape(1) && length(thresholds, 1) == max_bins - 1 &&
                n_thresholds.shape(0) == x.shape(1),
            "thresholds must be (F, max_bins - 1)");
    const Table table = table_of(x);
    nb::gil_scoped_release release;
    find_thresholds(table, max_bins, sample_rows, seed, thresholds.data(), n_thresholds.data(),
                    n_threads);
}

void check_thresholds(const In<double, 2>& thresholds, const In<int32_t, 1>& n_thresholds,
                      int64_t n_features) {
    require(length(thresholds, 0) == n_features && length(n_thresholds, 0) == n_features &&
                thresholds.shape(1) <= 254,
            "thresholds must be (F, at most 254)");
    for (int64_t f = 0; f < n_features; ++f)
        require(n_thresholds.data()[f] >= 0 && n_thresholds.data()[f] <= length(thresholds, 1),
                "n_thresholds out of range");
}

void py_encode(AnyMatrix x, In<double, 2> thresholds, In<int32_t, 1> n_thresholds,
               Array<uint8_t, 2> columns, int n_threads) {
    check_thresholds(thresholds, n_thresholds, length(x, 1));
    require(columns.shape(0) == x.shape(1) && columns.shape(1) == x.shape(0),
            "columns must be (F, N)");
    const Table table = table_of(x);
    nb::gil_scoped_release release;
    encode(table, thresholds.data(), n_thresholds.data(), length(thresholds, 1), columns.data(),
           n_threads);
}

void py_to_rows(In<uint8_t, 2> columns, Array<uint8_t, 2> rows, int n_threads) {
    require(rows.shape(0) == columns.shape(1) && rows.shape(1) >= columns.shape(0) &&
                rows.shape(1) % 8 == 0,
            "rows must be (N, F padded to a multiple of 8)");
    nb::gil_scoped_release release;
    to_rows(columns.data(), length(columns, 0), length(columns, 1), length(rows, 1), rows.data(),
            n_threads);
}

double py_largest(nb::ndarray<const double, nb::c_contig, nb::device::cpu> values, int n_threads) {
    nb::gil_scoped_release release;
    return largest(values.data(), static_cast<int64_t>(values.size()), n_threads);
}

using MaybeOut = std::optional<Array<double, 2>>;

bool same_shape(const auto& a, const auto& b) {
    return a.shape(0) == b.shape(0) && a.shape(1) == b.shape(1);
}

LossKernel loss_of(const std::string& name, std::pair<double, double> parameters,
                   const In<double, 1>& y, const In<double, 2>& raw) {
    require(y.shape(0) == raw.shape(1), "y must be (N,), raw (K, N)");
    return find_loss(name, {parameters.first, parameters.second}, length(raw, 0));
}

double py_gradient(const std::string& loss, std::pair<double, double> parameters, In<double, 1> y,
                   In<double, 2> raw, Array<double, 2> gradient, MaybeOut hessian, int n_threads) {
    require(same_shape(gradient, raw) && (!hessian || same_shape(*hessian, raw)),
            "raw, gradient and hessian must be (K, N)");
    const LossKernel kernel = loss_of(loss, parameters, y, raw);
    nb::gil_scoped_release release;
    return loss_gradient(kernel, length(raw, 1), length(raw, 0), y.data(), raw.data(),
                         gradient.data(), pointer(hessian), n_threads);
}

// Slopes and the arrays they point to.
struct SlopesObject {
    Slopes slopes;
    In<double, 2> first;
    MaybeMatrix<double> second;
    MaybeVector y;

    SlopesObject(In<double, 2> gradient, MaybeMatrix<double> hessian)
        : first(gradient), second(hessian) {
        require(!second || same_shape(*second, first), "gradient and hessian must be (K, N)");
        slopes.n_rows = length(first, 1);
        slopes.n_outputs = length(first, 0);
        slopes.gradient = first.data();
        slopes.hessian = pointer(second);
    }

    SlopesObject(const std::string& loss, std::pair<double, double> parameters,
                 In<double, 1> target, In<double, 2> raw, bool newton)
        : first(raw), y(target) {
        slopes.n_rows = length(raw, 1);
        slopes.n_outputs = length(raw, 0);
        slopes.loss = loss_of(loss, parameters, target, raw);
        slopes.y = target.data();
        slopes.raw = raw.data();
        slopes.newton = newton;
    }
};

void py_evaluate(const SlopesObject& object, double subsample, uint64_t seed, uint32_t step,
                 Array<double, 2> gradient, MaybeOut hessian) {
    const Slopes& slopes = object.slopes;
    require(same_shape(gradient, object.first) && (!hessian || same_shape(*hessian, gradient)),
            "gradient and hessian must be (K, N)");
    require(!hessian || slopes.hessian || slopes.newton, "these slopes have no hessian");
    nb::gil_scoped_release release;
    SlopeTile tile(slopes, slopes.n_rows);
    tile.fill({subsample, seed, step}, 0, slopes.n_rows);
    for (int64_t k = 0; k < slopes.n_outputs; ++k) {
        const int64_t at = k * slopes.n_rows;
        std::copy_n(tile.gradient(k), slopes.n_rows, gradient.data() + at);
        if (hessian) std::copy_n(tile.hessian(k), slopes.n_rows, hessian->data() + at);
    }
}

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

void check_rows(const MaybeRows& rows, size_t n_rows) {
    if (!rows) return;
    for (size_t i = 0; i < rows->shape(0); ++i)
        require(rows->data()[i] < n_rows, "a structure row is out of range");
}

// Unit of the weights; largest and total in that unit.
using WeightFacts = std::tuple<double, double, double>;

Weights weights_of(const MaybeVector& weight, const WeightFacts& facts, size_t n_rows) {
    require(!weight || weight->shape(0) == n_rows, "weight must be (N,)");
    const auto [unit, largest, total] = facts;
    require(unit > 0.0 && largest >= 0.0 && total >= 0.0,
            "the unit of the weights must be positive, largest and total not negative");
    return {pointer(weight), unit, largest, total};
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
    return {owned(draw.rows), owned(draw.lift), draw.mu, draw.floor, draw.share};
}

// A bound of |gradient| and one of the second derivatives, the latter used with `newton` alone.
using SlopeBounds = std::pair<double, double>;

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

// Where a structure is written to.
struct StructureOut {
    Array<int32_t, 1> features;
    Array<uint8_t, 1> lows, highs;

    StructureOut(Array<int32_t, 1> f, Array<uint8_t, 1> l, Array<uint8_t, 1> h, int max_depth)
        : features(f), lows(l), highs(h) {
        require(max_depth >= 1 && max_depth <= most_depth, "max_depth must lie in 1..16");
        require(length(features, 0) >= max_depth && length(lows, 0) >= max_depth &&
                    length(highs, 0) >= max_depth,
                "features, lows, highs must have max_depth places");
    }

    int write(const Split* splits, int depth) {
        for (int d = 0; d < depth; ++d) {
            features.data()[d] = splits[d].feature;
            lows.data()[d] = splits[d].low;
            highs.data()[d] = splits[d].high;
        }
        return depth;
    }
};

Codes codes_of(const In<uint8_t, 2>& code_rows, const In<int32_t, 1>& n_codes,
               const In<uint8_t, 1>& kinds) {
    require(code_rows.shape(1) % 8 == 0 && n_codes.shape(0) <= code_rows.shape(1) &&
                n_codes.shape(0) + 7 >= code_rows.shape(1) && kinds.shape(0) == n_codes.shape(0),
            "code_rows must be (N, F padded to 8), n_codes and kinds (F,)");
    for (size_t f = 0; f < n_codes.shape(0); ++f)
        require(n_codes.data()[f] >= 1 && n_codes.data()[f] <= 256 && kinds.data()[f] <= 2,
                "n_codes must lie in 1..256, kinds in 0..2");
    return {code_rows.data(), length(code_rows, 1), length(n_codes, 0), n_codes.data(),
            kinds.data()};
}

int py_search(Workspace& workspace, In<uint8_t, 2> code_rows, In<int32_t, 1> n_codes,
              In<uint8_t, 1> kinds, In<int64_t, 2> packed, MaybeRows rows, int max_depth, double l2,
              double random_strength, uint64_t seed, uint32_t step, Array<int32_t, 1> features,
              Array<uint8_t, 1> lows, Array<uint8_t, 1> highs, int n_threads) {
    StructureOut out(features, lows, highs, max_depth);
    require(packed.shape(1) == (rows ? rows->shape(0) : code_rows.shape(0)),
            "packed must hold one word per structure row");
    check_rows(rows, code_rows.shape(0));
    const SearchInput input{codes_of(code_rows, n_codes, kinds),
                            packed.data(),
                            pointer(rows),
                            length(packed, 1),
                            length(packed, 0),
                            {max_depth, l2, random_strength, seed, step}};
    Split splits[most_depth];
    nb::gil_scoped_release release;
    return out.write(splits, search(input, workspace, splits, n_threads));
}

int py_grow(Workspace& workspace, In<uint8_t, 2> code_rows, In<int32_t, 1> n_codes,
            In<uint8_t, 1> kinds, const SlopesObject& object, double subsample, MaybeVector weight,
            WeightFacts weight_facts, double sigma, SlopeBounds largest, bool newton,
            RowRange range, int64_t n_structure_rows, int max_depth, double l2,
            double random_strength, uint64_t seed, uint32_t step, Array<int32_t, 1> features,
            Array<uint8_t, 1> lows, Array<uint8_t, 1> highs, int n_threads) {
    StructureOut out(features, lows, highs, max_depth);
    const Slopes& slopes = object.slopes;
    require(slopes.n_rows == length(code_rows, 0), "slopes must be (K, N)");
    require(n_structure_rows >= 0, "n_structure_rows must not be negative");
    check_range(range, slopes.n_rows);
    require(!newton || slopes.hessian || slopes.newton, "newton needs second derivatives");
    const GrowInput input{codes_of(code_rows, n_codes, kinds),
                          slopes,
                          {subsample, seed, step},
                          weights_of(weight, weight_facts, code_rows.shape(0)),
                          sigma,
                          largest.first,
                          largest.second,
                          newton,
                          range.first,
                          range.second,
                          n_structure_rows,
                          {max_depth, l2, random_strength, seed, step}};
    Split splits[most_depth];
    nb::gil_scoped_release release;
    return out.write(splits, grow(input, workspace, splits, n_threads));
}

void py_fit_leaves(Workspace& workspace, In<uint8_t, 2> columns, In<int32_t, 1> features,
                   In<uint8_t, 1> lows, In<uint8_t, 1> highs, const SlopesObject& object,
                   double subsample, MaybeVector weight, double largest_gradient,
                   double largest_hessian, double largest_weight, double learning_rate,
                   double sigma, double shrink, double l2, In<double, 1> offset, uint64_t seed,
                   uint32_t step, Array<double, 2> raw, Array<double, 2> values,
                   Array<double, 1> gains, int n_threads) {
    const auto splits = splits_of(features, lows, highs, length(columns, 0));
    require(raw.shape(1) == columns.shape(1) && same_shape(object.first, raw) &&
                (!weight || weight->shape(0) == raw.shape(1)),
            "raw and slopes must be (K, N), weight (N,), columns (F, N)");
    require(values.shape(0) == size_t{1} << splits.size() && values.shape(1) == raw.shape(0) &&
                offset.shape(0) == raw.shape(0) && gains.shape(0) >= splits.size(),
            "values must be (2^depth, K), offset (K,), gains (depth,)");
    const LeafInput input{columns.data(),
                          splits.data(),
                          static_cast<int>(splits.size()),
                          object.slopes,
                          {subsample, seed, step},
                          pointer(weight),
                          largest_gradient,
                          largest_hessian,
                          largest_weight,
                          learning_rate,
                          sigma,
                          shrink,
                          l2,
                          offset.data(),
                          seed,
                          step};
    nb::gil_scoped_release release;
    fit_leaves(input, workspace, raw.data(), values.data(), gains.data(), n_threads);
}

void py_leaf_indices(In<uint8_t, 2> columns, In<int32_t, 1> features, In<uint8_t, 1> lows,
                     In<uint8_t, 1> highs, Array<uint16_t, 1> out, int n_threads) {
    const auto splits = splits_of(features, lows, highs, length(columns, 0));
    require(out.shape(0) == columns.shape(1), "out must be (N,)");
    nb::gil_scoped_release release;
    parallel_rows(length(out, 0), n_threads, [&](int64_t begin, int64_t end) {
        leaf_indices(columns.data(), length(columns, 1), splits.data(),
                     static_cast<int>(splits.size()), begin, end, out.data() + begin);
    });
}

void py_add_tree(In<uint8_t, 2> columns, In<int32_t, 1> features, In<uint8_t, 1> lows,
                 In<uint8_t, 1> highs, In<double, 2> values, double shrink, In<double, 1> offset,
                 Array<double, 2> raw, int n_threads) {
    const auto splits = splits_of(features, lows, highs, length(columns, 0));
    require(raw.shape(1) == columns.shape(1) && values.shape(0) >= size_t{1} << splits.size() &&
                values.shape(1) == raw.shape(0) && offset.shape(0) == raw.shape(0),
            "raw must be (K, N), values (2^depth, K), offset (K,), columns (F, N)");
    nb::gil_scoped_release release;
    add_tree(columns.data(), length(columns, 1), length(raw, 0), splits.data(),
             static_cast<int>(splits.size()), values.data(), shrink, offset.data(), raw.data(),
             n_threads);
}

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

void py_predict_codes(const PredictorObject& object, In<uint8_t, 2> columns, Array<double, 2> out,
                      int n_threads) {
    const Predictor& predictor = object.predictor;
    require(length(columns, 0) == predictor.n_features(), "columns must be (F, N)");
    require(out.shape(1) == columns.shape(1) &&
                length(out, 0) == predictor.n_states() * predictor.n_outputs(),
            "out must be (S * K, N)");
    nb::gil_scoped_release release;
    predictor.raw_of_codes(columns.data(), length(columns, 1), out.data(), n_threads);
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

void py_link(const std::string& link, double parameter, In<double, 2> raw, Array<double, 2> out,
             int n_threads) {
    const Link kernel = find_link(link, parameter);
    require(out.shape(0) == raw.shape(1) && kernel.fits(length(raw, 0), length(out, 1)),
            "raw must be (K, N), out (N, C)");
    nb::gil_scoped_release release;
    link_scores(kernel, raw.data(), length(raw, 0), length(raw, 1), length(out, 1), out.data(),
                n_threads);
}

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

void check_signals() {
    nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

NB_MODULE(_core, m) {
    set_interrupt_check(check_signals);
    nb::set_leak_warnings(false);  // a fitted model may outlive the interpreter's last module
    nb::class_<Workspace>(m, "Workspace").def(nb::init<>());
    nb::class_<SlopesObject>(m, "Slopes")
        .def(nb::init<In<double, 2>, MaybeMatrix<double>>(), "gradient"_array,
             "hessian"_array.none())
        .def(nb::init<const std::string&, std::pair<double, double>, In<double, 1>, In<double, 2>,
                      bool>(),
             "loss"_a, "parameters"_a, "y"_array, "raw"_array, "newton"_a);
    nb::class_<PredictorObject>(m, "Predictor")
        .def(
            nb::init<In<double, 2>, In<int32_t, 1>, In<int32_t, 2>, In<uint8_t, 2>, In<uint8_t, 2>,
                     In<int32_t, 1>, In<double, 3>, In<int64_t, 1>, In<double, 1>, In<double, 1>>(),
            "thresholds"_array, "n_thresholds"_array, "features"_array, "lows"_array, "highs"_array,
            "depths"_array, "values"_array, "ends"_array, "factors"_array, "offset"_array);
    m.def("available_threads", &available_threads);
    m.def("words", &py_words, "seed"_a, "step"_a, "role"_a, "output"_a, "first"_a, "out"_array);
    m.def("normals", &py_normals, "seed"_a, "step"_a, "role"_a, "output"_a, "first"_a, "out"_array,
          "n_threads"_a);
    m.def("find_thresholds", &py_find_thresholds, "x"_array, "max_bins"_a, "sample_rows"_a,
          "seed"_a, "thresholds"_array, "n_thresholds"_array, "n_threads"_a);
    m.def("encode", &py_encode, "x"_array, "thresholds"_array, "n_thresholds"_array,
          "columns"_array, "n_threads"_a);
    m.def("to_rows", &py_to_rows, "columns"_array, "rows"_array, "n_threads"_a);
    m.def("largest", &py_largest, "values"_array, "n_threads"_a);
    m.def("gradient", &py_gradient, "loss"_a, "parameters"_a, "y"_array, "raw"_array,
          "gradient"_array, "hessian"_array.none(), "n_threads"_a);
    m.def("evaluate", &py_evaluate, "slopes"_a, "subsample"_a, "seed"_a, "step"_a, "gradient"_array,
          "hessian"_array.none());
    m.def("quantise", &py_quantise, "slopes"_a, "subsample"_a, "weight"_array.none(),
          "weight_facts"_a, "rows"_array.none(), "lift"_array.none(), "mu"_a, "floor"_a, "sigma"_a,
          "largest"_a, "newton"_a, "seed"_a, "step"_a, "packed"_array, "n_threads"_a);
    m.def("draw_rows", &py_draw_rows, "slopes"_a, "subsample"_a, "weight"_array.none(),
          "weight_facts"_a, "sigma"_a, "range"_a, "n"_a, "seed"_a, "step"_a, "n_threads"_a);
    m.def("search", &py_search, "workspace"_a, "code_rows"_array, "n_codes"_array, "kinds"_array,
          "packed"_array, "rows"_array.none(), "max_depth"_a, "l2"_a, "random_strength"_a, "seed"_a,
          "step"_a, "features"_array, "lows"_array, "highs"_array, "n_threads"_a);
    m.def("grow", &py_grow, "workspace"_a, "code_rows"_array, "n_codes"_array, "kinds"_array,
          "slopes"_a, "subsample"_a, "weight"_array.none(), "weight_facts"_a, "sigma"_a,
          "largest"_a, "newton"_a, "range"_a, "n_structure_rows"_a, "max_depth"_a, "l2"_a,
          "random_strength"_a, "seed"_a, "step"_a, "features"_array, "lows"_array, "highs"_array,
          "n_threads"_a);
    m.def("fit_leaves", &py_fit_leaves, "workspace"_a, "columns"_array, "features"_array,
          "lows"_array, "highs"_array, "slopes"_a, "subsample"_a, "weight"_array.none(),
          "largest_gradient"_a, "largest_hessian"_a, "largest_weight"_a, "learning_rate"_a,
          "sigma"_a, "shrink"_a, "l2"_a, "offset"_array, "seed"_a, "step"_a, "raw"_array,
          "values"_array, "gains"_array, "n_threads"_a);
    m.def("leaf_indices", &py_leaf_indices, "columns"_array, "features"_array, "lows"_array,
          "highs"_array, "out"_array, "n_threads"_a);
    m.def("add_tree", &py_add_tree, "columns"_array, "features"_array, "lows"_array, "highs"_array,
          "values"_array, "shrink"_a, "offset"_array, "raw"_array, "n_threads"_a);
    m.def("link", &py_link, "link"_a, "parameter"_a, "raw"_array, "out"_array, "n_threads"_a);
    m.def("predict", &py_predict, "predictor"_a, "x"_array, "out"_array, "n_threads"_a);
    m.def("predict_codes", &py_predict_codes, "predictor"_a, "columns"_array, "out"_array,
          "n_threads"_a);
    m.def("predict_linked", &py_predict_linked, "predictor"_a, "x"_array, "link"_a, "parameter"_a,
          "out"_array, "n_threads"_a);
    m.def("predict_entropies", &py_predict_entropies, "predictor"_a, "x"_array, "link"_a,
          "parameter"_a, "mean"_array, "knowledge"_array, "data"_array, "total"_array,
          "n_threads"_a);
    m.def("predict_variance", &py_predict_variance, "predictor"_a, "x"_array, "link"_a,
          "parameter"_a, "mean"_array, "variance"_array, "n_threads"_a);
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
