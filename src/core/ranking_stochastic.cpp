#include "ranking_stochastic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aligned.h"
#include "elementary.h"
#include "largest.h"

namespace sglb {
namespace {

// Documents that are handled side by side.
constexpr int64_t lanes = 8;
constexpr double inverse_root_two_pi = 0.39894228040143267794;

int64_t padded(int64_t n) { return (n + lanes - 1) / lanes * lanes; }

// The arrays of one query, documents in the order of its rows; padded to whole lanes.
struct Documents {
    AlignedVector<double> gain, shifted, noise, score, middle, rank, sum;
    AlignedVector<double> ranked_score, ranked_gain;
    AlignedVector<uint64_t> number;
    std::vector<Ranked> ranked;
    int64_t n = 0;
    bool finite = true, alike = true;

    explicit Documents(int64_t longest) : ranked(static_cast<size_t>(longest)) {
        const auto size = static_cast<size_t>(padded(longest) + lanes);
        for (auto* array :
             {&gain, &shifted, &noise, &score, &middle, &rank, &sum, &ranked_score, &ranked_gain})
            array->resize(size);
        number.resize(size);
    }

    // Reads query q: raw scores (0 where raw is null) with the shift of the smoothing, centred.
    void read(const RankingTarget& target, int64_t q, const double* raw,
              const Smoothing& smoothing) {
        n = target.queries->size(q);
        const uint32_t* rows = target.queries->rows(q);
        const double shift = smoothing.sigma * smoothing.mu;
        double total = 0.0, poison = 0.0;
        alike = true;
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t row = rows[i];
            const double z = raw ? raw[row] : 0.0;
            gain[i] = target.gain[row];
            alike &= gain[i] == gain[0];
            shifted[i] = z - shift * target.relevance[row];
            poison += shifted[i] - shifted[i];
            number[i] = static_cast<uint64_t>(target.queries->numbers.of(row));
            total += shifted[i];
        }
        const double mean = total / static_cast<double>(n);
        finite = poison == 0.0 && std::isfinite(mean);  // NaN has no place in an order
        for (int64_t i = 0; i < n; ++i) shifted[i] -= mean;
        std::fill_n(sum.begin(), padded(n), 0.0);
    }
};

SGLB_KERNEL void fill_noise(const Stream& stream, const uint64_t* number, int64_t n, double* out) {
    const Stream copy = stream;  // lets the compiler keep it in registers
    for (int64_t i = 0; i < n; ++i) out[i] = normal_at(copy, number[i]);
}

// Draws scores, documents' middles m_i and ranks down to the n_boundaries-th boundary.
void draw_scores(Documents& d, double sigma, double sign, int64_t n_boundaries) {
    const int64_t n = d.n, n_top = n_boundaries + 1;
    const double n_others = static_cast<double>(n - 1);
    const double step = sign * sigma;
    double total = 0.0;
    for (int64_t i = 0; i < n; ++i) total += step * d.noise[i];
    for (int64_t i = 0; i < n; ++i) {
        const double noise = step * d.noise[i];
        d.score[i] = d.shifted[i] + noise;
        d.middle[i] = d.shifted[i] + (total - noise) / n_others;
        d.rank[i] = static_cast<double>(n);
    }
    rank_documents(d.score.data(), n, n_top, d.ranked.data());
    for (int64_t p = 0; p < n_top; ++p) {
        const Ranked& here = d.ranked[static_cast<size_t>(p)];
        d.ranked_score[p] = here.score;
        d.ranked_gain[p] = d.gain[here.document];
        d.rank[here.document] = static_cast<double>(p);
    }
}

// Behind two documents that stop every reader no boundary has an effect.
int64_t reached(const Documents& d, const RankingMetric& metric, int64_t n_boundaries) {
    if (metric.memory != Memory::cascade) return n_boundaries;
    int64_t n_stops = 0;
    for (int64_t p = 0; p < n_boundaries; ++p)
        if (d.ranked_gain[p] == 1.0 && ++n_stops == 2) return p + 1;
    return n_boundaries;
}

// sum_i += sum over q of J_q e^(-(s_{o_q} - m_i)^2 / (2 v^2)), boundaries outside and documents in
// lanes: a document's boundaries are added downwards. |J_q| with `absolute_effects`.
template <Memory memory, bool absolute_effects>
SGLB_INLINE void add_boundaries(Documents& d, const double* drop, int64_t n_boundaries,
                                double inverse_v) {
    const double* __restrict scores = d.ranked_score.data();
    const double* __restrict gains = d.ranked_gain.data();
    for (int64_t first = 0; first < d.n; first += lanes) {
        const double* __restrict gain = d.gain.data() + first;
        const double* __restrict middle = d.middle.data() + first;
        const double* __restrict rank = d.rank.data() + first;
        double* __restrict sum = d.sum.data() + first;
        alignas(64) double state[lanes], total[lanes];
        for (int64_t l = 0; l < lanes; ++l) state[l] = 1.0;
        for (int64_t l = 0; l < lanes; ++l) total[l] = sum[l];
        for (int64_t q = 0; q < n_boundaries; ++q) {
            const double weight = drop[q], place = static_cast<double>(q);
            if (memory == Memory::none && weight == 0.0) continue;
            const double score = scores[q], next_score = scores[q + 1];
            const double other = gains[q], next_other = gains[q + 1];
            for (int64_t l = 0; l < lanes; ++l) {
                const bool passed = place >= rank[l];  // document i itself is no boundary
                const double o = passed ? next_other : other;
                const double t = ((passed ? next_score : score) - middle[l]) * inverse_v;
                const double effect = (gain[l] - o) * weight * state[l];
                total[l] +=
                    (absolute_effects ? absolute(effect) : effect) * exponential(-0.5 * (t * t));
                state[l] = remember<memory>(state[l], o);
            }
        }
        for (int64_t l = 0; l < lanes; ++l) sum[l] = total[l];
    }
}

// A clone for AVX2 can be made of a plain function only.
#define SGLB_BOUNDARIES(function, memory, absolute_effects)                                    \
    SGLB_KERNEL void function(Documents& d, const double* drop, int64_t n, double inverse_v) { \
        add_boundaries<memory, absolute_effects>(d, drop, n, inverse_v);                       \
    }
SGLB_BOUNDARIES(add_flat, Memory::none, false)
SGLB_BOUNDARIES(add_count, Memory::count, false)
SGLB_BOUNDARIES(add_cascade, Memory::cascade, false)
SGLB_BOUNDARIES(add_flat_absolute, Memory::none, true)
SGLB_BOUNDARIES(add_count_absolute, Memory::count, true)
SGLB_BOUNDARIES(add_cascade_absolute, Memory::cascade, true)
#undef SGLB_BOUNDARIES

using Boundaries = void (*)(Documents&, const double*, int64_t, double);

Boundaries boundaries_of(Memory memory, bool absolute_effects) {
    if (memory == Memory::none) return absolute_effects ? add_flat_absolute : add_flat;
    if (memory == Memory::count) return absolute_effects ? add_count_absolute : add_count;
    return absolute_effects ? add_cascade_absolute : add_cascade;
}

// Sums over boundaries and samples of a query that was read; 1 / v. With `mirrored` every other
// sample is the mirror image of the one before.
double sum_samples(Documents& d, const RankingMetric& metric, const Smoothing& smoothing,
                   Stream stream, bool mirrored, Boundaries add) {
    const double n = static_cast<double>(d.n);
    const double inverse_v = std::sqrt((n - 1.0) / n) / smoothing.sigma;
    const int64_t n_boundaries = std::min(metric.cutoff, d.n - 1);
    for (int64_t sample = 0; sample < smoothing.n_samples; ++sample) {
        const bool image = mirrored && sample % 2 == 1;
        stream.output = static_cast<uint32_t>(sample);
        if (!image) fill_noise(stream, d.number.data(), d.n, d.noise.data());
        draw_scores(d, smoothing.sigma, image ? -1.0 : 1.0, n_boundaries);
        add(d, metric.drop.data(), reached(d, metric, n_boundaries), inverse_v);
    }
    return inverse_v;
}

}  // namespace

