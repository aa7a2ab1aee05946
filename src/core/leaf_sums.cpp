#include "leaf_sums.h"

#include <algorithm>
#include <cmath>

#include "code_trees.h"
#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t tile = 512;
// A part of the rows is made of lines of this many: what a line of cache has of a feature's codes.
// The shorter they are the less it matters in which order the rows come.
constexpr int64_t line = 64;
// Neighbouring rows of a leaf would wait for each other's sums: few leaves have several sums each.
constexpr int64_t lanes = 4;
constexpr int many_lanes_depth = 4;
// A leaf takes a step on a part of the rows where these know enough: with the curvature of this
// many rows of the largest one and of typical weight. For the logistic loss that is 16, and the
// standard error of the step 1/4. A leaf that a part without any positives would lead astray soon
// has less.
constexpr double least_part_rows = 64.0;

// x as a fixed-point integer: round(x * scale), |x * scale| < 2^51.
SGLB_KERNEL void to_fixed(const double* x, int64_t n, double scale, int64_t* out) {
    for (int64_t i = 0; i < n; ++i)
        out[i] = static_cast<int64_t>(std::bit_cast<uint64_t>(x[i] * scale + round_magic) -
                                      std::bit_cast<uint64_t>(round_magic));
}

SGLB_KERNEL void to_fixed_weighted(const double* x, const double* weight, int64_t n, double scale,
                                   int64_t* out) {
    for (int64_t i = 0; i < n; ++i)
        out[i] =
            static_cast<int64_t>(std::bit_cast<uint64_t>(x[i] * weight[i] * scale + round_magic) -
                                 std::bit_cast<uint64_t>(round_magic));
}

void fix(const double* x, const double* weight, int64_t n, double scale, int64_t* out) {
    if (weight)
        to_fixed_weighted(x, weight, n, scale, out);
    else
        to_fixed(x, n, scale, out);
}

// The power of two that uses as much of 62 bits as sums over n rows of numbers up to `bound` allow.
double fixed_scale(double bound, int64_t n) {
    if (!(bound > 0.0)) return 0.0;
    const int bits = std::min(50, 62 - static_cast<int>(std::bit_width(static_cast<uint64_t>(n))));
    return std::ldexp(1.0, std::min(1000, bits - std::ilogb(bound) - 1));
}

class Summing {
  public:
    Summing(const LeafSumsInput& input, LeafSums& out, int n_threads)
        : in_(input), out_(out), n_threads_(n_threads) {
        const int64_t n_rows = in_.slopes.numbers.total();
        const double weight = in_.weights.weight ? in_.weights.largest * in_.weights.unit : 1.0;
        out_.n_leaves = int64_t{1} << in_.depth;
        out_.n_outputs = in_.slopes.n_outputs;
        out_.newton = in_.slopes.hessian || in_.slopes.newton;
        out_.gradient_scale = fixed_scale(in_.bounds.gradient * weight, n_rows);
        out_.curvature_scale = fixed_scale(in_.bounds.hessian * weight, n_rows);
        out_.weight_scale = in_.weights.weight ? fixed_scale(weight, n_rows) : 1.0;
        out_.share = 1.0;
        out_.least_curvature = 0.0;
        if (in_.row_stride > 1) {
            out_.share = static_cast<double>(rows_looked_at(n_rows)) / static_cast<double>(n_rows);
            out_.least_curvature = least_part_rows * in_.bounds.hessian *
                                   (in_.weights.weight ? in_.weights.typical : 1.0);
        }
        shifted_ = in_.shift && std::any_of(in_.shift, in_.shift + out_.n_leaves * out_.n_outputs,
                                            [](double shift) { return shift != 0.0; });
    }

