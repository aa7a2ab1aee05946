// GCC would follow the branches of a clamp to the end of a pair's formula, which leaves no loop
// that it could take in vectors.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")
#endif

#include "ranking_pairs.h"

#include <array>
#include <limits>

#include "aligned.h"
#include "largest.h"

namespace sglb {
namespace {

constexpr double ln2 = 0.69314718055994530942;
// Pairs of a document that are handled side by side. Queries are short: the rest of a division by
// this would take longer, one by one, than the whole lanes.
constexpr int64_t lanes = 8;

// Documents of one query in the order in which pairs are formed: each with those after it. Arrays
// have room for whole lanes after the last document; whatever is there is read and not used.
struct Pairs {
    int64_t n = 0;
    double sigma = 1.0;
    double scale = 1.0;
    bool normalise = false;
    AlignedVector<double> raw, gain, discount, gradient, hessian;
    AlignedVector<double> slope, curvature;  // of the pairs of one document

    explicit Pairs(int64_t longest) {
        for (auto* array : {&raw, &gain, &discount, &gradient, &hessian, &slope, &curvature})
            array->resize(static_cast<size_t>(longest + lanes));
    }
    void clear() {
        std::fill_n(gradient.begin(), n + lanes, 0.0);
        std::fill_n(hessian.begin(), n + lanes, 0.0);
    }
};

// The sum of x over n documents, which are followed by zeros up to whole lanes.
SGLB_INLINE double sum_in_lanes(const double* __restrict x, int64_t n) {
    alignas(64) std::array<double, lanes> part{};
    for (int64_t i = 0; i < n; i += lanes)
        for (int64_t l = 0; l < lanes; ++l) part[static_cast<size_t>(l)] += x[i + l];
    return ((part[0] + part[4]) + (part[2] + part[6])) +
           ((part[1] + part[5]) + (part[3] + part[7]));
}

// The document that a run of pairs has in common.
struct First {
    double raw, gain, discount, sigma, scale;
    double near, far;  // a weight is divided by near + far |z_i - z_j|
};

// Gradient and hessian by z_j of the pairs of a document i with n others: OUT slope, curvature, n
// values followed by `lanes` zeros. The gradient by z_i is -slope.
SGLB_INLINE void pair_slopes(const First& i, int64_t n, const double* __restrict raw,
                             const double* __restrict gain, const double* __restrict discount,
                             double* __restrict slope, double* __restrict curvature) {
    const First first = i;  // lets the compiler keep it in registers
    for (int64_t begin = 0; begin < n; begin += lanes) {
        for (int64_t j = begin; j < begin + lanes; ++j) {
            const double gap = first.gain - gain[j], distance = first.raw - raw[j];
            const double sign = (gap > 0.0 ? 1.0 : 0.0) - (gap < 0.0 ? 1.0 : 0.0);
            const double weight = absolute(gap) * absolute(first.discount - discount[j]) *
                                  first.scale / (first.near + first.far * absolute(distance));
            // The chance that the pair is in the wrong order.
            const double wrong = 1.0 / (1.0 + exponential(first.sigma * (sign * distance)));
            const double pull = first.sigma * weight * wrong;
            slope[j] = sign * pull;
            curvature[j] = first.sigma * pull * (1.0 - wrong);
        }
    }
    std::fill_n(slope + n, lanes, 0.0);
    std::fill_n(curvature + n, lanes, 0.0);
}

// All pairs of document i with those after it. Returns the sum of their |gradient|.
SGLB_INLINE double add_pairs(Pairs& pairs, int64_t i) {
    const int64_t after = i + 1, n = pairs.n - after;
    const First first{pairs.raw[i],
                      pairs.gain[i],
                      pairs.discount[i],
                      pairs.sigma,
                      pairs.scale,
                      pairs.normalise ? 0.01 : 1.0,
                      pairs.normalise ? 1.0 : 0.0};
    double* __restrict slope = pairs.slope.data();
    double* __restrict curvature = pairs.curvature.data();
    pair_slopes(first, n, pairs.raw.data() + after, pairs.gain.data() + after,
                pairs.discount.data() + after, slope, curvature);
    double* __restrict gradient = pairs.gradient.data();
    double* __restrict hessian = pairs.hessian.data();
    for (int64_t begin = 0; begin < n; begin += lanes)
        for (int64_t j = begin; j < begin + lanes; ++j) {
            gradient[after + j] += slope[j];
            hessian[after + j] += curvature[j];
        }
    gradient[i] -= sum_in_lanes(slope, n);
    hessian[i] += sum_in_lanes(curvature, n);
    for (int64_t begin = 0; begin < n; begin += lanes)
        for (int64_t j = begin; j < begin + lanes; ++j) slope[j] = absolute(slope[j]);
    return sum_in_lanes(slope, n);
}

SGLB_KERNEL double add_all_pairs(Pairs& pairs, int64_t n_first) {
    double total = 0.0;
    for (int64_t i = 0; i < n_first; ++i) total += add_pairs(pairs, i);
    return total;
}

// log2(1 + S) / S.
double normaliser(double sum) {
    if (sum <= 0.0) return 1.0;
    return (sum <= 1.0 ? logarithm_1p(sum) : logarithm(1.0 + sum)) / ln2 / sum;
}

}  // namespace

bool all_finite(const double* raw, const uint32_t* rows, int64_t n) {
    double poison = 0.0;
    for (int64_t i = 0; i < n; ++i) poison += raw[rows[i]] - raw[rows[i]];
    return poison == 0.0;
}

void RankingSlopes::fill(const uint32_t* rows, int64_t n, double value) const {
    for (int64_t i = 0; i < n; ++i) gradient[rows[i]] = value;
    if (hessian)
        for (int64_t i = 0; i < n; ++i) hessian[rows[i]] = value;
}

double lambdarank(const RankingTarget& target, const double* raw, double sigma, bool normalise,
                  const RankingSlopes& out, int n_threads) {
    const Queries& queries = *target.queries;
    parallel_queries(queries, n_threads, [&](int64_t begin, int64_t end, int64_t longest) {
        Pairs pairs(longest);
        std::vector<Ranked> ranked(static_cast<size_t>(longest));
        AlignedVector<double> score(static_cast<size_t>(longest));
        pairs.sigma = sigma;
        std::copy_n(target.metric.discount.begin(), longest, pairs.discount.begin());
        for (int64_t q = begin; q < end; ++q) {
            const uint32_t* rows = queries.rows(q);
            const int64_t n = pairs.n = queries.size(q);
            if (n == 0) continue;
            if (!all_finite(raw, rows, n)) {
                out.fill(rows, n, std::numeric_limits<double>::quiet_NaN());
                continue;
            }
            for (int64_t i = 0; i < n; ++i) score[i] = raw[rows[i]];
            rank_documents(score.data(), n, n, ranked.data());
            for (int64_t p = 0; p < n; ++p) {
                const Ranked& here = ranked[static_cast<size_t>(p)];
                pairs.raw[p] = here.score;
                pairs.gain[p] = target.gain[rows[here.document]];
            }
            pairs.scale = target.scale[static_cast<size_t>(q)];
            pairs.normalise = normalise && pairs.raw[0] != pairs.raw[n - 1];
            pairs.clear();
            const double total = add_all_pairs(pairs, std::min(n, target.metric.cutoff));
            const double factor = normalise ? normaliser(2.0 * total) : 1.0;
            for (int64_t p = 0; p < n; ++p) {
                const uint32_t row = rows[ranked[static_cast<size_t>(p)].document];
                out.gradient[row] = factor * pairs.gradient[p];
                if (out.hessian) out.hessian[row] = factor * pairs.hessian[p];
            }
        }
    });
    return largest(out.gradient, queries.n_rows, n_threads);
}

}  // namespace sglb
