#include "ensemble.h"

#include <algorithm>

#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int byte_depth = 8;  // up to this depth a leaf index fits a byte
constexpr int group = 8;       // trees whose values are added in one pass over the rows
// Up to so many rows are walked through the trees one by one: a vector of rows costs a tree about
// 50 ns, however few there are, and a row 6 ns.
constexpr int64_t few_rows = 8;

// Leaves of the first n rows of a tile (n a multiple of 64) in one tree, the tile's codes being
// column-major, columns `stride` apart.
template <class Index>
SGLB_INLINE void tile_indices(const uint8_t* codes, int64_t stride, const Split* splits, int depth,
                              int64_t n, Index* __restrict index) {
    for (int64_t i = 0; i < n; ++i) index[i] = 0;
    for (int d = 0; d < depth; ++d) {
        const uint8_t* __restrict column = codes + splits[d].feature * stride;
        const uint8_t low = splits[d].low;
        const auto span = static_cast<uint8_t>(splits[d].high - splits[d].low);
        const auto bit = static_cast<Index>(1 << d);
        for (int64_t i = 0; i < n; ++i) {
            const auto offset = static_cast<uint8_t>(column[i] - low);
            index[i] = static_cast<Index>(index[i] | (offset > span ? bit : 0));
        }
        // Keeps the compiler from joining the loops over splits, which would cost the vectors.
        asm volatile("" ::: "memory");
    }
}

SGLB_KERNEL void fill_indices(const uint8_t* codes, int64_t stride, const Split* splits, int depth,
                              int64_t n, uint8_t* index) {
    tile_indices(codes, stride, splits, depth, n, index);
}
SGLB_KERNEL void fill_indices(const uint8_t* codes, int64_t stride, const Split* splits, int depth,
                              int64_t n, uint16_t* index) {
    tile_indices(codes, stride, splits, depth, n, index);
}

// to[i] += the values of some trees at the leaves of row i, one after the other. Compiled for the
// baseline only: scalar loads are faster than a gather.
template <int n_trees, class Index>
void add_values(const double* const* values, const Index (*index)[tile], int64_t stride, int64_t n,
                double* to) {
    for (int64_t i = 0; i < n; ++i) {
        double sum = to[i];
        for (int j = 0; j < n_trees; ++j) sum += values[j][index[j][i] * stride];
        to[i] = sum;
    }
}

// Finds the loop for a number of trees that is known when it runs.
template <int most = group, class Index>
void add_values(int64_t n_trees, const double* const* values, const Index (*index)[tile],
                int64_t stride, int64_t n, double* to) {
    if (n_trees == most) return add_values<most>(values, index, stride, n, to);
    if constexpr (most > 1) add_values<most - 1>(n_trees, values, index, stride, n, to);
}

SGLB_KERNEL void scale(double factor, int64_t n, double* state) {
    for (int64_t i = 0; i < n; ++i) state[i] *= factor;
}

SGLB_KERNEL void add_offset(double offset, int64_t n, const double* __restrict state,
                            double* __restrict scores) {
    for (int64_t i = 0; i < n; ++i) scores[i] = offset + state[i];
}

}  // namespace

Predictor::Predictor(const double* thresholds, const int32_t* n_thresholds, int64_t n_features,
                     int64_t width, const Trees& trees, const States& states)
    : n_features_(n_features),
      n_trees_(trees.n_trees),
      max_depth_(trees.max_depth),
      n_outputs_(trees.n_outputs),
      values_(trees.values),
      depths_(trees.depths, trees.depths + trees.n_trees),
      ends_(states.ends, states.ends + states.n_states),
      factors_(states.factors, states.factors + states.n_states),
      offset_(states.offset, states.offset + trees.n_outputs) {
    use_features(trees);
    encoder_ = Encoder(thresholds, n_thresholds, width, features_);
}

