// Losses of pairs of documents of a query: the pairwise logistic loss and LambdaRank.
//
// A pair of which document i should stand above j costs weight * log(1 + e^(-sigma (z_i - z_j))).
#pragma once

#include <cstdint>

#include "ranking.h"

namespace sglb {

// Where derivatives go: OUT gradient [n_rows], hessian [n_rows] or null. A query with a raw score
// that is not finite gets NaN.
struct RankingSlopes {
    double* gradient;
    double* hessian;

    void fill(const uint32_t* rows, int64_t n, double value) const;
};

bool all_finite(const double* raw, const uint32_t* rows, int64_t n);

// Weight 1 for every pair of different relevance. Returns the largest |gradient|, infinity if one
// is not finite. A document's pairs are added by score and relevance of the other one, so that the
// result does not depend on the order of the rows.
double pairwise_logistic(const Queries& queries, const double* relevance, const double* raw,
                         double sigma, const RankingSlopes& out, int n_threads);

// The loss of each document, half of that of its pairs: OUT loss [n_rows].
void pairwise_losses(const Queries& queries, const double* relevance, const double* raw,
                     double sigma, double* loss, int n_threads);

// LambdaRank as LightGBM has it: the weight of a pair is how much DCG, times the scale of the
// target, changes when the two documents swap their places by raw score. Of each pair at least one
// document is above the cut-off (LightGBM's truncation level). With `normalise` the weight is
// divided by 0.01 + |z_i - z_j| unless all scores are equal, and all derivatives of the query are
// multiplied by log2(1 + S) / S, S being twice the sum of the pairs' |gradient|.
double lambdarank(const RankingTarget& target, const double* raw, double sigma, bool normalise,
                  const RankingSlopes& out, int n_threads);

}  // namespace sglb
