#include "noise.h"

#include "parallel.h"

namespace sglb {
namespace {

SGLB_KERNEL void normals_block(const Stream& stream, uint64_t first, int64_t n, double* out) {
    const Stream copy = stream;  // lets the compiler keep it in registers
    for (int64_t i = 0; i < n; ++i) out[i] = normal_at(copy, first + static_cast<uint64_t>(i));
}

}  // namespace

void fill_words(const Stream& stream, uint64_t first, int64_t n, uint32_t* out) {
    for (int64_t i = 0; i < n; ++i) {
        const Words w = words_at(stream, first + static_cast<uint64_t>(i));
        for (size_t j = 0; j < 4; ++j) out[4 * static_cast<size_t>(i) + j] = w[j];
    }
}

void fill_normals(const Stream& stream, uint64_t first, int64_t n, double* out, int n_threads) {
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        normals_block(stream, first + static_cast<uint64_t>(begin), end - begin, out + begin);
    });
}

void fill_normals_single(const Stream& stream, uint64_t first, int64_t n, float* out) {
    for (int64_t i = 0; i < n; ++i) {
        const uint64_t index = first + static_cast<uint64_t>(i);
        const Words w = words_at(stream, index >> 1);
        out[i] = normal_radius_single(w[0]) *
                 normal_cosine_single(w[1], static_cast<uint32_t>(index & 1));
    }
}

}  // namespace sglb
