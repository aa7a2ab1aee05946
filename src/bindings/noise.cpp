// Noise: words and normals of a counter.
#include "noise.h"

#include "arrays.h"

namespace sglb::bindings {

namespace {

void py_words(uint64_t seed, uint32_t step, uint32_t role, uint32_t output, uint64_t first,
              Array<uint32_t, 2> out) {
    require(out.shape(1) == 4, "out must have 4 columns");
    fill_words({seed, step, static_cast<Role>(role), output}, first, length(out, 0), out.data());
}

}  // namespace

void bind_noise(nb::module_& m) {
    nb::enum_<Role>(m, "Role", nb::is_arithmetic())
        .value("STRUCTURE", Role::structure)
        .value("LEAF", Role::leaf)
        .value("SUBSAMPLE", Role::subsample)
        .value("ROWS", Role::rows)
        .value("SCORE", Role::score)
        .value("PERMUTATION", Role::permutation)
        .value("CHAIN", Role::chain)
        .value("TEST", Role::test)
        .value("THRESHOLDS", Role::thresholds)
        .value("OUTPUTS", Role::outputs)
        .value("FOLD", Role::fold)
        .value("PARTITION", Role::partition)
        .value("PRIOR", Role::prior)
        .value("DRAW", Role::draw)
        .value("RANKING", Role::ranking)
        .value("CURVATURE", Role::curvature)
        .value("RELEVANCE", Role::relevance)
        .value("SHUFFLE", Role::shuffle)
        .value("SWAP", Role::swap);
    m.def("words", &py_words, "seed"_a, "step"_a, "role"_a, "output"_a, "first"_a, "out"_array);
}

}  // namespace sglb::bindings
