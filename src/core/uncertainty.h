// What several states of a chain say together about a tile of rows: running sums over the states,
// so that no more than one state's scores are held at a time.
#pragma once

#include <cstdint>

#include "aligned.h"
#include "links.h"

namespace sglb {

// Class probabilities: their mean over the states and how its entropy (in nats) splits up,
//
//     total = H[mean p],   data = mean H[p] <= total,   knowledge = total - data.
//
// A state's entropy comes from t_k, how far class k's score lies below the highest one:
//
//     H[p] = -log(highest p) + sum of p_k t_k.
//
// The highest probabilities are multiplied over the states, so one logarithm serves many.
class Entropies {
  public:
    struct Out {
        double* mean;  // [n_rows * n_columns]
        double* knowledge;
        double* data;
        double* total;  // [n_rows]
    };
    Entropies(const Link& link, int64_t n_outputs);
    // Scores [n_outputs * tile] of the next state of n rows, spoiled.
    void add(int64_t n, double* scores);
    // OUT out of n rows, from row `begin` on; then ready for other rows.
    void finish(int64_t n, int64_t begin, const Out& out);

  private:
    bool two_;  // classes, and one score for both
    double width_;
    int64_t n_classes_;
    int64_t n_states_ = 0;
    int64_t group_;               // states whose product cannot underflow
    AlignedVector<double> sums_;  // probabilities of each class, [n_classes * tile]
    AlignedVector<double> distance_, product_, entropy_;  // [tile]
};

// Numbers: their mean and variance over the states (Welford's recurrence).
class Variance {
  public:
    struct Out {
        double* mean;
        double* variance;  // [n_rows * n_outputs]
    };
    Variance(const Link& link, int64_t n_outputs);
    void add(int64_t n, double* scores);
    void finish(int64_t n, int64_t begin, const Out& out);

  private:
    Link link_;
    int64_t n_outputs_;
    int64_t n_states_ = 0;
    AlignedVector<double> prediction_, mean_, square_;  // [tile * n_outputs]
};

}  // namespace sglb
