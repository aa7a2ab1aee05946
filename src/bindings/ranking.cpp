// Queries, ranking metrics and the gradients of ranking losses.
#include "ranking.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <string>
#include <vector>

#include "ranking_centred.h"
#include "ranking_pairs.h"
#include "ranking_stochastic.h"
#include "ranking_yeti.h"
#include "shard_object.h"

namespace sglb::bindings {

namespace {

using OutVector = Array<double, 1>;
using MaybeOutVector = std::optional<OutVector>;

// Queries and the arrays they point to.
struct QueriesObject {
    In<uint32_t, 1> order;
    In<int64_t, 1> starts;
    Queries queries;

    QueriesObject(In<uint32_t, 1> order, In<int64_t, 1> starts)
        : QueriesObject(order, starts, Numbers(0, length(order, 0), 1)) {}

    QueriesObject(In<uint32_t, 1> order, In<int64_t, 1> starts, Numbers numbers)
        : order(order), starts(starts), queries(checked(order, starts, numbers)) {}

    static Queries checked(const In<uint32_t, 1>& order, const In<int64_t, 1>& starts,
                           const Numbers& numbers) {
        const int64_t n_rows = length(order, 0), n_queries = length(starts, 0) - 1;
        require(n_queries >= 0 && starts.data()[0] == 0 && starts.data()[n_queries] == n_rows,
                "starts must rise from 0 to N");
        for (int64_t q = 0; q < n_queries; ++q)
            require(starts.data()[q] <= starts.data()[q + 1], "starts must rise from 0 to N");
        std::vector<bool> seen(static_cast<size_t>(n_rows), false);
        for (int64_t i = 0; i < n_rows; ++i) {
            const uint32_t row = order.data()[i];
            require(row < n_rows && !seen[row], "order must name every row once");
            seen[row] = true;
        }
        const auto [first, n_in_all, n_copies] = numbers;
        require(n_copies >= 1 && n_rows % n_copies == 0, "numbers must be those of a shard");
        const int64_t n_here = n_rows / n_copies;
        require(first >= 0 && first + n_here <= n_in_all, "numbers must be those of a shard");
        return {
            n_rows, n_queries, order.data(), starts.data(), {first, n_here, n_in_all, n_copies}};
    }
};

struct RankingTargetObject {
    QueriesObject queries;
    In<double, 1> relevance, gain;
    RankingTarget target;

    RankingTargetObject(const QueriesObject& queries, In<double, 1> relevance, In<double, 1> gain,
                        const std::string& metric, int64_t cutoff, double decay)
        : queries(queries),
          relevance(relevance),
          gain(gain),
          target(this->queries.queries, checked(queries, relevance, gain, cutoff), gain.data(),
                 metric, cutoff, decay) {}

    // The target points into this object.
    RankingTargetObject(const RankingTargetObject&) = delete;
    RankingTargetObject& operator=(const RankingTargetObject&) = delete;

    static const double* checked(const QueriesObject& queries, const In<double, 1>& relevance,
                                 const In<double, 1>& gain, int64_t cutoff) {
        require(length(relevance, 0) == queries.queries.n_rows &&
                    length(gain, 0) == queries.queries.n_rows,
                "relevance and gain must be (N,)");
        require(cutoff >= 1, "cutoff must be 1 or more");
        return relevance.data();
    }
};

struct SmoothingObject {
    Smoothing smoothing;

    SmoothingObject(double sigma, double mu, int64_t n_samples) : smoothing{sigma, mu, n_samples} {
        require(sigma > 0.0 && std::isfinite(sigma) && std::isfinite(mu) && n_samples >= 1 &&
                    n_samples < int64_t{1} << 24,
                "sigma must be positive, mu finite and n_samples 1 or more");
    }
};

struct ShufflesObject {
    Shuffles shuffles;

