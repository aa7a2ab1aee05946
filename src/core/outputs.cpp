#include "outputs.h"

#include <algorithm>
#include <numeric>

#include "noise.h"

namespace sglb {
namespace {

constexpr int64_t most_rows = 1024;

}  // namespace

void output_squares(const QuantiseInput& input, const Scales& scales, int64_t before,
                    int64_t* squares) {
    const StructureRows& all = input.rows;
    const int64_t n = std::min(all.n_in_all, most_rows);
    std::vector<uint32_t> rows;
    std::vector<double> inverse;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t at = i * all.n_in_all / n - before;
        if (at < 0 || at >= all.n) continue;
        rows.push_back(all.rows ? all.rows[at] : static_cast<uint32_t>(at));
        if (all.inverse_probability) inverse.push_back(all.inverse_probability[at]);
    }
    QuantiseInput drawn = input;
    drawn.rows.rows = rows.data();
    drawn.rows.inverse_probability = inverse.empty() ? nullptr : inverse.data();
    drawn.rows.n = static_cast<int64_t>(rows.size());
    std::vector<int64_t> words(static_cast<size_t>(input.slopes.n_outputs) * rows.size());
    quantise(drawn, scales, words.data(), 1);
    for (int64_t k = 0; k < input.slopes.n_outputs; ++k) {
        squares[k] = 0;
        for (size_t i = 0; i < rows.size(); ++i) {
            const int64_t q = words[static_cast<size_t>(k) * rows.size() + i] >> 32;
            squares[k] += q * q;
        }
    }
}

void draw_outputs(const std::vector<int64_t>& squares, uint64_t seed, uint32_t step, int64_t n,
                  std::vector<int32_t>& outputs) {
    // Who is first of exponential times with rates in proportion to the squares, then who is next.
    std::vector<double> time(squares.size());
    const Stream stream{seed, step, Role::outputs};
    for (size_t k = 0; k < time.size(); ++k)
        time[k] =
            -logarithm(unit(words_at(stream, k)[0]) + 0x1p-33) / static_cast<double>(squares[k]);
    outputs.resize(time.size());
    std::iota(outputs.begin(), outputs.end(), 0);
    std::stable_sort(outputs.begin(), outputs.end(),
                     [&](int32_t a, int32_t b) { return time[a] < time[b]; });
    outputs.resize(n);
    std::sort(outputs.begin(), outputs.end());
}

}  // namespace sglb
