#include "histogram.h"

#include <cstring>

#include "elementary.h"

namespace sglb {
namespace {

SGLB_INLINE uint64_t load_codes(const uint8_t* at) {
    uint64_t codes;
    std::memcpy(&codes, at, sizeof codes);
    return codes;
}

SGLB_INLINE void add_four(int64_t* hist, uint32_t c, int64_t word) {
    hist[c << 3 & 2040] += word;
    hist[(c >> 5 & 2040) + 1] += word;
    hist[(c >> 13 & 2040) + 2] += word;
    hist[(c >> 21 & 2040) + 3] += word;
}

// Far enough ahead to hide a cache miss, near enough to be still there when it is used.
constexpr int64_t ahead = 24;

template <bool half, bool far>
void build(const uint8_t* codes, int64_t stride, const uint32_t* order, const int64_t* words,
           int64_t n, int64_t* hist) {
    struct Row {
        uint64_t codes;
        int64_t word;
    };
    const auto read = [=](int64_t i) {
        return Row{load_codes(codes + order[i] * stride), words[order[i]]};
    };
    const auto add = [=](const Row& row) {
        add_four(hist, static_cast<uint32_t>(row.codes), row.word);
        if constexpr (!half) add_four(hist + 4, static_cast<uint32_t>(row.codes >> 32), row.word);
    };
    int64_t i = 0;
    if (n >= 4) {
        // The next two rows are read before these two are added: a load that stands behind sixteen
        // stores waits for their addresses.
        Row a = read(0), b = read(1);
        const auto two = [&] {
            const Row c = read(i + 2), d = read(i + 3);
            add(a);
            add(b);
            a = c, b = d;
        };
        if constexpr (far)
            for (; i + ahead + 2 <= n; i += 2) {
                __builtin_prefetch(codes + order[i + ahead] * stride);
                __builtin_prefetch(codes + order[i + ahead + 1] * stride);
                two();
            }
        for (; i + 4 <= n; i += 2) two();
    }
    for (; i < n; ++i) add(read(i));
}

}  // namespace

void build_histogram(const RowCodes& rows, const uint32_t* order, const int64_t* words, int64_t n,
                     bool half, int64_t* hist) {
    const auto kernel = half ? (rows.far ? build<true, true> : build<true, false>)
                             : (rows.far ? build<false, true> : build<false, false>);
    kernel(rows.codes, rows.stride, order, words, n, hist);
}

SGLB_KERNEL void add_histogram(const int64_t* from, int64_t* to, int64_t size) {
    for (int64_t i = 0; i < size; ++i) to[i] += from[i];
}

}  // namespace sglb
