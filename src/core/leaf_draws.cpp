#include "leaf_draws.h"

#include <algorithm>
#include <cstring>

#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

// Partitions whose values are added in single precision before they are widened. The rounding of so
// few is that of the values themselves, and a row's sums are read and written once for all of them.
constexpr int64_t group = 16;
// Bytes of the sums of the rows that pass while the values of a group stay in the second cache,
// 400 KB for sixteen trees of 64 leaves and 100 draws. Rows must be many, because each tile reads
// all values from farther away.
constexpr int64_t tile_bytes = 1 << 18;

// Rows begin .. end of n_rows, and partitions first .. last.
struct Pass {
    const int32_t* leaves;
    int64_t n_rows, begin, end, first, last;
};

// Vectors by name: compilers would rather join the turns of the loop over partitions, and then add
// one number at a time.
using Floats4 = float __attribute__((vector_size(16)));
using Floats16 = float __attribute__((vector_size(64)));
using Doubles4 = double __attribute__((vector_size(32)));
using Doubles16 = double __attribute__((vector_size(128)));

template <class Lanes>
SGLB_INLINE Lanes load(const float* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

// row += sum, lane by lane.
template <class Wide, class Lanes>
SGLB_INLINE void add_wide(const Lanes& sum, double* row) {
    Wide wide;
    std::memcpy(&wide, row, sizeof wide);
    wide += __builtin_convertvector(sum, Wide);
    std::memcpy(row, &wide, sizeof wide);
}
SGLB_INLINE void add_to(const Floats4& sum, double* row) { add_wide<Doubles4>(sum, row); }
SGLB_INLINE void add_to(const Floats16& sum, double* row) { add_wide<Doubles16>(sum, row); }

// As many draws of a row as N vectors have lanes; `values` and `row` begin at the first of them.
template <class Lanes, int N>
SGLB_INLINE void add_some(const float* values, const int64_t* leaves, int64_t n, double* row) {
    constexpr int width = sizeof(Lanes) / sizeof(float);
    Lanes sum[N] = {};
    for (int64_t t = 0; t < n; ++t)
        for (int v = 0; v < N; ++v) sum[v] += load<Lanes>(values + leaves[t] + v * width);
    for (int v = 0; v < N; ++v) add_to(sum[v], row + v * width);
}

SGLB_INLINE void add_one(const float* values, const int64_t* leaves, int64_t n, double* row) {
    float sum = 0.0f;
    for (int64_t t = 0; t < n; ++t) sum += values[leaves[t]];
    *row += static_cast<double>(sum);
}

SGLB_KERNEL void add_group(const LeafDraws& draws, const Pass& pass, int64_t k, double* out) {
    const int64_t m = draws.n_draws, n = pass.last - pass.first;
    for (int64_t i = pass.begin; i < pass.end; ++i) {
        int64_t at[group];  // where the values of the row's leaves begin
        for (int64_t t = 0; t < n; ++t) {
            const int64_t number = pass.first + t;
            const int64_t leaf = draws.first[number] + pass.leaves[number * pass.n_rows + i];
            at[t] = (leaf * draws.n_outputs + k) * m;
        }
        double* row = out + (k * pass.n_rows + i) * m;
        const float* values = draws.values;
        int64_t d = 0;
        for (; d + 64 <= m; d += 64) add_some<Floats16, 4>(values + d, at, n, row + d);
        // Several vectors at a time hide the time an addition takes.
        for (; d + 32 <= m; d += 32) add_some<Floats16, 2>(values + d, at, n, row + d);
        for (; d + 16 <= m; d += 16) add_some<Floats16, 1>(values + d, at, n, row + d);
        for (; d + 4 <= m; d += 4) add_some<Floats4, 1>(values + d, at, n, row + d);
        for (; d < m; ++d) add_one(values + d, at, n, row + d);
    }
}

}  // namespace

void add_leaf_draws(const LeafDraws& draws, const int32_t* leaves, int64_t n_rows, double* out,
                    int n_threads) {
    const int64_t bytes_of_row = std::max<int64_t>(draws.n_draws, 1) * 8;
    const int64_t tile = std::clamp<int64_t>(tile_bytes / bytes_of_row, 64, 4096);
    const int64_t n_tiles = (n_rows + tile - 1) / tile;
    parallel_for(n_tiles, n_threads, [&](int64_t number) {
        const int64_t begin = number * tile, end = std::min(begin + tile, n_rows);
        for (int64_t k = 0; k < draws.n_outputs; ++k)
            std::fill(out + (k * n_rows + begin) * draws.n_draws,
                      out + (k * n_rows + end) * draws.n_draws, 0.0);
        for (int64_t t = 0; t < draws.n_partitions; t += group) {
            const Pass pass{leaves, n_rows, begin, end, t, std::min(t + group, draws.n_partitions)};
            for (int64_t k = 0; k < draws.n_outputs; ++k) add_group(draws, pass, k, out);
        }
    });
}

}  // namespace sglb
