#include "sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "exact_sum.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t tile = 256;
// Rows that are looked at for each row wanted. With two there is a choice left, and the look costs
// less than the search.
constexpr int64_t candidates_per_row = 2;
// Rows that floor and mu are found on: the number of rows drawn follows to about 2 %.
constexpr int64_t pilot_rows = 1024;

// Where in its stretch candidate k lies, and the number that decides whether it is drawn: words 0
// and 1 of counter k / 2, or 2 and 3 if k is odd. These are the words of candidates first,
// first + 1, first + 2 stride, first + 2 stride + 1, ... in whole pairs; `first` is even.
void candidate_words(const Stream& stream, int64_t first, int64_t stride, int64_t n,
                     uint32_t* point, uint32_t* coin) {
    uint32_t counters[tile / 2 + 1] = {}, words[4][tile / 2 + 1];
    for (int64_t i = 0; i < n / 2; ++i) counters[i] = static_cast<uint32_t>(first / 2 + i * stride);
    gather_words(stream, counters, n / 2, {words[0], words[1], words[2], words[3]});
    for (int64_t i = 0; i < n / 2; ++i) {
        point[2 * i] = words[0][i];
        coin[2 * i] = words[1][i];
        point[2 * i + 1] = words[2][i];
        coin[2 * i + 1] = words[3][i];
    }
}

// The number that decides whether a row is drawn, where all are candidates: row k has word k % 4 of
// counter k / 4. `first` is a multiple of 4.
void coins(const Stream& stream, int64_t first, int64_t n, uint32_t* coin) {
    uint32_t counters[tile / 4], words[4][tile / 4] = {};
    std::iota(counters, counters + tile / 4, static_cast<uint32_t>(first / 4));
    gather_words(stream, counters, (n + 3) / 4, {words[0], words[1], words[2], words[3]});
    for (int64_t i = 0; i < tile / 4; ++i)
        for (int64_t j = 0; j < 4; ++j) coin[4 * i + j] = words[j][i];
}

SGLB_KERNEL void add_squares(const double* gradient, int64_t n, double* squares) {
    for (int64_t i = 0; i < n; ++i) squares[i] += gradient[i] * gradient[i];
}

// a_i; `noise` is the variance of the noise of a row of weight 1, over all outputs.
SGLB_KERNEL void reach(const double* squares, const double* weight, int64_t n, double noise,
                       double floor, double* out) {
    const double least = floor * floor;
    for (int64_t i = 0; i < n; ++i)
        out[i] = std::sqrt(weight[i] * (weight[i] * (squares[i] + least) + noise));
}

// Whether each row is drawn, and how many it then stands for, else 0.
SGLB_KERNEL void toss(const double* reach, const uint32_t* coin, int64_t n, double mu, double* lift,
                      uint8_t* drawn) {
    const double rate = 1.0 / mu;
    for (int64_t i = 0; i < n; ++i) {
        const bool is_drawn = unit(coin[i]) < minimum(1.0, reach[i] * rate);
        lift[i] = is_drawn ? maximum(1.0, mu / reach[i]) : 0.0;
        drawn[i] = is_drawn;
    }
}

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
SGLB_KERNEL void add_reaches(const double* reach, int64_t n, double mu, Sums& sums) {
    for (int64_t at = 0; at < n; at += 8)
        for (int64_t i = 0; i < 8; ++i) {
            const bool is_sure = reach[at + i] >= mu;
            sums.first[i] += is_sure ? 0.0 : reach[at + i];
            sums.second[i] += is_sure ? 1.0 : 0.0;
        }
}

class Drawing {
  public:
    Drawing(const DrawInput& input, Draw& draw) : in_(input), draw_(draw) {
        n_rows_ = in_.end - in_.begin;
        n_candidates_ = std::min(n_rows_, candidates_per_row * in_.n);
        length_ =
            stretch_length(static_cast<uint64_t>(n_candidates_), static_cast<uint64_t>(n_rows_));
        noise_ =
            in_.sigma * in_.sigma / in_.weights.unit * static_cast<double>(in_.slopes.n_outputs);
    }

