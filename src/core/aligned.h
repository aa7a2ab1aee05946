// Vectors whose first number starts a cache line, so that no wide load reaches into a second one.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace sglb {

inline constexpr std::size_t cache_line = 64;

template <class T>
struct AtCacheLine {
    using value_type = T;
    AtCacheLine() = default;
    template <class U>
    explicit AtCacheLine(const AtCacheLine<U>&) {}
    T* allocate(std::size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{cache_line}));
    }
    void deallocate(T* at, std::size_t) noexcept {
        ::operator delete(at, std::align_val_t{cache_line});
    }
    bool operator==(const AtCacheLine&) const { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AtCacheLine<T>>;

}  // namespace sglb
