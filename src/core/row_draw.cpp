#include "row_draw.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t tile = 256;
// Rows that are looked at for each row wanted. With two there is a choice left, and the look costs
// less than the search.
constexpr int64_t candidates_per_row = 2;

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
// counter k / 4.
void coins(const Stream& stream, int64_t first, int64_t n, uint32_t* coin) {
    uint32_t counters[tile / 4 + 1], words[4][tile / 4 + 1] = {};
    const int64_t skipped = first % 4, n_counters = (skipped + n + 3) / 4;
    std::iota(counters, counters + n_counters, static_cast<uint32_t>(first / 4));
    gather_words(stream, counters, n_counters, {words[0], words[1], words[2], words[3]});
    uint32_t all[tile + 4];
    for (int64_t i = 0; i < tile / 4 + 1; ++i)
        for (int64_t j = 0; j < 4; ++j) all[4 * i + j] = words[j][i];
    std::copy_n(all + skipped, n, coin);
}

SGLB_KERNEL void add_squares(const double* gradient, int64_t n, double* squares) {
    for (int64_t i = 0; i < n; ++i) squares[i] += gradient[i] * gradient[i];
}

class Drawing {
  public:
    explicit Drawing(const DrawInput& input) : in_(input), numbers_(input.slopes.numbers) {
        n_candidates_ = std::min(numbers_.n_in_all, candidates_per_row * in_.n);
        dense_ = n_candidates_ == numbers_.total();
        length_ = stretch_length(static_cast<uint64_t>(n_candidates_),
                                 static_cast<uint64_t>(numbers_.n_in_all));
        noise_ =
            in_.noise * in_.noise / in_.weights.unit * static_cast<double>(in_.slopes.n_outputs);
    }

    // Evenly spaced pairs of candidates.
    void measure(Pilot& pilot) const {
        const int64_t n = n_pilot();
        const int64_t stride = n_candidates_ / n;  // in pairs
        CandidateSlopes slopes(*this);
        uint32_t rows[tile], point[tile], coin[tile];
        int64_t slots[tile];
        for (int64_t at = 0; at < n; at += tile) {
            const int64_t count = std::min(tile, n - at);
            if (!dense_) candidate_words(stream(), at * stride, stride, count + 1, point, coin);
            int64_t n_in_shard = 0;
            for (int64_t i = 0; i < count; ++i) {
                const int64_t candidate = (at + i) / 2 * 2 * stride + (at + i) % 2;
                const int64_t row = row_here(dense_ ? candidate : row_in_copy(point[i], candidate));
                if (row < 0) continue;
                rows[n_in_shard] = static_cast<uint32_t>(row);
                slots[n_in_shard++] = at + i;
            }
            slopes.run(rows, n_in_shard);
            for (int64_t i = 0; i < n_in_shard; ++i) {
                pilot.squares[slots[i]] = slopes.squares[i];
                pilot.weights[slots[i]] = slopes.weight[i];
            }
        }
    }

    void run(const Pilot& pilot, Draw& draw, int n_threads) const {
        draw.dense = dense_;
        draw.scale = find_scale(pilot, n_pilot(), noise_,
                                static_cast<double>(in_.n) * static_cast<double>(n_pilot()) /
                                    static_cast<double>(n_candidates_));
        draw.share = static_cast<double>(n_candidates_) / static_cast<double>(numbers_.n_in_all);
        const auto [first, last] = candidates_here();
        const int64_t n_here = last - first;
        const int64_t n_blocks = (n_here + block_rows - 1) / block_rows;
        draw.counts.assign(static_cast<size_t>(n_blocks) + 1, 0);
        draw.candidate_rows.resize(n_here);
        (dense_ ? draw.inverse_probability : draw.candidate_inverse).resize(n_here);
        parallel_rows(n_here, n_threads, [&, first = first](int64_t begin, int64_t end) {
            dense_ ? scan<true>(draw, 0, begin, end) : scan<false>(draw, first, begin, end);
        });
        for (int64_t b = 0; b < n_blocks; ++b)
            draw.counts[static_cast<size_t>(b) + 1] += draw.counts[b];
        const auto n = static_cast<size_t>(draw.counts.back());
        draw.rows.resize(n);
        if (!dense_) draw.inverse_probability.resize(n);
        parallel_rows(n_here, n_threads, [&](int64_t begin, int64_t) {
            const auto block = static_cast<size_t>(begin / block_rows);
            const int64_t at = draw.counts[block], count = draw.counts[block + 1] - at;
            std::copy_n(draw.candidate_rows.data() + begin, count, draw.rows.data() + at);
            if (!dense_)
                std::copy_n(draw.candidate_inverse.data() + begin, count,
                            draw.inverse_probability.data() + at);
        });
    }

