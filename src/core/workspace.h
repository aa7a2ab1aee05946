// Scratch memory of a chain, reused from step to step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "split.h"

namespace sglb {

struct Workspace {
    std::vector<uint32_t> order, other_order;
    std::vector<uint8_t> codes;
    std::vector<int64_t> hist, chunk_hist;
    std::vector<float> scores;
    std::vector<int32_t> splits_rows;
    // The leaf of every row, in bytes up to byte_depth, in the structure that is kept beside it.
    std::vector<uint8_t> leaf8;
    std::vector<uint16_t> leaf16;
    Split splits[most_depth];
    int depth = -1;  // none
};

}  // namespace sglb
