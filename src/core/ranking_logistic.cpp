// GCC would follow the branches of a clamp to the end of a pair's formula, which leaves no loop
// that it could take in vectors.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")
#endif

#include <limits>

#include "aligned.h"
#include "largest.h"
#include "ranking_pairs.h"

namespace sglb {
namespace {

// Documents that are handled side by side. Every pair is computed for both of its documents: twice
// the work of one loop over pairs, but a document's sum has the order of the others and equal
// documents have equal sums.
constexpr int64_t lanes = 8;

// Documents of one query by falling score, those of equal score by falling relevance; arrays are
// padded to whole lanes.
struct Documents {
    int64_t n = 0;
    AlignedVector<double> raw, relevance, first, second;
    std::vector<uint32_t> place;  // row in the query of each document

    explicit Documents(int64_t longest) : place(static_cast<size_t>(longest)) {
        for (auto* array : {&raw, &relevance, &first, &second})
            array->resize(static_cast<size_t>(longest + lanes));
    }

    void read(const Queries& queries, int64_t q, const double* relevances, const double* scores) {
        n = queries.size(q);
        const uint32_t* rows = queries.rows(q);
        for (int64_t i = 0; i < n; ++i) place[static_cast<size_t>(i)] = static_cast<uint32_t>(i);
        std::sort(place.begin(), place.begin() + n, [&](uint32_t a, uint32_t b) {
            const uint32_t row = rows[a], other = rows[b];
            if (scores[row] != scores[other]) return scores[row] > scores[other];
            if (relevances[row] != relevances[other]) return relevances[row] > relevances[other];
            return a < b;
        });
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t row = rows[place[static_cast<size_t>(i)]];
            raw[i] = scores[row];
            relevance[i] = relevances[row];
        }
    }

    void write(const uint32_t* rows, const AlignedVector<double>& values, double* out) const {
        for (int64_t i = 0; i < n; ++i) out[rows[place[static_cast<size_t>(i)]]] = values[i];
    }
};

// OUT first, second: gradient and hessian of each document.
SGLB_KERNEL void fill_slopes(Documents& d, double sigma) {
    const double* __restrict raw = d.raw.data();
    const double* __restrict relevance = d.relevance.data();
    for (int64_t begin = 0; begin < d.n; begin += lanes) {
        alignas(64) double z[lanes], y[lanes], gradient[lanes], hessian[lanes];
        for (int64_t l = 0; l < lanes; ++l) z[l] = raw[begin + l];
        for (int64_t l = 0; l < lanes; ++l) y[l] = relevance[begin + l];
        for (int64_t l = 0; l < lanes; ++l) gradient[l] = hessian[l] = 0.0;
        for (int64_t j = 0; j < d.n; ++j) {
            const double other = raw[j], other_relevance = relevance[j];
            for (int64_t l = 0; l < lanes; ++l) {
                const double sign =
                    (y[l] > other_relevance ? 1.0 : 0.0) - (y[l] < other_relevance ? 1.0 : 0.0);
                // The chance that the pair is in the wrong order.
                const double wrong = 1.0 / (1.0 + exponential(sigma * (sign * (z[l] - other))));
                gradient[l] -= sign * wrong;
                hessian[l] += absolute(sign) * (wrong * (1.0 - wrong));
            }
        }
        for (int64_t l = 0; l < lanes; ++l) d.first[begin + l] = sigma * gradient[l];
        for (int64_t l = 0; l < lanes; ++l) d.second[begin + l] = sigma * sigma * hessian[l];
    }
}

// OUT first: half of log(1 + e^-m) = max(-m, 0) + log(1 + e^-|m|) over the pairs of each document.
SGLB_KERNEL void fill_losses(Documents& d, double sigma) {
    const double* __restrict raw = d.raw.data();
    const double* __restrict relevance = d.relevance.data();
    for (int64_t begin = 0; begin < d.n; begin += lanes) {
        alignas(64) double z[lanes], y[lanes], loss[lanes];
        for (int64_t l = 0; l < lanes; ++l) z[l] = raw[begin + l];
        for (int64_t l = 0; l < lanes; ++l) y[l] = relevance[begin + l];
        for (int64_t l = 0; l < lanes; ++l) loss[l] = 0.0;
        for (int64_t j = 0; j < d.n; ++j) {
            const double other = raw[j], other_relevance = relevance[j];
            for (int64_t l = 0; l < lanes; ++l) {
                const double sign =
                    (y[l] > other_relevance ? 1.0 : 0.0) - (y[l] < other_relevance ? 1.0 : 0.0);
                const double margin = sigma * (sign * (z[l] - other));
                loss[l] += absolute(sign) *
                           (maximum(-margin, 0.0) + logarithm_1p(exponential(-absolute(margin))));
            }
        }
        for (int64_t l = 0; l < lanes; ++l) d.first[begin + l] = 0.5 * loss[l];
    }
}

}  // namespace

double pairwise_logistic(const Queries& queries, const double* relevance, const double* raw,
                         double sigma, const RankingSlopes& out, int n_threads) {
    parallel_queries(queries, n_threads, [&](int64_t begin, int64_t end, int64_t longest) {
        Documents d(longest);
        for (int64_t q = begin; q < end; ++q) {
            const uint32_t* rows = queries.rows(q);
            if (!all_finite(raw, rows, queries.size(q))) {
                out.fill(rows, queries.size(q), std::numeric_limits<double>::quiet_NaN());
                continue;
            }
            d.read(queries, q, relevance, raw);
            fill_slopes(d, sigma);
            d.write(rows, d.first, out.gradient);
            if (out.hessian) d.write(rows, d.second, out.hessian);
        }
    });
    return largest(out.gradient, queries.n_rows, n_threads);
}

void pairwise_losses(const Queries& queries, const double* relevance, const double* raw,
                     double sigma, double* loss, int n_threads) {
    parallel_queries(queries, n_threads, [&](int64_t begin, int64_t end, int64_t longest) {
        Documents d(longest);
        for (int64_t q = begin; q < end; ++q) {
            const uint32_t* rows = queries.rows(q);
            if (!all_finite(raw, rows, queries.size(q))) {
                for (int64_t i = 0; i < queries.size(q); ++i)
                    loss[rows[i]] = std::numeric_limits<double>::quiet_NaN();
                continue;
            }
            d.read(queries, q, relevance, raw);
            fill_losses(d, sigma);
            d.write(rows, d.first, loss);
        }
    });
}

}  // namespace sglb