  private:
    // Squared gradients and weights of a tile of candidates.
    class CandidateSlopes {
      public:
        explicit CandidateSlopes(const Drawing& drawing)
            : drawing_(drawing), tile_(drawing.in_.slopes, tile) {
            std::fill_n(weight, tile, 1.0);
        }
        void run(const uint32_t* rows, int64_t n) {
            tile_.gather(drawing_.in_.subsample, rows, n);
            measure([rows](int64_t i) { return rows[i]; }, n);
        }
        // The same of rows begin .. begin + n.
        void run_through(int64_t begin, int64_t n) {
            tile_.fill(drawing_.in_.subsample, begin, n);
            measure([begin](int64_t i) { return begin + i; }, n);
        }
        double squares[tile], weight[tile];

      private:
        template <class RowOf>
        void measure(RowOf&& row_of, int64_t n) {
            const DrawInput& in = drawing_.in_;
            std::fill_n(squares, n, 0.0);
            for (int64_t k = 0; k < in.slopes.n_outputs; ++k)
                add_squares(tile_.gradient(k), n, squares);
            for (int64_t i = 0; in.weights.weight && i < n; ++i)
                weight[i] = in.weights.weight[row_of(i)] / in.weights.unit;
        }

        const Drawing& drawing_;
        SlopeTile tile_;
    };

    int64_t n_pilot() const { return std::min(n_candidates_, Pilot::most); }
    Stream stream() const { return {in_.seed, in_.step, Role::rows, 0}; }

    // The row of the copy that candidate k is.
    int64_t row_in_copy(uint32_t point, int64_t k) const {
        return static_cast<int64_t>(stretch_point(point, static_cast<uint64_t>(k), length_));
    }
    // Where a row of the copy is in this shard; -1 if it is in another one.
    int64_t row_here(int64_t row_in_copy) const {
        const int64_t row = row_in_copy - numbers_.first;
        return row < 0 || row >= numbers_.n_here ? -1 : in_.copy * numbers_.n_here + row;
    }
    // Candidates among which are all that lie in this shard; the first is even.
    std::pair<int64_t, int64_t> candidates_here() const {
        if (numbers_.whole()) return {0, n_candidates_};
        if (dense_) return {0, numbers_.n_here};
        const auto stretch_at = [&](int64_t row) {
            return static_cast<int64_t>((static_cast<uint64_t>(row) << 32) / length_);
        };
        return {std::max<int64_t>(0, stretch_at(numbers_.first) - 2) / 2 * 2,
                std::min(n_candidates_, stretch_at(numbers_.first + numbers_.n_here) + 2)};
    }

    // Candidates first + begin .. first + end.
    template <bool dense>
    void scan(Draw& draw, int64_t first, int64_t begin, int64_t end) const {
        CandidateSlopes slopes(*this);
        uint32_t point[tile], coin[tile], rows[tile];
        double importance[tile], tile_inverse[tile];
        uint8_t drawn[tile];
        int64_t next = begin;
        for (int64_t at = begin; at < end; at += tile) {
            int64_t n = std::min(tile, end - at);
            if constexpr (dense) {
                coins(stream(), numbers_.of(at), n, coin);
                std::iota(rows, rows + n, static_cast<uint32_t>(at));
                slopes.run_through(at, n);
            } else {
                candidate_words(stream(), first + at, 1, n + 1, point, coin);
                n = rows_of(point, first + at, n, rows, coin);
                slopes.run(rows, n);
            }
            double* inverse = dense ? draw.inverse_probability.data() + at : tile_inverse;
            find_importances(slopes.squares, slopes.weight, n, noise_, draw.scale.floor,
                             importance);
            toss(importance, coin, n, draw.scale.mu, inverse, drawn);
            // A row is written whether or not it is drawn; the next one overwrites it if not.
            for (int64_t i = 0; i < n; ++i) {
                draw.candidate_rows[next] = rows[i];
                if constexpr (!dense) draw.candidate_inverse[next] = inverse[i];
                next += drawn[i];
            }
        }
        draw.counts[static_cast<size_t>(begin / block_rows) + 1] = next - begin;
    }

    // Rows of n candidates from number k on that are in this shard, with their coins; how many.
    int64_t rows_of(const uint32_t* point, int64_t k, int64_t n, uint32_t* rows,
                    uint32_t* coin) const {
        if (numbers_.whole()) {
            const auto begin = static_cast<uint32_t>(in_.copy * numbers_.n_here);
            for (int64_t i = 0; i < n; ++i)
                rows[i] = begin + static_cast<uint32_t>(row_in_copy(point[i], k + i));
            return n;
        }
        int64_t n_in_shard = 0;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t row = row_here(row_in_copy(point[i], k + i));
            if (row < 0) continue;
            rows[n_in_shard] = static_cast<uint32_t>(row);
            coin[n_in_shard++] = coin[i];
        }
        return n_in_shard;
    }

    const DrawInput& in_;
    const RowNumbers& numbers_;
    bool dense_;
    int64_t n_candidates_;
    uint64_t length_;
    double noise_;
};

}  // namespace

void pilot_rows(const DrawInput& input, Pilot& pilot) { Drawing(input).measure(pilot); }

void draw_rows(const DrawInput& input, const Pilot& pilot, Draw& draw, int n_threads) {
    Drawing(input).run(pilot, draw, n_threads);
}

}  // namespace sglb