    void run(int n_threads) {
        draw_.dense = n_candidates_ == in_.slopes.n_rows;
        pilot();
        draw_.share = static_cast<double>(n_candidates_) / static_cast<double>(n_rows_);
        const int64_t n_blocks = (n_candidates_ + block_rows - 1) / block_rows;
        draw_.counts.assign(static_cast<size_t>(n_blocks) + 1, 0);
        draw_.found.resize(static_cast<size_t>(n_candidates_));
        (draw_.dense ? draw_.lift : draw_.found_lift).resize(static_cast<size_t>(n_candidates_));
        parallel_rows(n_candidates_, n_threads, [&](int64_t begin, int64_t end) {
            draw_.dense ? scan<true>(begin, end) : scan<false>(begin, end);
        });
        for (int64_t b = 0; b < n_blocks; ++b)
            draw_.counts[static_cast<size_t>(b) + 1] += draw_.counts[static_cast<size_t>(b)];
        const auto n = static_cast<size_t>(draw_.counts.back());
        draw_.rows.resize(n);
        if (!draw_.dense) draw_.lift.resize(n);
        parallel_rows(n_candidates_, n_threads, [&](int64_t begin, int64_t) {
            const auto block = static_cast<size_t>(begin / block_rows);
            const int64_t at = draw_.counts[block], count = draw_.counts[block + 1] - at;
            std::copy_n(draw_.found.data() + begin, count, draw_.rows.data() + at);
            if (!draw_.dense)
                std::copy_n(draw_.found_lift.data() + begin, count, draw_.lift.data() + at);
        });
    }

  private:
    // Squared gradients and weights of some candidates.
    class Look {
      public:
        explicit Look(const Drawing& drawing)
            : drawing_(drawing), slopes_(drawing.in_.slopes, tile) {
            std::fill_n(weight, tile, 1.0);
        }
        void run(const uint32_t* rows, int64_t n) {
            slopes_.gather(drawing_.in_.sample, rows, n);
            measure([rows](int64_t i) { return rows[i]; }, n);
        }
        // The same of rows begin .. begin + n.
        void run_through(int64_t begin, int64_t n) {
            slopes_.fill(drawing_.in_.sample, begin, n);
            measure([begin](int64_t i) { return begin + i; }, n);
        }
        double squares[tile], weight[tile];

      private:
        template <class RowOf>
        void measure(RowOf&& row_of, int64_t n) {
            const DrawInput& in = drawing_.in_;
            std::fill_n(squares, n, 0.0);
            for (int64_t k = 0; k < in.slopes.n_outputs; ++k)
                add_squares(slopes_.gradient(k), n, squares);
            for (int64_t i = 0; in.weights.weight && i < n; ++i)
                weight[i] = in.weights.weight[row_of(i)] / in.weights.unit;
        }

        const Drawing& drawing_;
        SlopeTile slopes_;
    };

    uint32_t row_of(uint32_t point, int64_t k) const {
        return static_cast<uint32_t>(static_cast<uint64_t>(in_.begin) +
                                     stretch_point(point, static_cast<uint64_t>(k), length_));
    }

    Stream stream() const { return {in_.seed, in_.step, Role::rows, 0}; }

    // floor and mu from evenly spaced pairs of candidates. The sums are taken in the order of the
    // candidates' numbers, which neither threads nor shards of the rows change.
    void pilot() {
        const int64_t n = std::min(n_candidates_, pilot_rows);
        const int64_t stride = n_candidates_ / n;  // in pairs
        double squares[pilot_rows] = {}, weights[pilot_rows] = {}, reaches[pilot_rows];
        Look look(*this);
        uint32_t rows[tile], point[tile], coin[tile];
        for (int64_t at = 0; at < n; at += tile) {
            const int64_t count = std::min(tile, n - at);
            if (!draw_.dense)
                candidate_words(stream(), at * stride, stride, count + 1, point, coin);
            for (int64_t i = 0; i < count; ++i) {
                const int64_t candidate = (at + i) / 2 * 2 * stride + (at + i) % 2;
                rows[i] =
                    draw_.dense ? static_cast<uint32_t>(candidate) : row_of(point[i], candidate);
            }
            look.run(rows, count);
            std::copy_n(look.squares, count, squares + at);
            std::copy_n(look.weight, count, weights + at);
        }
        const int64_t whole = (n + 7) / 8 * 8;  // rows without weight change no sum
        Sums sums;
        add_gradients(squares, weights, whole, sums);
        const double weight = total(sums.second);
        draw_.floor = weight > 0.0 ? total(sums.first) / weight : 0.0;
        // Without any gradient or noise all rows are alike.
        if (!(draw_.floor > 0.0) && !(noise_ > 0.0)) draw_.floor = 1.0;
        reach(squares, weights, whole, noise_, draw_.floor, reaches);
        draw_.mu = find_mu(reaches, whole,
                           static_cast<double>(in_.n) * static_cast<double>(n) /
                               static_cast<double>(n_candidates_));
    }

