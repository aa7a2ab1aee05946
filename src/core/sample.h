// A stratified sample of rows: one from each of n equal stretches.
#pragma once

#include <cstdint>

#include "noise.h"

namespace sglb {

// Length of a stretch as a 32.32 fixed-point number. Needs n <= n_rows < 2^31.
inline uint64_t stretch_length(uint64_t n, uint64_t n_rows) { return (n_rows << 32) / n; }

// The row at a random point of stretch k; never falls as k grows. Every row has the same chance,
// also where a stretch ends within a row, which its neighbour may then draw once more.
SGLB_INLINE uint64_t stretch_point(uint64_t word, uint64_t k, uint64_t length) {
    const uint64_t point = (length >> 32) * word + ((length & 0xffffffff) * word >> 32);
    return (k * length + point) >> 32;
}
SGLB_INLINE uint64_t stretch_row(const Stream& stream, uint64_t k, uint64_t length) {
    return stretch_point(words_at(stream, k)[0], k, length);
}

}  // namespace sglb
