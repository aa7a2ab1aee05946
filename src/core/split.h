// A split of an oblivious tree.
#pragma once

#include <cstdint>

namespace sglb {

// A split keeps the codes low..high left (bit 0) and sends the others right
// (bit 1).
struct Split {
    int32_t feature;
    uint8_t low, high;
    bool operator==(const Split&) const = default;
};

inline constexpr int most_depth = 16;

}  // namespace sglb
