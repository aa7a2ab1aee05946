// The rows of the leaves of a tree while its structure is searched.
//
// Rows stand in chunks, one for each of up to eight threads if they are not few, and within a chunk
// by leaf. A row never leaves its chunk, so that a thread finds in its cache what it has
// partitioned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partition.h"
#include "workspace.h"

namespace sglb {

// Some of the rows of one leaf: [begin, begin + count) of the current order.
struct Segment {
    int64_t begin = 0, count = 0;
};

class LeafRows {
  public:
    // All rows in leaf 0: those listed, or 0 .. n_rows - 1.
    LeafRows(int64_t n_rows, const uint32_t* rows, int64_t most_leaves, Workspace& workspace,
             int n_threads);

    int64_t n_chunks() const { return n_chunks_; }
    const uint32_t* order() const { return ws_.order.data(); }
    const Segment& segment(int64_t chunk, int64_t leaf) const {
        return segments_[chunk * most_leaves_ + leaf];
    }
    int64_t count(int64_t leaf) const;

    // Two leaves of each of the first n_leaves: `leaf` keeps the rows that go left, and
    // `leaf + n_leaves` has the others. Sums do not care about the order within a leaf.
    void split(const Split& split, const CodeColumn& column, int64_t n_leaves);

  private:
    Segment& segment(int64_t chunk, int64_t leaf) { return segments_[chunk * most_leaves_ + leaf]; }

    int64_t most_leaves_, n_chunks_;
    int n_threads_;
    Workspace& ws_;
    std::vector<Segment> segments_;  // [n_chunks * most_leaves]
};

}  // namespace sglb
