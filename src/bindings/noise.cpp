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

void py_normals(uint64_t seed, uint32_t step, uint32_t role, uint32_t output, uint64_t first,
                Array<double, 1> out, int n_threads) {
    nb::gil_scoped_release release;
    fill_normals({seed, step, static_cast<Role>(role), output}, first, length(out, 0), out.data(),
                 n_threads);
}

void py_normals_single(uint64_t seed, uint32_t step, uint32_t role, uint32_t output, uint64_t first,
                       Array<float, 1> out) {
    fill_normals_single({seed, step, static_cast<Role>(role), output}, first, length(out, 0),
                        out.data());
}

}  // namespace

void bind_noise(nb::module_& m) {
    m.def("words", &py_words, "seed"_a, "step"_a, "role"_a, "output"_a, "first"_a, "out"_array);
    m.def("normals", &py_normals, "seed"_a, "step"_a, "role"_a, "output"_a, "first"_a, "out"_array,
          "n_threads"_a);
    m.def("normals_single", &py_normals_single, "seed"_a, "step"_a, "role"_a, "output"_a, "first"_a,
          "out"_array);
}

}  // namespace sglb::bindings
