// Scratch memory of a chain, reused from step to step.
#pragma once

#include <cstdint>
#include <vector>

#include "sample.h"

namespace sglb {

struct Workspace {
    Draw draw;
    std::vector<int32_t> outputs;
    std::vector<uint32_t> order, other_order;
    std::vector<int64_t> words;
    std::vector<uint8_t> codes;
    std::vector<int64_t> hist, part_hist;
    std::vector<float> scores;
    std::vector<int32_t> parted;
    std::vector<uint8_t> leaf8;
    std::vector<uint16_t> leaf16;
};

}  // namespace sglb