// Numbers the features that some tree uses, in order; splits refer to these numbers.
void Predictor::use_features(const Trees& trees) {
    std::vector<int32_t> number(static_cast<size_t>(n_features_), -1);
    splits_.resize(static_cast<size_t>(n_trees_ * max_depth_), Split{0, 0, 0});
    for (int64_t t = 0; t < n_trees_; ++t)
        for (int64_t d = 0; d < trees.depths[t]; ++d) {
            const int64_t at = t * max_depth_ + d;
            int32_t& found = number[static_cast<size_t>(trees.features[at])];
            if (found < 0) {
                found = static_cast<int32_t>(features_.size());
                features_.push_back(trees.features[at]);
            }
            splits_[static_cast<size_t>(at)] = {found, trees.lows[at], trees.highs[at]};
        }
}

// state[k * tile + i] += values of trees first .. last at the leaf of row i.
template <class Index>
void Predictor::add_trees(const Scratch& scratch, int64_t n, int64_t first, int64_t last,
                          double* state) const {
    alignas(64) Index index[group][tile];
    const int64_t padded = (n + 63) / 64 * 64;
    const int64_t size = (int64_t{1} << max_depth_) * n_outputs_;
    for (int64_t t = first; t < last; t += group) {
        const int64_t present = std::min<int64_t>(group, last - t);
        for (int64_t j = 0; j < present; ++j)
            fill_indices(scratch.codes.data(), scratch.stride,
                         splits_.data() + (t + j) * max_depth_, depths_[static_cast<size_t>(t + j)],
                         padded, index[j]);
        for (int64_t k = 0; k < n_outputs_; ++k) {
            const double* values[group];
            for (int64_t j = 0; j < present; ++j) values[j] = values_ + (t + j) * size + k;
            if (n_outputs_ == 1)
                add_values(present, values, index, 1, n, state);
            else
                add_values(present, values, index, n_outputs_, n, state + k * tile);
        }
    }
}

// The same sums in the same order, a row after the other.
void Predictor::add_trees_by_row(const Scratch& scratch, int64_t n, int64_t first, int64_t last,
                                 double* state) const {
    const int64_t size = (int64_t{1} << max_depth_) * n_outputs_;
    for (int64_t t = first; t < last; ++t) {
        const Split* splits = splits_.data() + t * max_depth_;
        const int depth = depths_[static_cast<size_t>(t)];
        for (int64_t i = 0; i < n; ++i) {
            const uint8_t* row = scratch.codes.data() + i;
            int64_t leaf = 0;
            for (int d = 0; d < depth; ++d) {
                const Split& split = splits[d];
                const auto offset =
                    static_cast<uint8_t>(row[split.feature * scratch.stride] - split.low);
                const bool right = offset > static_cast<uint8_t>(split.high - split.low);
                leaf |= static_cast<int64_t>(right) << d;
            }
            const double* values = values_ + t * size + leaf * n_outputs_;
            for (int64_t k = 0; k < n_outputs_; ++k) state[k * tile + i] += values[k];
        }
    }
}

// Every state of the n rows of a tile for a taker.
template <class Taker>
void Predictor::each_state(Scratch& scratch, int64_t n, int64_t begin, Taker& taker) const {
    double* state = scratch.state.data();
    double* scores = scratch.scores.data();
    std::fill(scratch.state.begin(), scratch.state.end(), 0.0);
    int64_t first = 0;
    for (size_t s = 0; s < ends_.size(); ++s) {
        for (int64_t k = 0; k < n_outputs_ && s > 0; ++k) scale(factors_[s], n, state + k * tile);
        if (n <= few_rows)
            add_trees_by_row(scratch, n, first, ends_[s], state);
        else if (max_depth_ <= byte_depth)
            add_trees<uint8_t>(scratch, n, first, ends_[s], state);
        else
            add_trees<uint16_t>(scratch, n, first, ends_[s], state);
        first = ends_[s];
        for (int64_t k = 0; k < n_outputs_; ++k)
            add_offset(offset_[static_cast<size_t>(k)], n, state + k * tile, scores + k * tile);
        taker.take(static_cast<int64_t>(s), begin, n, scores);
    }
}

