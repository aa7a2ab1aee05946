#include "ranking_yeti.h"

#include <limits>

#include "aligned.h"
#include "largest.h"

namespace sglb {
namespace {

// The arrays of one query, documents in the order of its rows.
struct Documents {
    int64_t n = 0;
    AlignedVector<double> raw, gain, score, gradient, hessian;
    AlignedVector<uint64_t> number;
    AlignedVector<uint32_t> words[4];
    std::vector<Ranked> ranked;

    explicit Documents(int64_t longest) : ranked(static_cast<size_t>(longest)) {
        const auto size = static_cast<size_t>(longest);
        for (auto* array : {&raw, &gain, &score, &gradient, &hessian}) array->resize(size);
        for (auto& word : words) word.resize(size);
        number.resize(size);
    }

    // Reads query q; false if a raw score is not finite.
    bool read(const RankingTarget& target, int64_t q, const double* scores) {
        n = target.queries->size(q);
        const uint32_t* rows = target.queries->rows(q);
        double poison = 0.0;
        for (int64_t i = 0; i < n; ++i) {
            raw[i] = scores[rows[i]];
            poison += raw[i] - raw[i];
            gain[i] = target.gain[rows[i]];
            number[i] = static_cast<uint64_t>(target.queries->numbers.of(rows[i]));
            gradient[i] = hessian[i] = 0.0;
        }
        return poison == 0.0;
    }
};

SGLB_KERNEL void fill_order_words(const Stream& stream, Documents& d) {
    const Stream copy = stream;  // lets the compiler keep it in registers
    for (int64_t i = 0; i < d.n; ++i) {
        const Words w = words_at(copy, d.number[i]);
        for (size_t j = 0; j < 4; ++j) d.words[j][i] = w[j];
    }
}

// (word + 1/2) 2^-32 is neither 0 nor 1.
SGLB_KERNEL void fill_scores(const Shuffles& shuffles, const uint32_t* words, Documents& d) {
    const double power = shuffles.power;
    const double* __restrict raw = d.raw.data();
    double* __restrict score = d.score.data();
    if (shuffles.noise == ShuffleNoise::logistic)
        for (int64_t i = 0; i < d.n; ++i) {
            const double u = unit(words[i]) + 0x1p-33;
            score[i] = raw[i] + power * logarithm(u / (1.0 - u));
        }
    else
        for (int64_t i = 0; i < d.n; ++i)
            score[i] = raw[i] - power * logarithm(-logarithm(unit(words[i]) + 0x1p-33));
}

template <Memory memory>
void add_neighbours(const RankingMetric& metric, Documents& d) {
    const int64_t n_boundaries = std::min(metric.cutoff, d.n - 1);
    double state = 1.0;
    for (int64_t q = 0; q < n_boundaries; ++q) {
        uint32_t i = d.ranked[static_cast<size_t>(q)].document;
        uint32_t j = d.ranked[static_cast<size_t>(q) + 1].document;
        const double weight =
            absolute(d.gain[i] - d.gain[j]) * metric.drop[static_cast<size_t>(q)] * state;
        state = remember<memory>(state, d.gain[i]);
        if (weight == 0.0) continue;
        if (d.gain[i] < d.gain[j]) std::swap(i, j);
        const double wrong = 1.0 / (1.0 + exponential(d.raw[i] - d.raw[j]));
        const double pull = weight * wrong, curvature = pull * (1.0 - wrong);
        d.gradient[i] -= pull;
        d.gradient[j] += pull;
        d.hessian[i] += curvature;
        d.hessian[j] += curvature;
    }
}

void add_orders(const RankingMetric& metric, const Shuffles& shuffles, Stream stream,
                Documents& d) {
    for (int64_t t = 0; t < shuffles.n_orders; ++t) {
        stream.output = static_cast<uint32_t>(t / 4);
        if (t % 4 == 0) fill_order_words(stream, d);
        fill_scores(shuffles, d.words[t % 4].data(), d);
        rank_documents(d.score.data(), d.n, std::min(metric.cutoff + 1, d.n), d.ranked.data());
        if (metric.memory == Memory::none) add_neighbours<Memory::none>(metric, d);
        if (metric.memory == Memory::count) add_neighbours<Memory::count>(metric, d);
        if (metric.memory == Memory::cascade) add_neighbours<Memory::cascade>(metric, d);
    }
}

}  // namespace

double yeti(const RankingTarget& target, const double* raw, const Shuffles& shuffles, Stream stream,
            const RankingSlopes& out, int n_threads) {
    const Queries& queries = *target.queries;
    parallel_queries(queries, n_threads, [&](int64_t begin, int64_t end, int64_t longest) {
        Documents d(longest);
        for (int64_t q = begin; q < end; ++q) {
            const uint32_t* rows = queries.rows(q);
            if (!d.read(target, q, raw)) {
                out.fill(rows, d.n, std::numeric_limits<double>::quiet_NaN());
                continue;
            }
            add_orders(target.metric, shuffles, stream, d);
            const double unit =
                target.scale[static_cast<size_t>(q)] / static_cast<double>(shuffles.n_orders);
            for (int64_t i = 0; i < d.n; ++i) out.gradient[rows[i]] = unit * d.gradient[i];
            if (out.hessian)
                for (int64_t i = 0; i < d.n; ++i) out.hessian[rows[i]] = unit * d.hessian[i];
        }
    });
    return largest(out.gradient, queries.n_rows, n_threads);
}

}  // namespace sglb
