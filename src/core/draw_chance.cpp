#include "draw_chance.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "noise.h"

namespace sglb {
namespace {

// Two sums over n rows, a multiple of eight, in eight lanes: no addition waits for the one before.
struct Sums {
    double first[8] = {}, second[8] = {};
};
double total(const double (&lanes)[8]) { return std::accumulate(lanes, lanes + 8, 0.0); }

// Of w |g| and of w.
SGLB_KERNEL void add_gradients(const double* squares, const double* weight, int64_t n, Sums& sums) {
    for (int64_t at = 0; at < n; at += 8)
        for (int64_t i = 0; i < 8; ++i) {
            sums.first[i] += weight[at + i] * std::sqrt(squares[at + i]);
            sums.second[i] += weight[at + i];
        }
}

// Of the a below mu, and of 1 where a is mu or more: those rows are sure to be drawn.
SGLB_KERNEL void add_importances(const double* importance, int64_t n, double mu, Sums& sums) {
    for (int64_t at = 0; at < n; at += 8)
        for (int64_t i = 0; i < 8; ++i) {
            const bool is_sure = importance[at + i] >= mu;
            sums.first[i] += is_sure ? 0.0 : importance[at + i];
            sums.second[i] += is_sure ? 1.0 : 0.0;
        }
}

// sum of min(1, a / mu) = wanted. Rows that are sure to be drawn leave fewer draws to the others;
// a few rounds settle which ones they are.
double find_mu(const double* importance, int64_t n, double wanted) {
    double mu = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 4; ++round) {
        Sums sums;
        add_importances(importance, n, mu, sums);
        const double sum = total(sums.first), sure = total(sums.second);
        if (!(sum > 0.0) || !(wanted > sure)) break;
        mu = sum / (wanted - sure);
    }
    // None of these rows has any weight: all that do are drawn, as few of them as there may be.
    return std::isfinite(mu) ? mu : std::numeric_limits<double>::min();
}

}  // namespace

SGLB_KERNEL void find_importances(const double* squares, const double* weight, int64_t n,
                                  double noise, double floor, double* importance) {
    const double least = floor * floor;
    for (int64_t i = 0; i < n; ++i)
        importance[i] = std::sqrt(weight[i] * (weight[i] * (squares[i] + least) + noise));
}

SGLB_KERNEL void toss(const double* importance, const uint32_t* coin, int64_t n, double mu,
                      double* inverse_probability, uint8_t* drawn) {
    const double rate = 1.0 / mu;
    for (int64_t i = 0; i < n; ++i) {
        const bool is_drawn = unit(coin[i]) < minimum(1.0, importance[i] * rate);
        inverse_probability[i] = is_drawn ? maximum(1.0, mu / importance[i]) : 0.0;
        drawn[i] = is_drawn;
    }
}

DrawScale find_scale(const Pilot& pilot, int64_t n, double noise, double wanted) {
    const int64_t padded = (n + 7) / 8 * 8;  // rows without weight change no sum
    Sums sums;
    add_gradients(pilot.squares, pilot.weights, padded, sums);
    const double weight = total(sums.second);
    DrawScale scale{1.0, weight > 0.0 ? total(sums.first) / weight : 0.0};
    // Without any gradient or noise all rows are alike.
    if (!(scale.floor > 0.0) && !(noise > 0.0)) scale.floor = 1.0;
    double importance[Pilot::most];
    find_importances(pilot.squares, pilot.weights, padded, noise, scale.floor, importance);
    scale.mu = find_mu(importance, padded, wanted);
    return scale;
}

}  // namespace sglb