    // Each stripe of rows has sums of its own; they are integers, so their total does not depend on
    // how many stripes there are.
    template <class Index>
    void run(Index* index) {
        const int64_t n_rows = in_.slopes.n_rows, n_sums = out_.n_leaves * out_.n_outputs;
        const int64_t n_blocks = (n_rows + block_rows - 1) / block_rows;
        const int64_t n_stripes = std::max<int64_t>(
            1, std::min<int64_t>(n_blocks, in_.depth <= byte_depth ? 4 * n_threads_ : n_threads_));
        n_lanes_ = in_.depth <= many_lanes_depth ? lanes : 1;
        std::vector<LeafSum>& sums = out_.sums;
        sums.assign(n_stripes * n_lanes_ * n_sums, LeafSum{});
        parallel_for(n_stripes, n_threads_, [&](int64_t stripe) {
            const int64_t begin = n_blocks * stripe / n_stripes * block_rows;
            const int64_t end = std::min(n_rows, n_blocks * (stripe + 1) / n_stripes * block_rows);
            SlopeTile slopes(in_.slopes, tile);
            for (int64_t at = begin, n = 0; at < end; at += n) {
                n = std::min(in_.row_stride == 1 ? tile : line_end(at), end - at);
                if (!looks_at(at)) continue;
                leaf_indices(in_.columns + at, n_rows, in_.splits, in_.depth, n, index + at);
                add_tile(index + at, at, n, slopes, sums.data() + stripe * n_lanes_ * n_sums);
            }
        });
        for (int64_t part_number = 1; part_number < n_stripes * n_lanes_; ++part_number)
            for (int64_t j = 0; j < n_sums; ++j) {
                const LeafSum& part = sums[part_number * n_sums + j];
                LeafSum& total = sums[j];
                total.gradient += part.gradient;
                total.curvature += part.curvature;
                total.weight += part.weight;
            }
        sums.resize(n_sums);
    }

  private:
    bool looks_at_line(int64_t number) const {
        return number % in_.row_stride == in_.subsample.step % in_.row_stride;
    }
    bool looks_at(int64_t row) const {
        return in_.row_stride == 1 || looks_at_line(in_.slopes.numbers.of(row) / line);
    }
    // Rows from this one to the end of its line, or of what is here of it.
    int64_t line_end(int64_t row) const {
        return in_.slopes.numbers.run(row, line - in_.slopes.numbers.of(row) % line);
    }
    int64_t rows_looked_at(int64_t n_rows) const {
        int64_t rows = 0;
        for (int64_t at = 0; at < n_rows; at += line)
            if (looks_at_line(at / line)) rows += std::min(line, n_rows - at);
        return rows;
    }

    template <class Index>
    void add_tile(const Index* index, int64_t at, int64_t n, SlopeTile& slopes,
                  LeafSum* sums) const {
        int64_t gradient[tile], curvature[tile], weight[tile];
        const double* w = in_.weights.weight ? in_.weights.weight + at : nullptr;
        const int64_t n_outputs = out_.n_outputs;
        if (w) to_fixed(w, n, out_.weight_scale, weight);
        if (shifted_)
            slopes.fill_at(in_.subsample, at, n, [&](int64_t k, int64_t i) {
                return in_.slopes.raw[k * in_.slopes.n_rows + at + i] +
                       in_.shift[index[i] * n_outputs + k];
            });
        else
            slopes.fill(in_.subsample, at, n);
        for (int64_t k = 0; k < n_outputs; ++k) {
            fix(slopes.gradient(k), w, n, out_.gradient_scale, gradient);
            if (out_.newton) fix(slopes.hessian(k), w, n, out_.curvature_scale, curvature);
            LeafSum* to[lanes];
            for (int64_t lane = 0; lane < lanes; ++lane)
                to[lane] = sums + (lane % n_lanes_ * n_outputs + k) * out_.n_leaves;
            for (int64_t i = 0; i < n; ++i) {
                LeafSum& leaf = to[i % lanes][index[i]];
                leaf.gradient += gradient[i];
                leaf.weight += w ? weight[i] : 1;
                if (out_.newton) leaf.curvature += curvature[i];
            }
        }
    }

    const LeafSumsInput& in_;
    LeafSums& out_;
    int n_threads_;
    int64_t n_lanes_ = 1;
    bool shifted_ = false;
};

}  // namespace

void sum_leaves(const LeafSumsInput& input, Workspace& workspace, LeafSums& sums, int n_threads) {
    Summing summing(input, sums, n_threads);
    std::copy_n(input.splits, input.depth, workspace.splits);
    workspace.depth = input.row_stride == 1 ? input.depth : -1;  // not of a part of the rows
    const auto n = static_cast<size_t>(input.slopes.n_rows);
    if (input.depth <= byte_depth) {
        workspace.leaf8.resize(n);
        summing.run(workspace.leaf8.data());
    } else {
        workspace.leaf16.resize(n);
        summing.run(workspace.leaf16.data());
    }
}

}  // namespace sglb
