// Residuals of rows less their mean in the query: the gradient of the loss query_squared.
#pragma once

#include "ranking.h"

namespace sglb {

// OUT gradient [n_rows]: r - sum(w r) / total, r = raw - relevance, with the total weight of each
// query [n_queries]; weight [n_rows] is null where every row weighs 1. NaN in a query with a value
// that is not finite. Returns the largest |gradient|, infinity if one is not finite.
//
// A sum adds integers of 2^-k, with the largest k at which it cannot overflow, so that it does not
// depend on the order of the rows (`Queries.sums` in queries.py).
double centred_residuals(const Queries& queries, const double* relevance, const double* weight,
                         const double* total, const double* raw, double* gradient, int n_threads);

}  // namespace sglb
