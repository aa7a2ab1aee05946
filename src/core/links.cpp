#include "links.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

// The two probabilities of a logit, without cancellation at either end.
// With t = |z| and e = e^-t, the likelier class has probability 1 / (1 + e), the other one e times
// as much. t stops where the exponential does, so that t e is finite.
struct Logit {
    double t, e;
    double odds;  // 1 + e
    bool positive;
    SGLB_INLINE explicit Logit(double z) {
        t = minimum(absolute(z), 708.0);
        e = exponential_within(-t);
        odds = 1.0 + e;
        positive = z >= 0.0;
    }
    // Probabilities of the classes, given 1 / odds.
    SGLB_INLINE double first(double inverse) const { return positive ? e * inverse : inverse; }
    SGLB_INLINE double second(double inverse) const { return positive ? inverse : e * inverse; }
};

SGLB_KERNEL void sigmoid(double inverse_width, int64_t n, const double* __restrict z,
                         double* __restrict out) {
    for (int64_t i = 0; i < n; ++i) {
        const Logit logit(z[i] * inverse_width);
        out[i] = logit.second(1.0 / logit.odds);
    }
}

SGLB_KERNEL void both_sigmoids(double inverse_width, int64_t n, const double* __restrict z,
                               double* __restrict out) {
    for (int64_t i = 0; i < n; ++i) {
        const Logit logit(z[i] * inverse_width);
        const double inverse = 1.0 / logit.odds;
        out[2 * i] = logit.first(inverse);
        out[2 * i + 1] = logit.second(inverse);
    }
}

SGLB_KERNEL void exponentials(double limit, int64_t n, double* z) {
    // A tangent that ends at 1e280, or at e^709, stays finite for every limit up to 709.
    const double longest = minimum(1e280, exponential(708.0 - limit));
    for (int64_t i = 0; i < n; ++i) {
        const double excess = minimum(maximum(z[i] - limit, 0.0), longest);
        z[i] = exponential(minimum(z[i], limit)) * (1.0 + excess);
    }
}

// Probabilities in place of the scores of all classes.
SGLB_KERNEL void softmax(int64_t n_outputs, int64_t n, double* scores) {
    double highest[tile];
    double total[tile];
    for (int64_t i = 0; i < n; ++i) highest[i] = scores[i];
    for (int64_t k = 1; k < n_outputs; ++k)
        for (int64_t i = 0; i < n; ++i) highest[i] = maximum(highest[i], scores[k * tile + i]);
    for (int64_t i = 0; i < n; ++i) total[i] = 0.0;
    for (int64_t k = 0; k < n_outputs; ++k) {
        double* z = scores + k * tile;
        for (int64_t i = 0; i < n; ++i) {
            z[i] = exponential(z[i] - highest[i]);
            total[i] += z[i];
        }
    }
    for (int64_t k = 0; k < n_outputs; ++k)
        for (int64_t i = 0; i < n; ++i) scores[k * tile + i] /= total[i];
}

// The scores of each row in increasing order: insertion, by exchanges of two outputs of all rows.
SGLB_KERNEL void sort(int64_t n_outputs, int64_t n, double* scores) {
    for (int64_t last = 1; last < n_outputs; ++last)
        for (int64_t k = last; k > 0; --k) {
            double* __restrict below = scores + (k - 1) * tile;
            double* __restrict above = scores + k * tile;
            for (int64_t i = 0; i < n; ++i) {
                const double low = below[i], high = above[i];
                below[i] = high < low ? high : low;
                above[i] = high < low ? low : high;
            }
        }
}

}  // namespace

void to_row_major(const double* numbers, int64_t n_columns, int64_t n, double* out) {
    for (int64_t k = 0; k < n_columns; ++k)
        for (int64_t i = 0; i < n; ++i) out[i * n_columns + k] = numbers[k * tile + i];
}

bool Link::fits(int64_t n_outputs, int64_t n_columns) const {
    if (kind == Kind::sigmoid) return n_outputs == 1 && (n_columns == 1 || n_columns == 2);
    return n_outputs == n_columns;
}

Link find_link(std::string_view name, double parameter) {
    using Kind = Link::Kind;
    if (name == "identity") return {Kind::identity, parameter};
    if (name == "sigmoid") {
        if (!(parameter >= 1e-300 && parameter <= 1e300))
            throw std::invalid_argument("a sigmoid's width must be between 1e-300 and 1e300");
        return {Kind::sigmoid, parameter};
    }
    if (name == "softmax") return {Kind::softmax, parameter};
    if (name == "exponential") return {Kind::exponential, parameter};
    if (name == "sorted") return {Kind::sorted, parameter};
    throw std::invalid_argument("no link '" + std::string(name) + "'");
}

void apply_link(const Link& link, int64_t n_outputs, int64_t n, double* scores, int64_t n_columns,
                double* out) {
    if (link.kind == Link::Kind::sigmoid) {
        const auto kernel = n_columns == 1 ? sigmoid : both_sigmoids;
        kernel(1.0 / link.parameter, n, scores, out);
        return;
    }
    if (link.kind == Link::Kind::softmax) softmax(n_outputs, n, scores);
    if (link.kind == Link::Kind::sorted) sort(n_outputs, n, scores);
    if (link.kind == Link::Kind::exponential)
        for (int64_t k = 0; k < n_outputs; ++k) exponentials(link.parameter, n, scores + k * tile);
    to_row_major(scores, n_outputs, n, out);
}

void link_scores(const Link& link, const double* raw, int64_t n_outputs, int64_t n_rows,
                 int64_t n_columns, double* out, int n_threads) {
    parallel_rows(n_rows, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> scores(static_cast<size_t>(n_outputs * tile));
        for (int64_t at = begin; at < end; at += tile) {
            const int64_t n = std::min(tile, end - at);
            for (int64_t k = 0; k < n_outputs; ++k)
                std::copy_n(raw + k * n_rows + at, n, scores.data() + k * tile);
            apply_link(link, n_outputs, n, scores.data(), n_columns, out + at * n_columns);
        }
    });
}

}  // namespace sglb