double stochastic_rank(const RankingTarget& target, const double* raw, const Smoothing& smoothing,
                       Stream stream, double* gradient, int n_threads) {
    const Boundaries add = boundaries_of(target.metric.memory, false);
    parallel_queries(*target.queries, n_threads, [&](int64_t begin, int64_t end, int64_t longest) {
        Documents d(longest);
        for (int64_t q = begin; q < end; ++q) {
            const uint32_t* rows = target.queries->rows(q);
            const double scale = target.scale[static_cast<size_t>(q)];
            d.read(target, q, raw, smoothing);
            if (!d.finite || d.alike || scale == 0.0) {
                const double same = d.finite ? 0.0 : std::numeric_limits<double>::quiet_NaN();
                for (int64_t i = 0; i < d.n; ++i) gradient[rows[i]] = same;
                continue;
            }
            const double inverse_v = sum_samples(d, target.metric, smoothing, stream, false, add);
            const double unit =
                scale * inverse_root_two_pi * inverse_v / static_cast<double>(smoothing.n_samples);
            double mean = 0.0;
            for (int64_t i = 0; i < d.n; ++i) mean += d.sum[i];
            mean /= static_cast<double>(d.n);
            for (int64_t i = 0; i < d.n; ++i) gradient[rows[i]] = unit * (mean - d.sum[i]);
        }
    });
    return largest(gradient, target.queries->n_rows, n_threads);
}

void rank_curvature(const RankingTarget& target, const Smoothing& smoothing, Stream stream,
                    double* hessian, int n_threads) {
    const Boundaries add = boundaries_of(target.metric.memory, true);
    parallel_queries(*target.queries, n_threads, [&](int64_t begin, int64_t end, int64_t longest) {
        Documents d(longest);
        for (int64_t q = begin; q < end; ++q) {
            const uint32_t* rows = target.queries->rows(q);
            d.read(target, q, nullptr, smoothing);
            double unit = d.finite ? 0.0 : std::numeric_limits<double>::quiet_NaN();
            if (d.finite && !d.alike) {
                const double inverse_v =
                    sum_samples(d, target.metric, smoothing, stream, true, add);
                unit = target.scale[static_cast<size_t>(q)] * inverse_root_two_pi * inverse_v *
                       inverse_v / static_cast<double>(smoothing.n_samples);
            }
            for (int64_t i = 0; i < d.n; ++i) hessian[rows[i]] = unit * d.sum[i];
        }
    });
}

}  // namespace sglb