    ShufflesObject(const std::string& noise, double power, int64_t n_orders)
        : shuffles{noise == "gumbel" ? ShuffleNoise::gumbel : ShuffleNoise::logistic, power,
                   n_orders} {
        require(noise == "logistic" || noise == "gumbel", "noise must be 'logistic' or 'gumbel'");
        require(
            power >= 0.0 && std::isfinite(power) && n_orders >= 1 && n_orders < int64_t{1} << 26,
            "power must not be negative and n_orders 1 or more");
    }
};

void check_rows(const Queries& queries, const In<double, 1>& raw, const OutVector& gradient,
                const MaybeOutVector& hessian = {}) {
    require(length(raw, 0) == queries.n_rows && length(gradient, 0) == queries.n_rows &&
                (!hessian || length(*hessian, 0) == queries.n_rows),
            "raw, gradient and hessian must be (N,)");
}

double py_stochastic_rank(const RankingTargetObject& object, In<double, 1> raw,
                          const SmoothingObject& smoothing, const Draws& draws, OutVector gradient,
                          int n_threads) {
    check_rows(object.queries.queries, raw, gradient);
    LockRelease release;
    return stochastic_rank(object.target, raw.data(), smoothing.smoothing,
                           {draws.seed, draws.step, Role::ranking}, gradient.data(), n_threads);
}

void py_rank_curvature(const RankingTargetObject& object, const SmoothingObject& smoothing,
                       const Draws& draws, OutVector hessian, int n_threads) {
    require(length(hessian, 0) == object.queries.queries.n_rows, "hessian must be (N,)");
    LockRelease release;
    rank_curvature(object.target, smoothing.smoothing, {draws.seed, draws.step, Role::curvature},
                   hessian.data(), n_threads);
}

double py_lambdarank(const RankingTargetObject& object, In<double, 1> raw, double sigma,
                     bool normalise, OutVector gradient, MaybeOutVector hessian, int n_threads) {
    check_rows(object.queries.queries, raw, gradient, hessian);
    LockRelease release;
    return lambdarank(object.target, raw.data(), sigma, normalise,
                      {gradient.data(), pointer(hessian)}, n_threads);
}

double py_centred_residuals(const QueriesObject& object, In<double, 1> relevance,
                            std::optional<In<double, 1>> weight, In<double, 1> total,
                            In<double, 1> raw, OutVector gradient, int n_threads) {
    const Queries& queries = object.queries;
    check_rows(queries, raw, gradient);
    require(length(relevance, 0) == queries.n_rows &&
                (!weight || length(*weight, 0) == queries.n_rows) &&
                length(total, 0) == queries.n_queries,
            "relevance and weight must be (N,), total (Q,)");
    LockRelease release;
    return centred_residuals(queries, relevance.data(), weight ? weight->data() : nullptr,
                             total.data(), raw.data(), gradient.data(), n_threads);
}

double py_pairwise_logistic(const QueriesObject& queries, In<double, 1> relevance,
                            In<double, 1> raw, double sigma, OutVector gradient,
                            MaybeOutVector hessian, int n_threads) {
    check_rows(queries.queries, raw, gradient, hessian);
    require(length(relevance, 0) == length(raw, 0), "relevance must be (N,)");
    LockRelease release;
    return pairwise_logistic(queries.queries, relevance.data(), raw.data(), sigma,
                             {gradient.data(), pointer(hessian)}, n_threads);
}

void py_pairwise_losses(const QueriesObject& queries, In<double, 1> relevance, In<double, 1> raw,
                        double sigma, OutVector loss, int n_threads) {
    check_rows(queries.queries, raw, loss);
    require(length(relevance, 0) == length(raw, 0), "relevance must be (N,)");
    LockRelease release;
    pairwise_losses(queries.queries, relevance.data(), raw.data(), sigma, loss.data(), n_threads);
}

double py_yeti(const RankingTargetObject& object, In<double, 1> raw, const ShufflesObject& shuffles,
               const Draws& draws, OutVector gradient, MaybeOutVector hessian, int n_threads) {
    check_rows(object.queries.queries, raw, gradient, hessian);
    LockRelease release;
    return yeti(object.target, raw.data(), shuffles.shuffles,
                {draws.seed, draws.step, Role::shuffle}, {gradient.data(), pointer(hessian)},
                n_threads);
}

void py_ranking_values(const RankingTargetObject& object, In<double, 1> raw, OutVector value,
                       int n_threads) {
    const Queries& queries = object.queries.queries;
    require(length(raw, 0) == queries.n_rows && length(value, 0) == queries.n_queries,
            "raw must be (N,), value (Q,)");
    LockRelease release;
    ranking_values(object.target, raw.data(), value.data(), n_threads);
}

void py_swap_effects(const RankingTargetObject& object, int64_t query, Array<double, 2> effects) {
    const Queries& queries = object.queries.queries;
    require(0 <= query && query < queries.n_queries && length(effects, 0) == queries.size(query) &&
                length(effects, 1) == queries.size(query) - 1,
            "effects must be (n, n - 1)");
    swap_effects(object.target, query, effects.data());
}

}  // namespace

void bind_ranking(nb::module_& m) {
    nb::class_<QueriesObject>(m, "Queries")
        .def(nb::init<In<uint32_t, 1>, In<int64_t, 1>>(), "order"_array, "starts"_array)
        .def(nb::init<In<uint32_t, 1>, In<int64_t, 1>, Numbers>(), "order"_array, "starts"_array,
             "numbers"_a);
    nb::class_<RankingTargetObject>(m, "RankingTarget")
        .def(nb::init<const QueriesObject&, In<double, 1>, In<double, 1>, const std::string&,
                      int64_t, double>(),
             "queries"_a, "relevance"_array, "gain"_array, "metric"_a, "cutoff"_a, "decay"_a);
    nb::class_<SmoothingObject>(m, "Smoothing")
        .def(nb::init<double, double, int64_t>(), "sigma"_a, "mu"_a, "n_samples"_a);
    nb::class_<ShufflesObject>(m, "Shuffles")
        .def(nb::init<const std::string&, double, int64_t>(), "noise"_a, "power"_a, "n_orders"_a);
    m.def("ranking_values", &py_ranking_values, "target"_a, "raw"_array, "value"_array,
          "n_threads"_a);
    m.def("stochastic_rank", &py_stochastic_rank, "target"_a, "raw"_array, "smoothing"_a, "draws"_a,
          "gradient"_array, "n_threads"_a);
    m.def("rank_curvature", &py_rank_curvature, "target"_a, "smoothing"_a, "draws"_a,
          "hessian"_array, "n_threads"_a);
    m.def("lambdarank", &py_lambdarank, "target"_a, "raw"_array, "sigma"_a, "normalise"_a,
          "gradient"_array, "hessian"_array.none(), "n_threads"_a);
    m.def("centred_residuals", &py_centred_residuals, "queries"_a, "relevance"_array,
          "weight"_array.none(), "total"_array, "raw"_array, "gradient"_array, "n_threads"_a);
    m.def("pairwise_logistic", &py_pairwise_logistic, "queries"_a, "relevance"_array, "raw"_array,
          "sigma"_a, "gradient"_array, "hessian"_array.none(), "n_threads"_a);
    m.def("pairwise_losses", &py_pairwise_losses, "queries"_a, "relevance"_array, "raw"_array,
          "sigma"_a, "loss"_array, "n_threads"_a);
    m.def("yeti", &py_yeti, "target"_a, "raw"_array, "shuffles"_a, "draws"_a, "gradient"_array,
          "hessian"_array.none(), "n_threads"_a);
}

void bind_ranking_testing(nb::module_& m) {
    m.def("swap_effects", &py_swap_effects, "target"_a, "query"_a, "effects"_array);
}

}  // namespace sglb::bindings
