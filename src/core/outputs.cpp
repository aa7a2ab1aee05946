#include "outputs.h"

#include <algorithm>
#include <numeric>

#include "noise.h"

namespace sglb {
namespace {

constexpr int64_t most_rows = 1024;

// Evenly spaced structure rows.
struct Few {
    std::vector<uint32_t> rows;
    std::vector<double> lift;

    explicit Few(const StructureRows& all) {
        const int64_t n = std::min(all.n, most_rows);
        rows.resize(static_cast<size_t>(n));
        if (all.lift) lift.resize(rows.size());
        for (int64_t i = 0; i < n; ++i) {
            const int64_t place = i * all.n / n;
            rows[static_cast<size_t>(i)] =
                all.rows ? all.rows[place] : static_cast<uint32_t>(place);
            if (all.lift) lift[static_cast<size_t>(i)] = all.lift[place];
        }
    }
};

}  // namespace

void draw_outputs(const QuantiseInput& input, const Scales& scales, int64_t n,
                  std::vector<int32_t>& outputs) {
    const Few few(input.rows);
    const auto n_rows = static_cast<int64_t>(few.rows.size());
    QuantiseInput some = input;
    some.rows.rows = few.rows.data();
    some.rows.lift = few.lift.empty() ? nullptr : few.lift.data();
    some.rows.n = n_rows;
    std::vector<int64_t> words(static_cast<size_t>(input.slopes.n_outputs * n_rows));
    quantise(some, scales, words.data(), 1);
    // Who is first of exponential times with rates in proportion to the squares, then who is next.
    std::vector<double> time(static_cast<size_t>(input.slopes.n_outputs));
    const Stream stream{input.seed, input.step, Role::outputs};
    for (size_t k = 0; k < time.size(); ++k) {
        double squares = 0.0;
        for (int64_t i = 0; i < n_rows; ++i) {
            const auto q =
                static_cast<double>(words[k * few.rows.size() + static_cast<size_t>(i)] >> 32);
            squares += q * q;
        }
        time[k] = -logarithm(unit(words_at(stream, k)[0]) + 0x1p-33) / squares;
    }
    outputs.resize(time.size());
    std::iota(outputs.begin(), outputs.end(), 0);
    std::stable_sort(outputs.begin(), outputs.end(), [&](int32_t a, int32_t b) {
        return time[static_cast<size_t>(a)] < time[static_cast<size_t>(b)];
    });
    outputs.resize(static_cast<size_t>(n));
    std::sort(outputs.begin(), outputs.end());
}

}  // namespace sglb
