#include "ensemble.h"

#include <algorithm>

#include "aligned.h"
#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

// The next state from the sums of a stretch of trees, and its scores.
SGLB_KERNEL void follow(double factor, double unit, double offset, int64_t n,
                        const double* __restrict sums, double* __restrict state,
                        double* __restrict scores) {
    for (int64_t i = 0; i < n; ++i) {
        state[i] = factor * state[i] + unit * sums[i];
        scores[i] = offset + state[i];
    }
}

}  // namespace

// Memory for the rows of a tile.
struct Predictor::Scratch {
    int64_t stride;
    AlignedVector<uint8_t> codes;  // column-major, columns `stride` apart
    // Sums of a stretch, the state they lead to and that with the offset, [n_outputs * tile].
    AlignedVector<double> sums, state, scores;
    std::vector<double> before;  // the state before, if it has several parts

    Scratch(const TreeSums& trees, int64_t n_rows)
        : stride(trees.stride(n_rows)),
          // Trees without a split use no feature, but pointers into the codes are made all the
          // same.
          codes(std::max<size_t>(1, trees.features().size()) * static_cast<size_t>(stride)),
          sums(static_cast<size_t>(trees.n_outputs() * tile)),
          state(sums.size()),
          scores(sums.size()) {}
};

Predictor::Predictor(const double* thresholds, const int32_t* n_thresholds, int64_t n_features,
                     int64_t width, const Trees& trees, const States& states)
    : n_features_(n_features),
      size_(states.size),
      ends_(states.ends, states.ends + states.n_states),
      factors_(states.factors, states.factors + states.n_states * states.size * states.size),
      offset_(states.offset, states.offset + trees.n_outputs / states.size),
      sums_(trees, n_features, ends_),
      encoder_(thresholds, n_thresholds, width, sums_.features()) {}

// Every state of the n rows of a tile for a taker, at the place that it names.
template <class Taker>
void Predictor::each_state(Scratch& scratch, int64_t n, int64_t begin, Taker& taker) const {
    std::fill(scratch.state.begin(), scratch.state.end(), 0.0);
    for (int64_t s = 0; s < n_states(); ++s) {
        sums_.find(s, scratch.codes.data(), scratch.stride, n, scratch.sums.data());
        if (size_ > 1) follow_parts(scratch, s, n);
        for (int64_t k = 0; k < n_outputs(); ++k)
            follow(size_ > 1 ? 1.0 : factors_[s], size_ > 1 ? 0.0 : sums_.unit(s, k), offset_[k], n,
                   scratch.sums.data() + k * tile, scratch.state.data() + k * tile,
                   taker.address(s, k, begin, scratch.scores.data()));
        taker.take(s, begin, n, scratch.scores.data());
    }
}

// The next state where it has several parts.
void Predictor::follow_parts(Scratch& scratch, int64_t s, int64_t n) const {
    scratch.before.assign(scratch.state.begin(), scratch.state.end());
    const double* factor = factors_.data() + s * size_ * size_;
    for (int64_t i = 0; i < size_; ++i)
        for (int64_t k = 0; k < n_outputs(); ++k) {
            const int64_t to = i * n_outputs() + k;
            for (int64_t row = 0; row < n; ++row) {
                double next = sums_.unit(s, to) * scratch.sums[to * tile + row];
                for (int64_t j = 0; j < size_; ++j)
                    next +=
                        factor[i * size_ + j] * scratch.before[(j * n_outputs() + k) * tile + row];
                scratch.state[to * tile + row] = next;
            }
        }
}

// make() gives what takes the states of the rows of a tile and finishes them.
template <class Make>
void Predictor::each_tile(const Table& x, int n_threads, Make&& make) const {
    const int64_t n_rows = x.n_rows;
    const auto n_used = static_cast<int64_t>(sums_.features().size());
    const int64_t n_tiles = (n_rows + tile - 1) / tile;
    // A few hundred leaf look-ups are cheaper than waking a thread.
    const int threads = n_rows * sums_.n_trees() < 20000 ? 1 : n_threads;
    // Tiles that share scratch memory: several where there are enough for all threads, yet not so
    // many that a task would keep Ctrl-C waiting (a look-up takes half a nanosecond).
    const int64_t short_run = 100'000'000 / (tile * (sums_.n_trees() + 1) * n_outputs() + 1);
    const int64_t fair_run = n_tiles / (8 * std::max(threads, 1));
    const int64_t run = std::clamp<int64_t>(std::min(short_run, fair_run), 1, 16);
    parallel_for((n_tiles + run - 1) / run, threads, [&](int64_t number) {
        Scratch scratch(sums_, n_rows);
        auto taker = make();
        const int64_t stop = std::min(n_rows, (number + 1) * run * tile);
        for (int64_t begin = number * run * tile; begin < stop; begin += tile) {
            const int64_t n = std::min(stop - begin, tile);
            for (int64_t j = 0; j < n_used; ++j)
                encoder_.encode(x, j, begin, begin + n, scratch.codes.data() + j * scratch.stride);
            each_state(scratch, n, begin, taker);
            taker.finish(begin, n);
        }
    });
}

namespace {

// Every state's scores as they are, where they belong.
struct TakeRaw {
    int64_t n_outputs, n_rows;
    double* out;
    double* address(int64_t s, int64_t k, int64_t begin, double*) const {
        return out + (s * n_outputs + k) * n_rows + begin;
    }
    void take(int64_t, int64_t, int64_t, double*) const {}
    void finish(int64_t, int64_t) const {}
};

// In scratch memory, to be used up.
struct InScratch {
    static double* address(int64_t, int64_t k, int64_t, double* scores) {
        return scores + k * tile;
    }
};

// The last state's predictions.
struct TakeLast : InScratch {
    int64_t n_outputs, n_columns, last;
    const Link& link;
    double* out;
    void take(int64_t s, int64_t begin, int64_t n, double* scores) const {
        if (s == last) apply_link(link, n_outputs, n, scores, n_columns, out + begin * n_columns);
    }
    void finish(int64_t, int64_t) const {}
};

// Sums over all states.
template <class Sums>
struct TakeAll : InScratch {
    Sums sums;
    const typename Sums::Out& out;
    void take(int64_t, int64_t, int64_t n, double* scores) { sums.add(n, scores); }
    void finish(int64_t begin, int64_t n) { sums.finish(n, begin, out); }
};

}  // namespace

void Predictor::raw(const Table& x, double* out, int n_threads) const {
    each_tile(x, n_threads, [&] { return TakeRaw{n_outputs(), x.n_rows, out}; });
}

void Predictor::linked(const Table& x, const Link& link, int64_t n_columns, double* out,
                       int n_threads) const {
    each_tile(x, n_threads,
              [&] { return TakeLast{{}, n_outputs(), n_columns, n_states() - 1, link, out}; });
}

template <class Sums>
void Predictor::together(const Table& x, const Link& link, const typename Sums::Out& out,
                         int n_threads) const {
    each_tile(x, n_threads, [&] { return TakeAll<Sums>{{}, Sums(link, n_outputs()), out}; });
}

void Predictor::entropies(const Table& x, const Link& link, const Entropies::Out& out,
                          int n_threads) const {
    together<Entropies>(x, link, out, n_threads);
}

void Predictor::variance(const Table& x, const Link& link, const Variance::Out& out,
                         int n_threads) const {
    together<Variance>(x, link, out, n_threads);
}

}  // namespace sglb
