#include "leaf_rows.h"

#include <algorithm>
#include <numeric>

#include "elementary.h"
#include "parallel.h"
#include "partition.h"

namespace sglb {
namespace {

// Fewer rows than this are parted sooner than a thread wakes.
constexpr int64_t serial_rows = 4096;
constexpr int most_chunks = 8;

SGLB_KERNEL void mark(const uint8_t* __restrict codes, int64_t n, uint8_t low, uint8_t span,
                      uint8_t* __restrict marks) {
    for (int64_t i = 0; i < n; ++i) marks[i] = static_cast<uint8_t>(codes[i] - low) > span;
}

}  // namespace

LeafRows::LeafRows(int64_t n_rows, int64_t most_leaves, Workspace& workspace, int n_threads)
    : n_rows_(n_rows),
      most_leaves_(most_leaves),
      n_chunks_(n_rows < serial_rows ? 1 : std::min(most_chunks, n_threads)),
      n_threads_(n_threads),
      ws_(workspace),
      segments_(static_cast<size_t>(n_chunks_ * most_leaves)) {
    for (auto* numbers : {&ws_.order, &ws_.other_order})
        numbers->resize(static_cast<size_t>(n_rows));
    for (auto* bytes : {&ws_.bits, &ws_.marks}) bytes->resize(static_cast<size_t>(n_rows));
    std::iota(ws_.order.begin(), ws_.order.end(), uint32_t{0});
    for (int64_t c = 0; c < n_chunks_; ++c)
        place(c, 0) = {first_row(c), first_row(c + 1) - first_row(c)};
}

int64_t LeafRows::count(int64_t leaf) const {
    int64_t rows = 0;
    for (int64_t c = 0; c < n_chunks_; ++c) rows += segment(c, leaf).count;
    return rows;
}

void LeafRows::part(const Split& split, const CodeColumn& column, int64_t n_leaves) {
    const auto low = split.low, span = static_cast<uint8_t>(split.high - split.low);
    const uint8_t* const codes = column.codes;
    const int64_t stride = column.stride;
    parallel_for(n_chunks_, n_threads_, [&](int64_t chunk) {
        if (stride == 1) {
            // Codes side by side are compared many at a time; what is then looked up row by row is
            // small enough for the nearest cache.
            const int64_t begin = first_row(chunk);
            uint8_t* const marks = ws_.marks.data();
            mark(codes + begin, first_row(chunk + 1) - begin, low, span, marks + begin);
            part_chunk(chunk, n_leaves, [marks](uint32_t row) { return marks[row]; });
        } else {
            part_chunk(chunk, n_leaves, [=](uint32_t row) {
                return static_cast<uint8_t>(static_cast<uint8_t>(codes[row * stride] - low) > span);
            });
        }
    });
    ws_.order.swap(ws_.other_order);
}

template <class GoesRight>
void LeafRows::part_chunk(int64_t chunk, int64_t n_leaves, GoesRight&& goes_right) {
    for (int64_t leaf = 0; leaf < n_leaves; ++leaf) {
        Segment& rows = place(chunk, leaf);
        const uint32_t* __restrict order = ws_.order.data() + rows.begin;
        uint8_t* __restrict bits = ws_.bits.data() + rows.begin;
        for (int64_t i = 0; i < rows.count; ++i) bits[i] = goes_right(order[i]);
        const int64_t n_left =
            sglb::part(order, ws_.other_order.data() + rows.begin, bits, rows.count);
        place(chunk, leaf + n_leaves) = {rows.begin + n_left, rows.count - n_left};
        rows.count = n_left;
    }
}

}  // namespace sglb
