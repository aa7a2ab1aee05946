// Kernels that only tests call: the stages of a draw and of a search, one by one.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "code_trees.h"
#include "leaf_values.h"
#include "noise.h"
#include "owned.h"
#include "parallel.h"
#include "quantise.h"
#include "row_draw.h"
#include "search.h"
#include "shard_object.h"
#include "slopes_object.h"
#include "structure_object.h"

namespace sglb::bindings {

namespace {

void py_normals(uint64_t seed, uint32_t step, uint32_t role, uint32_t output, uint64_t first,
                Array<double, 1> out, int n_threads) {
    const Stream stream{seed, step, static_cast<Role>(role), output};
    LockRelease release;
    parallel_rows(length(out, 0), n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            out.data()[i] = normal_at(stream, first + static_cast<uint64_t>(i));
    });
}

void py_normals_single(uint64_t seed, uint32_t step, uint32_t role, uint32_t output, uint64_t first,
                       Array<float, 1> out) {
    const Stream stream{seed, step, static_cast<Role>(role), output};
    for (size_t i = 0; i < out.size(); ++i) {
        const Words words = words_at(stream, (first + i) >> 1);
        const auto odd = static_cast<uint32_t>((first + i) & 1);
        out.data()[i] = normal_radius_single(words[0]) * normal_cosine_single(words[1], odd);
    }
}

void py_evaluate(const SlopesObject& object, double subsample, const Draws& draws,
                 Array<double, 2> gradient, MaybeOut hessian) {
    const Slopes& slopes = object.slopes;
    require(same_shape(gradient, object.first) && (!hessian || same_shape(*hessian, gradient)),
            "gradient and hessian must be (K, N)");
    require(!hessian || slopes.hessian || slopes.newton, "these slopes have no hessian");
    SlopeTile tile(slopes, slopes.n_rows);
    tile.fill({subsample, draws.seed, draws.step}, 0, slopes.n_rows);
    for (int64_t k = 0; k < slopes.n_outputs; ++k) {
        const int64_t at = k * slopes.n_rows;
        std::copy_n(tile.gradient(k), slopes.n_rows, gradient.data() + at);
        if (hessian) std::copy_n(tile.hessian(k), slopes.n_rows, hessian->data() + at);
    }
}

// Rows, how many each stands for, mu, floor and the share of the rows that were looked at.
using DrawnRows = std::tuple<Owned<uint32_t>, Owned<double>, double, double, double>;

DrawnRows py_draw_rows(const ShardObject& shard, const SlopesObject& object, double subsample,
                       double noise, int64_t n, const Draws& draws) {
    require(object.slopes.n_rows == shard.n_rows(), "slopes must be (K, N)");
    require(0 < n && n < shard.numbers.n_in_all, "n must lie in 1..rows - 1");
    const DrawInput input{object.of(shard.numbers),
                          {subsample, draws.seed, draws.step},
                          shard.weights.weights,
                          noise,
                          draws.step % shard.numbers.n_copies,
                          n,
                          draws.seed,
                          draws.step};
    Draw draw;
    Pilot pilot;
    pilot_rows(input, pilot);
    draw_rows(input, pilot, draw, shard.n_threads);
    if (draw.dense) std::erase(draw.inverse_probability, 0.0);
    return {owned(draw.rows), owned(draw.inverse_probability), draw.scale.mu, draw.scale.floor,
            draw.share};
}

void check_rows(const In<uint32_t, 1>& rows, int64_t n_rows) {
    for (size_t i = 0; i < rows.shape(0); ++i)
        require(rows.data()[i] < n_rows, "a structure row is out of range");
}

// Rows, how many each stands for or none, mu and floor of the draw.
using Chosen = std::tuple<In<uint32_t, 1>, MaybeVector, double, double>;

std::pair<double, double> py_quantise(const ShardObject& shard, const SlopesObject& object,
                                      std::optional<Chosen> chosen, std::pair<double, double> rates,
                                      BoundsPair bounds, bool newton, const Draws& draws,
                                      Array<int64_t, 2> packed) {
    require(object.slopes.n_rows == shard.n_rows(), "slopes must be (K, N)");
    require(!newton || object.slopes.hessian || object.slopes.newton,
            "newton needs second derivatives");
    StructureRows rows{nullptr, nullptr, shard.n_rows(), shard.n_rows()};
    if (chosen) {
        const auto& [numbers, inverse, mu, floor] = *chosen;
        check_rows(numbers, shard.n_rows());
        require(!inverse || (inverse->shape(0) == numbers.shape(0) && mu > 0.0 && floor >= 0.0),
                "inverse_probability must be (n,), mu positive, floor not negative");
        rows = {
            numbers.data(), pointer(inverse), length(numbers, 0), length(numbers, 0), {mu, floor}};
    }
    require(length(packed, 0) == object.slopes.n_outputs && length(packed, 1) == rows.n,
            "packed must be (K, n)");
    const QuantiseInput input{object.of(shard.numbers),
                              {rates.first, draws.seed, draws.step},
                              shard.weights.weights,
                              rows,
                              rates.second,
                              bounds_of(bounds),
                              newton,
                              draws.seed,
                              draws.step};
    const Scales scales = quantise_scales(input);
    quantise(input, scales, packed.data(), shard.n_threads);
    return {scales.gradient / scales.unit, scales.mass / scales.unit};
}

StructureObject py_search(ShardObject& shard, In<int64_t, 2> packed, MaybeRows rows,
                          std::tuple<int, double, double> rule, const Draws& draws) {
    const auto [max_depth, l2, random_strength] = rule;
    require(max_depth >= 1 && max_depth <= most_depth, "max_depth must lie in 1..16");
    require(length(packed, 1) == (rows ? length(*rows, 0) : shard.n_rows()),
            "packed must hold one word per structure row");
    if (rows) check_rows(*rows, shard.n_rows());
    Codes codes = shard.codes;
    const SearchInput input{codes,
                            packed.data(),
                            length(packed, 1),
                            length(packed, 0),
                            pointer(rows),
                            length(packed, 1),
                            !rows,
                            {max_depth, l2, random_strength, draws.seed, draws.step}};
    StructureObject result;
    result.depth = search(input, shard.workspace, result.splits, shard.n_threads);
    return result;
}

void py_split_gains(const LeafSums& sums, double l2, Array<double, 1> gains) {
    require(int64_t{1} << length(gains, 0) == sums.n_leaves, "gains must be (depth,)");
    split_gains(sums, l2, gains.data());
}

void py_leaf_indices(In<uint8_t, 2> columns, const StructureObject& structure,
                     Array<uint16_t, 1> out, int n_threads) {
    structure.check_features(length(columns, 0));
    require(out.shape(0) == columns.shape(1), "out must be (N,)");
    parallel_rows(length(out, 0), n_threads, [&](int64_t begin, int64_t end) {
        leaf_indices(columns.data() + begin, length(columns, 1), structure.splits, structure.depth,
                     end - begin, out.data() + begin);
    });
}

}  // namespace

void bind_testing(nb::module_& m) {
    m.def("normals", &py_normals, "seed"_a, "step"_a, "role"_a, "output"_a, "first"_a, "out"_array,
          "n_threads"_a);
    m.def("normals_single", &py_normals_single, "seed"_a, "step"_a, "role"_a, "output"_a, "first"_a,
          "out"_array);
    m.def("evaluate", &py_evaluate, "slopes"_a, "subsample"_a, "draws"_a, "gradient"_array,
          "hessian"_array.none());
    m.def("draw_rows", &py_draw_rows, "shard"_a, "slopes"_a, "subsample"_a, "noise"_a, "n"_a,
          "draws"_a);
    m.def("quantise", &py_quantise, "shard"_a, "slopes"_a, "chosen"_a.none(), "rates"_a, "bounds"_a,
          "newton"_a, "draws"_a, "packed"_array);
    m.def("search", &py_search, "shard"_a, "packed"_array, "rows"_array.none(), "rule"_a,
          "draws"_a);
    m.def("split_gains", &py_split_gains, "sums"_a, "l2"_a, "gains"_array);
    m.def("leaf_indices", &py_leaf_indices, "columns"_array, "structure"_a, "out"_array,
          "n_threads"_a);
}

}  // namespace sglb::bindings
