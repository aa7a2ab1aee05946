// Rows sorted into queries, what a ranking metric makes of their order, and a loop over queries.
//
// A ranking loss compares the documents (rows) of a query with each other, never with those of
// another query. So queries are handled one by one, by any thread, and every sum within a query has
// one order, that of its rows: the same bits for any threads and any shards of whole queries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "elementary.h"
#include "parallel.h"
#include "row_numbers.h"

namespace sglb {

struct Queries {
    int64_t n_rows, n_queries;
    const uint32_t* order;        // [n_rows], rows of query 0, then of query 1, ...
    const int64_t* starts;        // [n_queries + 1], where a query begins in order
    RowNumbers numbers;           // noise belongs to a row's number in the whole table
    int64_t longest = 0;          // documents of the longest query
    std::vector<int64_t> blocks;  // first query of each task, then n_queries

    Queries(int64_t n_rows, int64_t n_queries, const uint32_t* order, const int64_t* starts,
            const RowNumbers& numbers);
    int64_t size(int64_t query) const { return starts[query + 1] - starts[query]; }
    const uint32_t* rows(int64_t query) const { return order + starts[query]; }
};

// task(begin, end, longest) over blocks of queries with about block_rows rows; longest: documents
// of the longest query of the block.
template <class Task>
void parallel_queries(const Queries& queries, int n_threads, Task&& task) {
    const auto n_blocks = static_cast<int64_t>(queries.blocks.size()) - 1;
    parallel_for(n_blocks, n_blocks > 2 ? n_threads : 1, [&](int64_t block) {
        const int64_t begin = queries.blocks[static_cast<size_t>(block)];
        const int64_t end = queries.blocks[static_cast<size_t>(block) + 1];
        int64_t longest = 0;
        for (int64_t q = begin; q < end; ++q) longest = std::max(longest, queries.size(q));
        task(begin, end, longest);
    });
}

// What a metric remembers of the documents above a boundary: nothing; how many are relevant, plus
// 1; or the chance that a reader gets past all of them.
enum class Memory { none, count, cascade };

// A metric, as the effect of one adjacent swap of documents i and o at places q and q + 1:
//
//     M(i above) - M(o above) = scale (gain_i - gain_o) drop_q memory(the documents above q)
//
//     metric             gain        drop_q = d_q - d_{q+1}, d_p =    memory   scale
//     dcg, ndcg          any         1 / log2(p + 2)                  none     1, 1 / IDCG
//     precision, recall  0 or 1      1                                none     1 / k, 1 / R
//     map                0 or 1      1 / (p + 1)                      count    1 / min(k, R)
//     mrr                0 or 1      1 / (p + 1)                      cascade  1
//     err                in [0, 1]   1 / (p + 1)                      cascade  1
//     pfound             in [0, 1]   decay^p                          cascade  1
//     decay              any         (drop_q = decay^q)               none     1
//
// d is 0 from the cut-off on. R is the number of relevant documents of the query. "decay" are the
// weights of YetiRank, which belong to no metric.
struct RankingMetric {
    Memory memory = Memory::none;
    int64_t cutoff = 0;
    std::vector<double> discount;  // [longest + 1], not cut off
    std::vector<double> drop;      // [longest]
};

// Relevance and gain of all rows, and the metric of each query. Points to the arrays of others.
struct RankingTarget {
    const Queries* queries;
    const double* relevance;  // [n_rows]
    const double* gain;       // [n_rows]
    RankingMetric metric;
    std::vector<double> scale;  // [n_queries]; 0 where no order is better than another

    // Throws std::invalid_argument for an unknown metric.
    RankingTarget(const Queries& queries, const double* relevance, const double* gain,
                  std::string_view name, int64_t cutoff, double decay);
};

// The memory with one more document above the boundary; of none it is 1.
template <Memory memory>
SGLB_INLINE double remember(double state, double gain) {
    if constexpr (memory == Memory::count) return state + gain;
    if constexpr (memory == Memory::cascade) return state * (1.0 - gain);
    return state;
}

// A document by its place among the rows of the query.
struct Ranked {
    double score;
    uint32_t document;
    // Of equal scores the first document is above: a total order.
    bool operator<(const Ranked& other) const {
        return score > other.score || (score == other.score && document < other.document);
    }
};

// Sorts the n_top first of n documents, downwards; the rest follows in any order.
void rank_documents(const double* score, int64_t n, int64_t n_top, Ranked* ranked);

// The metric of each query at raw scores: OUT value [n_queries], NaN with a score that is not
// finite. Of equal scores the document of less gain is above: the worst order, the same for any
// order of the rows. The sum is scale times that of discount_p gain_p memory(the documents above
// p).
void ranking_values(const RankingTarget& target, const double* raw, double* value, int n_threads);

// Effects of swaps in query q, its rows being ranked in their order: OUT effects [n * (n - 1)],
// of document i and the document o at place q of the others.
void swap_effects(const RankingTarget& target, int64_t query, double* effects);

}  // namespace sglb
