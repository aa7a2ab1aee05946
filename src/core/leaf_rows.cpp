#include "leaf_rows.h"

#include <algorithm>
#include <numeric>

#include "parallel.h"

namespace sglb {
namespace {

// Fewer rows than this are partitioned sooner than a thread wakes.
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
    ws_.order.resize(n_rows);
    ws_.other_order.resize(n_rows);
    if (rows)
        std::copy_n(rows, n_rows, ws_.order.data());
    else
        std::iota(ws_.order.begin(), ws_.order.end(), uint32_t{0});
    for (int64_t c = 0; c < n_chunks_; ++c) {
        const int64_t begin = n_rows * c / n_chunks_;
        segment(c, 0) = {begin, n_rows * (c + 1) / n_chunks_ - begin};
    }
}

int64_t LeafRows::count(int64_t leaf) const {
    int64_t rows = 0;
    for (int64_t c = 0; c < n_chunks_; ++c) rows += segment(c, leaf).count;
    return rows;
}

void LeafRows::split(const Split& split, const CodeColumn& column, int64_t n_leaves) {
    parallel_for(n_chunks_ * n_leaves, n_threads_, [&](int64_t task) {
        const int64_t chunk = task / n_leaves, leaf = task % n_leaves;
        Segment& rows = segment(chunk, leaf);
        const int64_t n_left = partition_rows(column, split, ws_.order.data() + rows.begin,
                                              ws_.other_order.data() + rows.begin, rows.count);
        segment(chunk, leaf + n_leaves) = {rows.begin + n_left, rows.count - n_left};
        rows.count = n_left;
    });
    ws_.order.swap(ws_.other_order);
}

}  // namespace sglb
