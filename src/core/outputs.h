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

// OUT outputs, increasing: n of them, fewer than there are. Looks at no more than 1,024 rows.
void draw_outputs(const QuantiseInput& input, const Scales& scales, int64_t n,
                  std::vector<int32_t>& outputs);

}  // namespace sglb
