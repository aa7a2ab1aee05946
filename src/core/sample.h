// A stratified sample of rows: one from each of n equal stretches.
#pragma once

#include <cstdint>

#include "noise.h"

namespace sglb {

// Length of a stretch as a 32.32 fixed-point number, rounded up so that the last one ends at
// n_rows exactly. Needs n <= n_rows < 2^31.
inline uint64_t stretch_length(uint64_t n, uint64_t n_rows) { return ((n_rows << 32) + n - 1) / n; }

// The row drawn from stretch k: increasing in k.
SGLB_INLINE uint64_t stretch_row(const Stream& stream, uint64_t k, uint64_t length) {
    const uint64_t begin = k * length >> 32;
    const uint64_t end = (k + 1) * length >> 32;
    return begin + ((end - begin) * words_at(stream, k)[0] >> 32);
}

}  // namespace sglb