// encode(j, begin, end, codes) fills the codes of some rows of used feature j; make() gives what
// takes the states of the rows of a tile and finishes them.
template <class Encode, class Make>
void Predictor::each_tile(int64_t n_rows, int n_threads, Encode&& encode, Make&& make) const {
    const auto n_used = static_cast<int64_t>(features_.size());
    const int64_t n_tiles = (n_rows + tile - 1) / tile;
    // A few hundred leaf look-ups are cheaper than waking a thread.
    const int threads = n_rows * n_trees_ < 20000 ? 1 : n_threads;
    // Tiles that share scratch memory: several where there are enough for all threads, yet not so
    // many that a task would keep Ctrl-C waiting (a look-up takes half a nanosecond).
    const int64_t short_run = 100'000'000 / (tile * (n_trees_ + 1) * n_outputs_ + 1);
    const int64_t fair_run = n_tiles / (8 * std::max(threads, 1));
    const int64_t run = std::clamp<int64_t>(std::min(short_run, fair_run), 1, 16);
    parallel_for((n_tiles + run - 1) / run, threads, [&](int64_t number) {
        const int64_t stride = std::min(tile, (n_rows + 63) / 64 * 64);
        Scratch scratch(n_used * stride, stride, n_outputs_ * tile);
        auto taker = make();
        const int64_t stop = std::min(n_rows, (number + 1) * run * tile);
        for (int64_t begin = number * run * tile; begin < stop; begin += tile) {
            const int64_t n = std::min(stop - begin, tile);
            for (int64_t j = 0; j < n_used; ++j)
                encode(j, begin, begin + n, scratch.codes.data() + j * stride);
            each_state(scratch, n, begin, taker);
            taker.finish(begin, n);
        }
    });
}

template <class Make>
void Predictor::each_tile(const Table& x, int n_threads, Make&& make) const {
    each_tile(
        x.n_rows, n_threads,
        [&](int64_t j, int64_t begin, int64_t end, uint8_t* codes) {
            encoder_.encode(x, j, begin, end, codes);
        },
        make);
}

namespace {

// Every state's scores as they are.
struct TakeRaw {
    int64_t n_outputs, n_rows;
    double* out;
    void take(int64_t s, int64_t begin, int64_t n, const double* scores) const {
        for (int64_t k = 0; k < n_outputs; ++k)
            std::copy_n(scores + k * tile, n, out + (s * n_outputs + k) * n_rows + begin);
    }
    void finish(int64_t, int64_t) const {}
};

// The last state's predictions.
struct TakeLast {
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
struct TakeAll {
    Sums sums;
    const typename Sums::Out& out;
    void take(int64_t, int64_t, int64_t n, double* scores) { sums.add(n, scores); }
    void finish(int64_t begin, int64_t n) { sums.finish(n, begin, out); }
};

}  // namespace

void Predictor::raw(const Table& x, double* out, int n_threads) const {
    each_tile(x, n_threads, [&] { return TakeRaw{n_outputs_, x.n_rows, out}; });
}

void Predictor::raw_of_codes(const uint8_t* columns, int64_t n_rows, double* out,
                             int n_threads) const {
    each_tile(
        n_rows, n_threads,
        [&](int64_t j, int64_t begin, int64_t end, uint8_t* codes) {
            const uint8_t* from = columns + features_[static_cast<size_t>(j)] * n_rows;
            std::copy(from + begin, from + end, codes);
        },
        [&] { return TakeRaw{n_outputs_, n_rows, out}; });
}

void Predictor::linked(const Table& x, const Link& link, int64_t n_columns, double* out,
                       int n_threads) const {
    each_tile(x, n_threads,
              [&] { return TakeLast{n_outputs_, n_columns, n_states() - 1, link, out}; });
}

template <class Sums>
void Predictor::together(const Table& x, const Link& link, const typename Sums::Out& out,
                         int n_threads) const {
    each_tile(x, n_threads, [&] { return TakeAll<Sums>{Sums(link, n_outputs_), out}; });
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
