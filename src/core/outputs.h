// The outputs that a structure is searched on.
//
// The leaves of a tree hold all outputs. Its splits may be searched on a few, other ones for each
// tree, which costs that much less: n of them, drawn without replacement and in proportion to the
// squares of their noisy gradients, as some of the structure rows show them. So an output that has
// much to learn leads often, and every output with noise leads at times.
#pragma once

#include <cstdint>
#include <vector>

#include "quantise.h"

namespace sglb {

// OUT squares [n_outputs]: sums of squared packed gradients over at most 1,024 evenly spaced
// structure rows of all shards, those of this one standing behind `before` others. Integers below
// 2^62, because sums of packed gradients are below 2^31: those of shards add up exactly.
void output_squares(const QuantiseInput& input, const Scales& scales, int64_t before,
                    int64_t* squares);

// OUT outputs, increasing: n of them, fewer than there are.
void draw_outputs(const std::vector<int64_t>& squares, uint64_t seed, uint32_t step, int64_t n,
                  std::vector<int32_t>& outputs);

}  // namespace sglb
