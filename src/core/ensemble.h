// Prediction: the states of a chain at many rows, from raw feature values or from codes, a tile of
// rows at a time from the table to the last number.
//
// Trees are read once for any number of states. State s follows from the one before it,
//
//     S_s = factor_s S_{s-1} + sum over trees ends_{s-1} <= t < ends_s of values_t[leaf],
//
// factor_s being the product of the transitions' matrices in between, and the values being weighted
// as they are at the end of their stretch of trees. A state has `size` parts, each with all
// outputs; the first is the model.
//
// The chain itself rounds at every step, prediction rounds leaf values to a unit and adds them up
// exactly (tree_sums.h). The last of n steps, read as one stretch, is predicted within
//
//     n / 2 * unit + 8 (n + 1) 2^-53 (B + |offset|),   |f| <= B at every step,
//
// of the chain's own score: a value is rounded by half a unit, its weight at most n times, the
// chain's score at most 6 times a step. Of several stretches each adds its share, shrunk since.
#pragma once

#include <cstdint>
#include <vector>

#include "bins.h"
#include "encoder.h"
#include "links.h"
#include "tree_sums.h"
#include "uncertainty.h"

namespace sglb {

struct States {
    int64_t n_states;
    const int64_t* ends;    // [n_states], never falling
    int64_t size;           // parts of a state
    const double* factors;  // [n_states * size * size]
    const double* offset;   // [n_outputs], added to every state
};

// Some states of a chain, prepared for any number of calls. Keeps the pointer to the
// thresholds [n_features * width].
class Predictor {
  public:
    // The outputs of the trees are those of all parts of the state, part after part.
    Predictor(const double* thresholds, const int32_t* n_thresholds, int64_t n_features,
              int64_t width, const Trees& trees, const States& states);

    int64_t n_features() const { return n_features_; }
    int64_t n_outputs() const { return static_cast<int64_t>(offset_.size()); }
    int64_t n_states() const { return static_cast<int64_t>(ends_.size()); }

    // OUT out [n_states * n_outputs * n_rows], raw scores.
    void raw(const Table& x, double* out, int n_threads) const;
    // OUT out [n_rows * n_columns], predictions of the last state.
    void linked(const Table& x, const Link& link, int64_t n_columns, double* out,
                int n_threads) const;
    // The states together.
    void entropies(const Table& x, const Link& link, const Entropies::Out& out,
                   int n_threads) const;
    void variance(const Table& x, const Link& link, const Variance::Out& out, int n_threads) const;

  private:
    struct Scratch;
    template <class Taker>
    void each_state(Scratch& scratch, int64_t n, int64_t begin, Taker& taker) const;
    template <class Make>
    void each_tile(const Table& x, int n_threads, Make&& make) const;
    template <class Sums>
    void together(const Table& x, const Link& link, const typename Sums::Out& out,
                  int n_threads) const;
    void follow_parts(Scratch& scratch, int64_t s, int64_t n) const;
    int64_t n_features_, size_;
    std::vector<int64_t> ends_;
    std::vector<double> factors_, offset_;
    TreeSums sums_;
    Encoder encoder_;
};

}  // namespace sglb
