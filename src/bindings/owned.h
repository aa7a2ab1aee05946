// NumPy arrays that own their numbers.
#pragma once

#include <algorithm>
#include <vector>

#include "arrays.h"

namespace sglb::bindings {

// A NumPy array of its own with the numbers of a vector.
template <class T>
using Owned = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
inline Owned<T> owned(const std::vector<T>& numbers) {
    T* data = new T[numbers.size()];
    std::copy(numbers.begin(), numbers.end(), data);
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return {data, {numbers.size()}, owner};
}

}  // namespace sglb::bindings
