#include "sample.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "outputs.h"

namespace sglb {
namespace {

// The codes of a row side by side.
void copy_codes(const Codes& codes, int64_t row, uint8_t* to) {
    if (codes.rows) {
        std::memcpy(to, codes.rows + row * codes.stride, static_cast<size_t>(codes.n_features));
        return;
    }
    for (int64_t f = 0; f < codes.n_features; ++f) to[f] = codes.columns[f * codes.n_rows + row];
}

}  // namespace

void Sample::finish(int n_threads) {
    if (needs_pilot()) {
        Pilot pilot;
        look(pilot);
        draw_part(pilot, n_threads);
    } else {
        draw_all();
    }
    count(0, rows_.n);
    pack(needs_squares() ? squares() : std::vector<int64_t>{}, n_threads);
}

void Sample::begin(const SampleInput& input) {
    in_ = input;
    draw_.dense = false;
    draw_.share = 1.0;
    codes_.clear();
}

bool Sample::needs_pilot() const {
    const RowNumbers& numbers = in_.slopes.numbers;
    return in_.plan.n_rows > 0 && in_.plan.n_rows < numbers.n_in_all;
}

int64_t Sample::draw_part(const Pilot& pilot, int n_threads) {
    if (!needs_pilot()) return draw_all();
    draw_rows(draw_input(), pilot, draw_, n_threads);
    const auto n = static_cast<int64_t>(draw_.rows.size());
    // Where all rows were looked at, those that were not drawn stand for none.
    rows_ = {draw_.dense ? nullptr : draw_.rows.data(), draw_.inverse_probability.data(),
             draw_.dense ? in_.slopes.numbers.n_here : n, 0, draw_.scale};
    return rows_.n;
}

// All rows of a copy, or none.
int64_t Sample::draw_all() {
    const RowNumbers& numbers = in_.slopes.numbers;
    if (in_.plan.n_rows <= 0) {
        rows_ = {};
    } else if (numbers.n_copies == 1) {
        rows_ = {nullptr, nullptr, numbers.n_here};
    } else {
        const int64_t copy = in_.step % numbers.n_copies;
        draw_.rows.resize(numbers.n_here);
        std::iota(draw_.rows.begin(), draw_.rows.end(),
                  static_cast<uint32_t>(copy * numbers.n_here));
        rows_ = {draw_.rows.data(), nullptr, numbers.n_here};
    }
    return rows_.n;
}

void Sample::count(int64_t before, int64_t n_in_all) {
    before_ = before;
    rows_.n_in_all = n_in_all;
    outputs_.clear();
    scales_ = quantise_scales(quantise_input());
}

std::vector<int64_t> Sample::squares() const {
    std::vector<int64_t> squares(static_cast<size_t>(in_.slopes.n_outputs));
    output_squares(quantise_input(), scales_, before_, squares.data());
    return squares;
}

void Sample::pack(const std::vector<int64_t>& squares, int n_threads) {
    if (needs_squares()) draw_outputs(squares, in_.seed, in_.step, in_.plan.n_outputs, outputs_);
    const QuantiseInput input = quantise_input();
    n_words_ = input.n_words();
    words_.resize(rows_.n * n_words_);
    quantise(input, scales_, words_.data(), n_threads);
}

int64_t Sample::planned_rows() const {
    return needs_pilot() && !draw_.dense ? in_.plan.n_rows
           : in_.plan.n_rows > 0         ? in_.slopes.numbers.n_in_all
                                         : 0;
}

std::pair<int64_t, int64_t> Sample::packed_for() const {
    const auto is_same = [&](int64_t n) {
        QuantiseInput input = quantise_input();
        input.rows.n_in_all = n;
        const Scales scales = quantise_scales(input);
        return scales.gradient == scales_.gradient && scales.mass == scales_.mass &&
               scales.fine == scales_.fine;
    };
    // Scales never grow with the number of rows. Between a number that is right and one that is
    // not, or that is far enough away, lies the last right one.
    const auto last_right = [&](int64_t right, int64_t wrong) {
        while (std::abs(wrong - right) > 1) {
            const int64_t middle = right + (wrong - right) / 2;
            (is_same(middle) ? right : wrong) = middle;
        }
        return right;
    };
    const int64_t n = rows_.n_in_all;
    return {last_right(n, -1), last_right(n, 2 * n + 1)};
}

void Sample::write(uint8_t* codes, int64_t* words) const {
    const int64_t n = n_rows(), width = n_columns();
    for (int64_t i = 0; i < n; ++i) {
        const int64_t row = all_rows() ? i : draw_.rows[i];
        copy_codes(in_.codes, row, codes + i * width);
        const int64_t word = draw_.dense ? row : i;
        for (int64_t k = 0; k < n_words_; ++k) words[k * n + i] = words_[k * rows_.n + word];
    }
}

void Sample::join(const SampleInput& input, const Packing& packing,
                  const std::vector<SamplePart>& parts, int64_t n_words) {
    in_ = input;
    scales_ = packing.scales;
    n_words_ = n_words;
    draw_.dense = false;
    draw_.share = packing.share;
    int64_t n = 0;
    for (const SamplePart& part : parts) n += part.n;
    rows_ = {nullptr, nullptr, n, n};
    const int64_t width = n_columns(), stride = in_.codes.stride;
    codes_.resize(n * stride);
    words_.resize(n * n_words);
    int64_t at = 0;
    for (const SamplePart& part : parts) {
        for (int64_t i = 0; i < part.n; ++i)
            std::memcpy(codes_.data() + (at + i) * stride, part.codes + i * width,
                        static_cast<size_t>(width));
        for (int64_t k = 0; k < n_words; ++k)
            std::copy_n(part.words + k * part.n, part.n, words_.data() + k * n + at);
        at += part.n;
    }
    in_.codes.rows = codes_.data();
    in_.codes.columns = nullptr;
    in_.codes.n_rows = n;
}

SearchInput Sample::search_input(SearchRule rule) const {
    // Sums over a share of the rows are regularised by that share of l2.
    const RowNumbers& numbers = in_.slopes.numbers;
    const double share =
        static_cast<double>(numbers.n_in_all) / static_cast<double>(numbers.total()) * draw_.share;
    rule.seed = in_.seed;
    rule.step = in_.step;
    rule.l2 = rule.l2 / scales_.unit * scales_.mass * share;
    SearchInput input{in_.codes,  words_.data(), rows_.n,     n_words_,
                      rows_.rows, rows_.n,       !rows_.rows, rule};
    if (draw_.dense) {
        input.rows = draw_.rows.data();
        input.n = static_cast<int64_t>(draw_.rows.size());
    }
    return input;
}

DrawInput Sample::draw_input() const {
    const int64_t copy = in_.step % in_.slopes.numbers.n_copies;
    return {in_.slopes, in_.subsample,   in_.weights, in_.noise,
            copy,       in_.plan.n_rows, in_.seed,    in_.step};
}

QuantiseInput Sample::quantise_input() const {
    return {in_.slopes, in_.subsample,   in_.weights, rows_,    in_.noise,
            in_.bounds, in_.plan.newton, in_.seed,    in_.step, outputs_};
}

}  // namespace sglb
