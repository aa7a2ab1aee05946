// The partition of the rows of a node by a split.
#pragma once

#include <cstdint>

#include "split.h"

namespace sglb {

// Codes of one feature: that of row r is codes[r * stride].
struct CodeColumn {
    const uint8_t* codes;
    int64_t stride;
};

// Moves n rows: those that a split keeps left to the beginning of `to`, the others to its end.
// Returns how many it keeps left. The order within a side is not kept, and depends on the
// instruction set: whatever reads the rows adds integers.
int64_t partition_rows(const CodeColumn& column, const Split& split, const uint32_t* from,
                       uint32_t* to, int64_t n);

}  // namespace sglb
