// Prediction: the states of a chain at many rows, from raw feature values or from codes, a tile of
// rows at a time from the table to the last number.
//
// Trees are read once for any number of states. State s follows from the one before it,
//
//     f_s = factor_s f_{s-1} + sum over trees ends_{s-1} <= t < ends_s of values_t[leaf],
//
// factor_s being the product of the shrink factors in between, and the values being weighted as
// they are at the end of their stretch of trees.
#pragma once

#include <cstdint>
#include <vector>

#include "bins.h"
#include "encoder.h"
#include "links.h"
#include "search.h"
#include "uncertainty.h"

namespace sglb {

// Trees as plain arrays, tree t at row t of each.
struct Trees {
    int64_t n_trees;
    int64_t max_depth;
    int64_t n_outputs;
    const int32_t* features;  // [n_trees * max_depth]
    const uint8_t* lows;      // [n_trees * max_depth]
    const uint8_t* highs;     // [n_trees * max_depth]
    const int32_t* depths;    // [n_trees]
    const double* values;     // [n_trees * 2^max_depth * n_outputs], weighted
};

struct States {
    int64_t n_states;
    const int64_t* ends;    // [n_states], never falling
    const double* factors;  // [n_states]
    const double* offset;   // [n_outputs], added to every state
};

// Some states of a chain, prepared for any number of calls. Keeps pointers to the trees' values and
// to the thresholds [n_features * width].
class Predictor {
  public:
    Predictor(const double* thresholds, const int32_t* n_thresholds, int64_t n_features,
              int64_t width, const Trees& trees, const States& states);

    int64_t n_features() const { return n_features_; }
    int64_t n_outputs() const { return n_outputs_; }
    int64_t n_states() const { return static_cast<int64_t>(ends_.size()); }

    // OUT out [n_states * n_outputs * n_rows], raw scores.
    void raw(const Table& x, double* out, int n_threads) const;
    // The same from codes [n_features * n_rows].
    void raw_of_codes(const uint8_t* columns, int64_t n_rows, double* out, int n_threads) const;
    // OUT out [n_rows * n_columns], predictions of the last state.
    void linked(const Table& x, const Link& link, int64_t n_columns, double* out,
                int n_threads) const;
    // The states together.
    void entropies(const Table& x, const Link& link, const Entropies::Out& out,
                   int n_threads) const;
    void variance(const Table& x, const Link& link, const Variance::Out& out, int n_threads) const;

  private:
    struct Scratch {
        std::vector<uint8_t> codes;  // of a tile, column-major, columns `stride` apart
        int64_t stride;
        std::vector<double> state, scores;  // [n_outputs * tile], without and with the offset
        Scratch(int64_t n_codes, int64_t distance, int64_t n_scores)
            : codes(static_cast<size_t>(n_codes)),
              stride(distance),
              state(static_cast<size_t>(n_scores)),
              scores(static_cast<size_t>(n_scores)) {}
    };
    template <class Index>
    void add_trees(const Scratch& scratch, int64_t n, int64_t first, int64_t last,
                   double* state) const;
    void add_trees_by_row(const Scratch& scratch, int64_t n, int64_t first, int64_t last,
                          double* state) const;
    template <class Taker>
    void each_state(Scratch& scratch, int64_t n, int64_t begin, Taker& taker) const;
    template <class Encode, class Make>
    void each_tile(int64_t n_rows, int n_threads, Encode&& encode, Make&& make) const;
    template <class Make>
    void each_tile(const Table& x, int n_threads, Make&& make) const;
    template <class Sums>
    void together(const Table& x, const Link& link, const typename Sums::Out& out,
                  int n_threads) const;
    void use_features(const Trees& trees);

    int64_t n_features_, n_trees_, max_depth_, n_outputs_;
    const double* values_;
    std::vector<int32_t> depths_;
    std::vector<Split> splits_;      // [n_trees * max_depth], features being numbers of used ones
    std::vector<int32_t> features_;  // the features that some tree uses
    std::vector<int64_t> ends_;
    std::vector<double> factors_, offset_;
    Encoder encoder_;
};

}  // namespace sglb