    // sum of min(1, a / mu) = wanted. Rows that are sure to be drawn leave fewer places to the
    // others; a few rounds settle which ones they are.
    static double find_mu(const double* reaches, int64_t n, double wanted) {
        double mu = std::numeric_limits<double>::infinity();
        for (int round = 0; round < 4; ++round) {
            Sums sums;
            add_reaches(reaches, n, mu, sums);
            const double sum = total(sums.first), sure = total(sums.second);
            if (!(sum > 0.0) || !(wanted > sure)) break;
            mu = sum / (wanted - sure);
        }
        // None of these rows has any weight: all that do are drawn, as few of them as there may be.
        return std::isfinite(mu) ? mu : std::numeric_limits<double>::min();
    }

    template <bool dense>
    void scan(int64_t begin, int64_t end) {
        Look look(*this);
        uint32_t point[tile], coin[tile], rows[tile];
        double reaches[tile], some_lift[tile];
        uint8_t drawn[tile];
        int64_t found = begin;
        for (int64_t at = begin; at < end; at += tile) {
            const int64_t n = std::min(tile, end - at);
            if constexpr (dense) {
                coins(stream(), at, n, coin);
                std::iota(rows, rows + n, static_cast<uint32_t>(at));
                look.run_through(at, n);
            } else {
                candidate_words(stream(), at, 1, n + 1, point, coin);
                for (int64_t i = 0; i < n; ++i) rows[i] = row_of(point[i], at + i);
                look.run(rows, n);
            }
            double* lift = dense ? draw_.lift.data() + at : some_lift;
            reach(look.squares, look.weight, n, noise_, draw_.floor, reaches);
            toss(reaches, coin, n, draw_.mu, lift, drawn);
            // The place is written whether or not the row is drawn; it then stays or not.
            for (int64_t i = 0; i < n; ++i) {
                draw_.found[static_cast<size_t>(found)] = rows[i];
                if constexpr (!dense) draw_.found_lift[static_cast<size_t>(found)] = lift[i];
                found += drawn[i];
            }
        }
        draw_.counts[static_cast<size_t>(begin / block_rows) + 1] = found - begin;
    }

    const DrawInput& in_;
    Draw& draw_;
    int64_t n_rows_, n_candidates_;
    uint64_t length_;
    double noise_;
};

}  // namespace

double typical_weight(const Weights& weights, int64_t n_rows) {
    if (!weights.weight || !(weights.largest > 0.0)) return 1.0;
    // In shares of the largest, whose square may be too large for a double.
    const double largest = weights.largest * weights.unit;
    ExactSum sum, squares;
    double shares[block_rows];
    for (int64_t at = 0; at < n_rows; at += block_rows) {
        const int64_t n = std::min(block_rows, n_rows - at);
        for (int64_t i = 0; i < n; ++i) shares[i] = weights.weight[at + i] / largest;
        sum.add(shares, nullptr, n);
        squares.add(shares, shares, n);
    }
    return sum.value() > 0.0 ? squares.value() / sum.value() * largest : 1.0;
}

void draw_rows(const DrawInput& input, Draw& draw, int n_threads) {
    Drawing(input, draw).run(n_threads);
}

}  // namespace sglb
