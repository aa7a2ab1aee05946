#include "bins.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <queue>
#include <type_traits>
#include <vector>

#include "elementary.h"
#include "parallel.h"
#include "row_draw.h"

namespace sglb {
namespace {

// Numbers in the order of their bits: negative ones reversed, sign flipped. Single precision needs
// half as many digits.
uint64_t to_key(double x) {
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    return bits ^ (bits >> 63 ? ~uint64_t{0} : uint64_t{1} << 63);
}
double from_key(uint64_t key) {
    return std::bit_cast<double>(key ^ (key >> 63 ? uint64_t{1} << 63 : ~uint64_t{0}));
}
uint32_t to_key(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    return bits ^ (bits >> 31 ? ~uint32_t{0} : uint32_t{1} << 31);
}
double from_key(uint32_t key) {
    const uint32_t bits = key ^ (key >> 31 ? uint32_t{1} << 31 : ~uint32_t{0});
    return static_cast<double>(std::bit_cast<float>(bits));
}

// Least significant digit radix sort; digits that all keys share are skipped.
template <class Key>
void sort_keys(std::vector<Key>& keys) {
    if (keys.size() < 512) {
        std::sort(keys.begin(), keys.end());
        return;
    }
    constexpr int digit_bits = 11;
    constexpr size_t n_digits = size_t{1} << digit_bits;
    std::vector<Key> other(keys.size());
    for (int shift = 0; shift < std::numeric_limits<Key>::digits; shift += digit_bits) {
        std::vector<size_t> start(n_digits + 1, 0);
        for (const Key key : keys) ++start[(key >> shift & (n_digits - 1)) + 1];
        if (std::find(start.begin(), start.end(), keys.size()) != start.end()) continue;
        for (size_t d = 0; d < n_digits; ++d) start[d + 1] += start[d];
        for (const Key key : keys) other[start[key >> shift & (n_digits - 1)]++] = key;
        keys.swap(other);
    }
}

// Distinct values u_0 < u_1 < ... and cumulative counts: below[i] rows lie below u_i.
struct Distinct {
    std::vector<double> value;
    std::vector<int64_t> below;
};

template <class Key>
Distinct distinct_values(std::vector<Key>& keys) {
    sort_keys(keys);
    Distinct distinct;
    for (size_t i = 0; i < keys.size(); ++i) {
        if (i > 0 && keys[i] == keys[i - 1]) continue;
        distinct.value.push_back(from_key(keys[i]));
        distinct.below.push_back(static_cast<int64_t>(i));
    }
    distinct.below.push_back(static_cast<int64_t>(keys.size()));
    return distinct;
}

// The distinct values of some rows of a column; -0 and 0 are one value.
template <class T>
Distinct distinct_of(const T* column, int64_t stride, const std::vector<int64_t>& rows) {
    using Real = std::conditional_t<std::is_same_v<T, float>, float, double>;
    std::vector<decltype(to_key(Real{}))> keys;
    keys.reserve(rows.size());
    for (const int64_t row : rows) {
        const auto value = static_cast<Real>(column[row * stride]);
        if (value == value) keys.push_back(to_key(value + Real{0}));
    }
    return distinct_values(keys);
}

// A bin of distinct values [begin, end) and the best place to cut it.
struct Bin {
    size_t begin, end, cut;
    double gain;
    bool operator<(const Bin& other) const {  // the top of the queue: largest gain, then leftmost
        return gain != other.gain ? gain < other.gain : begin > other.begin;
    }
};

double log_of(int64_t n) { return logarithm(static_cast<double>(n)); }

// Cut next to the median; gain log n_left + log n_right - log n favours large bins, yet less
// strictly than equal-mass quantiles do, so that rare values get thresholds of their own.
Bin make_bin(const Distinct& d, size_t begin, size_t end) {
    Bin bin{begin, end, 0, -std::numeric_limits<double>::infinity()};
    if (end - begin < 2) return bin;
    const int64_t low = d.below[begin];
    const int64_t high = d.below[end];
    const int64_t half = low + (high - low) / 2;
    const auto first = d.below.begin() + static_cast<std::ptrdiff_t>(begin) + 1;
    const auto last = d.below.begin() + static_cast<std::ptrdiff_t>(end);
    const auto middle = static_cast<size_t>(std::lower_bound(first, last, half) - d.below.begin());
    for (const size_t cut : {middle - 1, middle}) {
        if (cut <= begin || cut >= end) continue;
        const double gain =
            log_of(d.below[cut] - low) + log_of(high - d.below[cut]) - log_of(high - low);
        if (gain > bin.gain) {
            bin.gain = gain;
            bin.cut = cut;
        }
    }
    return bin;
}

// A number t with low <= t < high, halfway where that can be represented.
double between(double low, double high) {
    const double middle = 0.5 * low + 0.5 * high;
    return middle >= low && middle < high ? middle : low;
}

std::vector<double> choose_thresholds(const Distinct& d, size_t max_bins) {
    std::vector<size_t> cuts;
    if (d.value.size() <= max_bins) {
        for (size_t i = 1; i < d.value.size(); ++i) cuts.push_back(i);
    } else {
        std::priority_queue<Bin> bins;
        bins.push(make_bin(d, 0, d.value.size()));
        while (cuts.size() + 1 < max_bins && std::isfinite(bins.top().gain)) {
            const Bin bin = bins.top();
            bins.pop();
            cuts.push_back(bin.cut);
            bins.push(make_bin(d, bin.begin, bin.cut));
            bins.push(make_bin(d, bin.cut, bin.end));
        }
        std::sort(cuts.begin(), cuts.end());
    }
    std::vector<double> thresholds;
    for (const size_t cut : cuts) thresholds.push_back(between(d.value[cut - 1], d.value[cut]));
    return thresholds;
}

}  // namespace

void threshold_rows(int64_t n_rows, int64_t n, uint64_t seed, int64_t* rows) {
    if (n == n_rows) {
        std::iota(rows, rows + n, int64_t{0});
        return;
    }
    const Stream stream{seed, 0, Role::thresholds, 0};
    const uint64_t length = stretch_length(static_cast<uint64_t>(n), static_cast<uint64_t>(n_rows));
    for (int64_t k = 0; k < n; ++k)
        rows[k] = static_cast<int64_t>(stretch_row(stream, static_cast<uint64_t>(k), length));
}

void find_thresholds(const Table& x, int max_bins, int64_t sample_rows, uint64_t seed,
                     double* thresholds, int32_t* n_thresholds, int n_threads) {
    const int64_t width = max_bins - 1;
    std::vector<int64_t> rows(static_cast<size_t>(std::min(x.n_rows, sample_rows)));
    threshold_rows(x.n_rows, static_cast<int64_t>(rows.size()), seed, rows.data());
    parallel_for(x.n_features, n_threads, [&](int64_t feature) {
        std::vector<double> chosen;
        with_type(x, [&](const auto* data) {
            chosen = choose_thresholds(
                distinct_of(data + feature * x.feature_stride, x.row_stride, rows),
                static_cast<size_t>(max_bins));
        });
        double* out = thresholds + feature * width;
        std::fill(out, out + width, std::numeric_limits<double>::infinity());
        std::copy(chosen.begin(), chosen.end(), out);
        n_thresholds[feature] = static_cast<int32_t>(chosen.size());
    });
}

namespace {

// Turns eight words of eight bytes: byte i of word j and byte j of word i change places.
SGLB_INLINE void transpose(uint64_t* w) {
    const auto swap = [](uint64_t& a, uint64_t& b, int shift, uint64_t mask) {
        const uint64_t changed = (a >> shift ^ b) & mask;
        b ^= changed;
        a ^= changed << shift;
    };
    for (int j = 0; j < 4; ++j) swap(w[j], w[j + 4], 32, 0x00000000ffffffff);
    for (const int j : {0, 1, 4, 5}) swap(w[j], w[j + 2], 16, 0x0000ffff0000ffff);
    for (const int j : {0, 2, 4, 6}) swap(w[j], w[j + 1], 8, 0x00ff00ff00ff00ff);
}

// Rows begin..end of up to eight features, the codes of a row going to rows + row * stride.
void turn_group(const uint8_t* columns, int64_t n_features, int64_t n_rows, int64_t begin,
                int64_t end, int64_t stride, uint8_t* rows) {
    for (int64_t row = begin; row < end; row += 8) {
        const int64_t n = std::min<int64_t>(8, end - row);
        uint64_t words[8] = {};
        for (int64_t j = 0; j < n_features; ++j) {
            const uint8_t* from = columns + j * n_rows + row;
            if (n == 8)
                std::memcpy(&words[j], from, 8);
            else
                std::memcpy(&words[j], from, static_cast<size_t>(n));
        }
        transpose(words);
        for (int64_t i = 0; i < n; ++i) std::memcpy(rows + (row + i) * stride, &words[i], 8);
    }
}

}  // namespace

void to_rows(const uint8_t* columns, int64_t n_features, int64_t n_rows, int64_t stride,
             uint8_t* rows, int n_threads) {
    constexpr int64_t tile = 256;
    static_assert(std::endian::native == std::endian::little);
    parallel_rows(n_rows, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += tile)
            for (int64_t first = 0; first < stride; first += 8)
                turn_group(columns + first * n_rows, std::clamp<int64_t>(n_features - first, 0, 8),
                           n_rows, at, std::min(end, at + tile), stride, rows + first);
    });
}

}  // namespace sglb
