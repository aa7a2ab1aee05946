// Parting the rows of a leaf.
#pragma once

#include <cstdint>

namespace sglb {

// Moves n values: those with bit 0 to the beginning of `to`, those with bit 1 to its end. Returns
// how many have bit 0. The order within a part is not kept, but depends on the bits alone.
int64_t part(const uint32_t* from, uint32_t* to, const uint8_t* bits, int64_t n);

}  // namespace sglb
