#include "leaf_rows.h"

#include <algorithm>
#include <numeric>

#include "parallel.h"
#include "partition.h"

namespace sglb {
namespace {

// Fewer rows than this are parted sooner than a thread wakes.
constexpr int64_t serial_rows = 4096;
// Every chunk has histograms of its own where threads share the rows of a level.
constexpr int most_chunks = 8;

}  // namespace

LeafRows::LeafRows(int64_t n_rows, const uint32_t* rows, int64_t most_leaves, Workspace& workspace,
                   int n_threads)
    : most_leaves_(most_leaves),
      n_chunks_(n_rows < serial_rows ? 1 : std::min(most_chunks, n_threads)),
      n_threads_(n_rows < serial_rows ? 1 : n_threads),
      ws_(workspace),
      segments_(static_cast<size_t>(n_chunks_ * most_leaves)) {
    ws_.order.resize(static_cast<size_t>(n_rows));
    ws_.other_order.resize(static_cast<size_t>(n_rows));
    ws_.bits.resize(static_cast<size_t>(n_rows));
    if (rows)
        std::copy_n(rows, n_rows, ws_.order.data());
    else
        std::iota(ws_.order.begin(), ws_.order.end(), uint32_t{0});
    for (int64_t c = 0; c < n_chunks_; ++c) {
        const int64_t begin = n_rows * c / n_chunks_;
        place(c, 0) = {begin, n_rows * (c + 1) / n_chunks_ - begin};
    }
}

int64_t LeafRows::count(int64_t leaf) const {
    int64_t rows = 0;
    for (int64_t c = 0; c < n_chunks_; ++c) rows += segment(c, leaf).count;
    return rows;
}

void LeafRows::part(const Split& split, const CodeColumn& column, int64_t n_leaves) {
    parallel_for(n_chunks_ * n_leaves, n_threads_, [&](int64_t task) {
        const int64_t chunk = task / n_leaves, leaf = task % n_leaves;
        Segment& rows = place(chunk, leaf);
        const int64_t n_left = part_segment(split, column, rows);
        place(chunk, leaf + n_leaves) = {rows.begin + n_left, rows.count - n_left};
        rows.count = n_left;
    });
    ws_.order.swap(ws_.other_order);
}

// Returns how many rows went left; they come first.
int64_t LeafRows::part_segment(const Split& split, const CodeColumn& column, const Segment& rows) {
    const uint8_t* __restrict codes = column.codes;
    const uint32_t* __restrict order = ws_.order.data() + rows.begin;
    uint8_t* __restrict bits = ws_.bits.data() + rows.begin;
    const int64_t stride = column.stride;
    const auto low = split.low, span = static_cast<uint8_t>(split.high - split.low);
    for (int64_t i = 0; i < rows.count; ++i)
        bits[i] = static_cast<uint8_t>(codes[order[i] * stride] - low) > span;
    return sglb::part(order, ws_.other_order.data() + rows.begin, bits, rows.count);
}

}  // namespace sglb
