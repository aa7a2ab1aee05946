#include "ranking.h"

#include <array>
#include <stdexcept>
#include <string>

namespace sglb {
namespace {

constexpr double ln2 = 0.69314718055994530942;

// A discount of place p, and the memory that goes with it.
enum class Discount { logarithmic, flat, harmonic, geometric };
enum class Scale { none, ideal, cutoff, relevant, relevant_within };

struct Form {
    std::string_view name;
    Discount discount;
    Memory memory;
    Scale scale;
};

constexpr Form forms[] = {
    {"dcg", Discount::logarithmic, Memory::none, Scale::none},
    {"ndcg", Discount::logarithmic, Memory::none, Scale::ideal},
    {"precision", Discount::flat, Memory::none, Scale::cutoff},
    {"recall", Discount::flat, Memory::none, Scale::relevant},
    {"map", Discount::harmonic, Memory::count, Scale::relevant_within},
    {"mrr", Discount::harmonic, Memory::cascade, Scale::none},
    {"err", Discount::harmonic, Memory::cascade, Scale::none},
    {"pfound", Discount::geometric, Memory::cascade, Scale::none},
    {"decay", Discount::geometric, Memory::none, Scale::none},
};

const Form& find_form(std::string_view name) {
    for (const Form& form : forms)
        if (form.name == name) return form;
    throw std::invalid_argument("no kernel for metric '" + std::string(name) + "'");
}

std::vector<double> discounts_of(Discount discount, int64_t n, double decay) {
    std::vector<double> out(static_cast<size_t>(n), 1.0);
    double power = 1.0;
    for (int64_t p = 0; p < n; ++p) {
        double& d = out[static_cast<size_t>(p)];
        if (discount == Discount::logarithmic) d = ln2 / logarithm(static_cast<double>(p + 2));
        if (discount == Discount::harmonic) d = 1.0 / static_cast<double>(p + 1);
        if (discount == Discount::geometric) d = power;
        power *= decay;
    }
    return out;
}

RankingMetric metric_of(const Form& form, int64_t longest, int64_t cutoff, double decay) {
    RankingMetric metric{form.memory, cutoff, discounts_of(form.discount, longest + 1, decay), {}};
    const std::vector<double>& d = metric.discount;
    for (int64_t q = 0; q < longest; ++q) {
        const auto at = static_cast<size_t>(q);
        const double below = q + 1 < cutoff && form.name != "decay" ? d[at + 1] : 0.0;
        metric.drop.push_back(q < cutoff ? d[at] - below : 0.0);
    }
    return metric;
}

double inverse(double x) { return x > 0.0 ? 1.0 / x : 0.0; }

// Where the metric of a query has no value, no order is better than another: 0.
double scale_of(const RankingTarget& target, Scale scale, int64_t query,
                std::vector<double>& gains) {
    const int64_t n = target.queries->size(query), cutoff = target.metric.cutoff;
    const uint32_t* rows = target.queries->rows(query);
    if (scale == Scale::none) return 1.0;
    if (scale == Scale::cutoff) return inverse(static_cast<double>(cutoff));
    gains.clear();
    for (int64_t i = 0; i < n; ++i) gains.push_back(target.gain[rows[i]]);
    if (scale == Scale::ideal) {
        std::sort(gains.begin(), gains.end(), [](double a, double b) { return a > b; });
        double ideal = 0.0;
        for (int64_t p = 0; p < std::min(n, cutoff); ++p)
            ideal += gains[static_cast<size_t>(p)] * target.metric.discount[static_cast<size_t>(p)];
        return inverse(ideal);
    }
    const auto n_relevant =
        std::count_if(gains.begin(), gains.end(), [](double gain) { return gain > 0.0; });
    const auto most = scale == Scale::relevant ? n_relevant : std::min(n_relevant, cutoff);
    return inverse(static_cast<double>(most));
}

// Up to this many documents are ranked by counting those above each of them: n^2 comparisons
// without a branch, where sorting mispredicts about every other one of n log n.
constexpr int64_t most_counted = 64;
constexpr int64_t lanes = 8;

// OUT place [n rounded up to lanes], score being as long: how many documents are above each one.
// Documents before a block of lanes are above those of equal score in it, documents after it are
// below them.
SGLB_KERNEL void count_places(const double* __restrict score, int64_t n,
                              int64_t* __restrict place) {
    for (int64_t first = 0; first < n; first += lanes) {
        alignas(64) int64_t count[lanes] = {};
        const double* __restrict block = score + first;
        const int64_t end = std::min(first + lanes, n);
        for (int64_t j = 0; j < first; ++j)
            for (int64_t l = 0; l < lanes; ++l) count[l] += score[j] >= block[l] ? 1 : 0;
        for (int64_t j = first; j < end; ++j)
            for (int64_t l = 0; l < lanes; ++l) {
                const bool ties = score[j] == block[l] && j < first + l;
                count[l] += score[j] > block[l] || ties ? 1 : 0;
            }
        for (int64_t j = end; j < n; ++j)
            for (int64_t l = 0; l < lanes; ++l) count[l] += score[j] > block[l] ? 1 : 0;
        for (int64_t l = 0; l < lanes; ++l) place[first + l] = count[l];
    }
}

template <Memory memory>
double value_of(const RankingMetric& metric, const std::vector<Ranked>& ranked,
                const std::vector<double>& gains) {
    const auto n = std::min(static_cast<int64_t>(ranked.size()), metric.cutoff);
    double value = 0.0, state = 1.0;
    for (int64_t p = 0; p < n; ++p) {
        const double gain = gains[ranked[static_cast<size_t>(p)].document];
        value += metric.discount[static_cast<size_t>(p)] * gain * state;
        state = remember<memory>(state, gain);
    }
    return value;
}

template <Memory memory>
void fill_effects(const RankingTarget& target, int64_t query, double* effects) {
    const int64_t n = target.queries->size(query);
    const uint32_t* rows = target.queries->rows(query);
    for (int64_t i = 0; i < n; ++i) {
        double state = 1.0;
        for (int64_t q = 0; q + 1 < n; ++q) {
            const double other = target.gain[rows[q < i ? q : q + 1]];
            *effects++ = target.scale[static_cast<size_t>(query)] * (target.gain[rows[i]] - other) *
                         target.metric.drop[static_cast<size_t>(q)] * state;
            state = remember<memory>(state, other);
        }
    }
}

}  // namespace

Queries::Queries(int64_t n_rows, int64_t n_queries, const uint32_t* order, const int64_t* starts,
                 const RowNumbers& numbers)
    : n_rows(n_rows), n_queries(n_queries), order(order), starts(starts), numbers(numbers) {
    blocks.push_back(0);
    for (int64_t q = 0; q < n_queries; ++q) {
        longest = std::max(longest, size(q));
        if (starts[q + 1] - starts[blocks.back()] >= block_rows) blocks.push_back(q + 1);
    }
    if (blocks.back() != n_queries) blocks.push_back(n_queries);
}

RankingTarget::RankingTarget(const Queries& queries, const double* relevance, const double* gain,
                             std::string_view name, int64_t cutoff, double decay)
    : queries(&queries), relevance(relevance), gain(gain) {
    const Form& form = find_form(name);
    metric = metric_of(form, queries.longest, cutoff, decay);
    std::vector<double> gains;
    for (int64_t q = 0; q < queries.n_queries; ++q)
        scale.push_back(scale_of(*this, form.scale, q, gains));
}

void rank_documents(const double* score, int64_t n, int64_t n_top, Ranked* ranked) {
    if (n <= most_counted) {
        alignas(64) std::array<double, most_counted> padded{};
        alignas(64) std::array<int64_t, most_counted> place;
        std::copy_n(score, n, padded.begin());
        count_places(padded.data(), n, place.data());
        for (int64_t i = 0; i < n; ++i)
            ranked[place[static_cast<size_t>(i)]] = {score[i], static_cast<uint32_t>(i)};
        return;
    }
    for (int64_t i = 0; i < n; ++i) ranked[i] = {score[i], static_cast<uint32_t>(i)};
    if (n_top < n) std::nth_element(ranked, ranked + n_top, ranked + n);
    std::sort(ranked, ranked + std::min(n_top, n));
}

void ranking_values(const RankingTarget& target, const double* raw, double* value, int n_threads) {
    parallel_queries(*target.queries, n_threads, [&](int64_t begin, int64_t end, int64_t) {
        std::vector<Ranked> ranked;
        std::vector<double> gains;
        for (int64_t q = begin; q < end; ++q) {
            const uint32_t* rows = target.queries->rows(q);
            double poison = 0.0;
            ranked.clear();
            gains.clear();
            for (int64_t i = 0; i < target.queries->size(q); ++i) {
                poison += raw[rows[i]] - raw[rows[i]];
                ranked.push_back({raw[rows[i]], static_cast<uint32_t>(i)});
                gains.push_back(target.gain[rows[i]]);
            }
            if (poison == 0.0)
                std::sort(ranked.begin(), ranked.end(), [&](const Ranked& a, const Ranked& b) {
                    return a.score > b.score ||
                           (a.score == b.score && gains[a.document] < gains[b.document]);
                });
            const Memory memory = target.metric.memory;
            const auto of = memory == Memory::none    ? value_of<Memory::none>
                            : memory == Memory::count ? value_of<Memory::count>
                                                      : value_of<Memory::cascade>;
            value[q] =
                target.scale[static_cast<size_t>(q)] * of(target.metric, ranked, gains) + poison;
        }
    });
}

void swap_effects(const RankingTarget& target, int64_t query, double* effects) {
    if (target.metric.memory == Memory::none)
        fill_effects<Memory::none>(target, query, effects);
    else if (target.metric.memory == Memory::count)
        fill_effects<Memory::count>(target, query, effects);
    else
        fill_effects<Memory::cascade>(target, query, effects);
}

}  // namespace sglb
