// Which rows of the whole table a shard holds.
//
// Noise and samples are functions of a row's number in the whole table, so that they do not depend
// on how the rows are dealt to shards. The table may stand there in several copies, one after the
// other; a shard then holds the same rows of each.
#pragma once

#include <cstdint>

namespace sglb {

struct RowNumbers {
    int64_t first = 0;     // number of the first row here
    int64_t n_here = 0;    // rows of a copy here
    int64_t n_in_all = 0;  // rows of a copy in all shards
    int64_t n_copies = 1;

    bool whole() const { return n_here == n_in_all; }
    int64_t total() const { return n_in_all * n_copies; }
    // The number of row i of this shard.
    int64_t of(int64_t i) const { return whole() ? i : i / n_here * n_in_all + first + i % n_here; }
    // How many rows from row i on have consecutive numbers, at most n.
    int64_t run(int64_t i, int64_t n) const {
        if (whole()) return n;
        const int64_t left = n_here - i % n_here;
        return n < left ? n : left;
    }
};

}  // namespace sglb
