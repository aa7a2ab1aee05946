// What every binding needs: arrays as arguments, and the check of their shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "interpreter_lock.h"

namespace sglb::bindings {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using In = Array<const T, N>;
template <class T>
using MaybeMatrix = std::optional<In<T, 2>>;
using MaybeVector = std::optional<In<double, 1>>;
using MaybeRows = std::optional<In<uint32_t, 1>>;
using MaybeOut = std::optional<Array<double, 2>>;

// An array argument: taken as it is or rejected. A conversion would fill a copy
// and lose it.
inline auto operator""_array(const char* name, size_t) { return nb::arg(name).noconvert(); }

int64_t length(const auto& array, size_t axis) { return static_cast<int64_t>(array.shape(axis)); }

// The caller is Python code of this package: a wrong shape is a bug there, said
// plainly.
inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class M>
auto pointer(const M& maybe) -> decltype(maybe->data()) {
    return maybe ? maybe->data() : nullptr;
}

bool same_shape(const auto& a, const auto& b) {
    return a.shape(0) == b.shape(0) && a.shape(1) == b.shape(1);
}

// One function a file; the module calls them all.
void bind_numbers(nb::module_& m);
void bind_noise(nb::module_& m);
void bind_bins(nb::module_& m);
void bind_categories(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_structure(nb::module_& m);
void bind_leaves(nb::module_& m);
void bind_ensemble(nb::module_& m);
void bind_posterior(nb::module_& m);
void bind_ranking(nb::module_& m);
void bind_testing(nb::module_& m);
void bind_ranking_testing(nb::module_& m);

}  // namespace sglb::bindings
