#include "leaves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "code_trees.h"
#include "noise.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t tile = 512;
// A part of the rows is made of lines of so many: what a line of cache has of a feature's codes.
// The shorter they are the less it matters in which order the rows come.
constexpr int64_t line = 64;
// Neighbouring rows of a leaf would wait for each other's sums: few leaves have several sums each.
constexpr int64_t lanes = 4;
constexpr int many_lanes_depth = 4;
// Newton curvature per weight is at least this share of its mean over all rows:
// a leaf of saturated rows must not take an unbounded step.
constexpr double least_curvature = 1e-3;
// A leaf takes a step on a part of the rows where these know enough: with the curvature of so many
// rows of the largest one and of typical weight. For the logistic loss that is 16, and the standard
// error of the step 1/4. A leaf that a part without any positives would lead astray soon has less.
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

// The power of two that uses as much of 62 bits as sums over n rows of numbers
// up to `bound` allow.
double fixed_scale(double bound, int64_t n) {
    if (!(bound > 0.0)) return 0.0;
    const int bits = std::min(50, 62 - static_cast<int>(std::bit_width(static_cast<uint64_t>(n))));
    return std::ldexp(1.0, std::min(1000, bits - std::ilogb(bound) - 1));
}

// Sums of one leaf and output.
struct Sums {
    int64_t gradient = 0, curvature = 0, weight = 0;
};

class LeafFit {
  public:
    LeafFit(const LeafInput& input, const Approach* approach, int n_threads)
        : in_(input), approach_(approach), n_threads_(n_threads), l2_(input.l2) {
        newton_ = in_.slopes.hessian || in_.slopes.newton;
        n_leaves_ = int64_t{1} << in_.depth;
        const double weight = in_.weight ? in_.largest_weight : 1.0;
        gradient_scale_ = fixed_scale(in_.largest_gradient * weight, in_.slopes.n_rows);
        hessian_scale_ = fixed_scale(in_.largest_hessian * weight, in_.slopes.n_rows);
        weight_scale_ = in_.weight ? fixed_scale(weight, in_.slopes.n_rows) : 1.0;
        moved_ = approach_ && !in_.slopes.gradient &&
                 std::any_of(approach_->sum, approach_->sum + n_leaves_ * in_.slopes.n_outputs,
                             [](double sum) { return sum != 0.0; });
        if (in_.every > 1) {
            share_ = static_cast<double>(rows_looked_at()) / static_cast<double>(in_.slopes.n_rows);
            l2_ *= share_;
            least_sum_ =
                least_part_rows * in_.largest_hessian * (in_.weight ? in_.typical_weight : 1.0);
        }
    }

    template <class Index>
    void run(Index* index, double* raw, double* values, double* gains) {
        sum<Index>(index);
        fill_values(values);
        if (gains) fill_gains(gains);
        const std::vector<double> steps =
            with_offset(values, n_leaves_, in_.slopes.n_outputs, in_.shrink, in_.offset);
        parallel_rows(in_.slopes.n_rows, n_threads_, [&](int64_t begin, int64_t end) {
            for (int64_t k = 0; k < in_.slopes.n_outputs; ++k)
                add_values(index + begin, end - begin, steps.data() + k, in_.slopes.n_outputs,
                           in_.shrink, raw + k * in_.slopes.n_rows + begin);
        });
    }

    template <class Index>
    void look_ahead(Index* index, const double* raw, double* ahead, double* gains) {
        sum<Index>(index);
        advance();
        if (gains) fill_gains(gains);
        if (!ahead) return;
        const int64_t n_outputs = in_.slopes.n_outputs, n_rows = in_.slopes.n_rows;
        parallel_rows(n_rows, n_threads_, [&](int64_t begin, int64_t end) {
            for (int64_t k = 0; k < n_outputs; ++k)
                for (int64_t i = begin; i < end; ++i)
                    ahead[k * n_rows + i] =
                        raw[k * n_rows + i] + approach_->sum[index[i] * n_outputs + k];
        });
    }

  private:
    bool looks_at(int64_t line_number) const {
        return in_.every == 1 || line_number % in_.every == in_.step % in_.every;
    }

    int64_t rows_looked_at() const {
        int64_t rows = 0;
        for (int64_t at = 0; at < in_.slopes.n_rows; at += line)
            if (looks_at(at / line)) rows += std::min(line, in_.slopes.n_rows - at);
        return rows;
    }

    // Each stripe of rows has sums of its own; they are integers, so their total
    // does not depend on how many stripes there are.
    template <class Index>
    void sum(Index* index) {
        const int64_t n_sums = n_leaves_ * in_.slopes.n_outputs;
        const int64_t n_blocks = (in_.slopes.n_rows + block_rows - 1) / block_rows;
        const int64_t n_stripes = std::max<int64_t>(
            1, std::min<int64_t>(n_blocks, in_.depth <= byte_depth ? 4 * n_threads_ : n_threads_));
        n_lanes_ = in_.depth <= many_lanes_depth ? lanes : 1;
        sums_.assign(static_cast<size_t>(n_stripes * n_lanes_ * n_sums), Sums{});
        parallel_for(n_stripes, n_threads_, [&](int64_t stripe) {
            const int64_t begin = n_blocks * stripe / n_stripes * block_rows;
            const int64_t end =
                std::min(in_.slopes.n_rows, n_blocks * (stripe + 1) / n_stripes * block_rows);
            SlopeTile slopes(in_.slopes, tile);
            const int64_t size = in_.every == 1 ? tile : line;
            for (int64_t at = begin; at < end; at += size) {
                if (!looks_at(at / line)) continue;
                const int64_t n = std::min(size, end - at);
                leaf_indices(in_.columns, in_.slopes.n_rows, in_.splits, in_.depth, at, at + n,
                             index + at);
                add_tile(index + at, at, n, slopes, sums_.data() + stripe * n_lanes_ * n_sums);
            }
        });
        for (int64_t part_number = 1; part_number < n_stripes * n_lanes_; ++part_number)
            for (int64_t j = 0; j < n_sums; ++j) {
                const Sums& part = sums_[static_cast<size_t>(part_number * n_sums + j)];
                Sums& total = sums_[static_cast<size_t>(j)];
                total.gradient += part.gradient;
                total.curvature += part.curvature;
                total.weight += part.weight;
            }
    }

    template <class Index>
    void add_tile(const Index* index, int64_t at, int64_t n, SlopeTile& slopes, Sums* sums) const {
        int64_t gradient[tile], curvature[tile], weight[tile];
        const double* w = in_.weight ? in_.weight + at : nullptr;
        if (w) to_fixed(w, n, weight_scale_, weight);
        if (moved_) {
            const int64_t n_outputs = in_.slopes.n_outputs;
            slopes.fill_at(in_.sample, at, n, [&](int64_t k, int64_t i) {
                return in_.slopes.raw[k * in_.slopes.n_rows + at + i] +
                       approach_->sum[index[i] * n_outputs + k];
            });
        } else {
            slopes.fill(in_.sample, at, n);
        }
        for (int64_t k = 0; k < in_.slopes.n_outputs; ++k) {
            fix(slopes.gradient(k), w, n, gradient_scale_, gradient);
            if (newton_) fix(slopes.hessian(k), w, n, hessian_scale_, curvature);
            Sums* to[lanes];
            for (int64_t lane = 0; lane < lanes; ++lane)
                to[lane] = sums + (lane % n_lanes_ * in_.slopes.n_outputs + k) * n_leaves_;
            for (int64_t i = 0; i < n; ++i) {
                Sums& leaf = to[i % lanes][index[i]];
                leaf.gradient += gradient[i];
                leaf.weight += w ? weight[i] : 1;
                if (newton_) leaf.curvature += curvature[i];
            }
        }
    }

    static void fix(const double* x, const double* w, int64_t n, double scale, int64_t* out) {
        if (w)
            to_fixed_weighted(x, w, n, scale, out);
        else
            to_fixed(x, n, scale, out);
    }

    // visit(place, sums, curvature, leaf) for the leaves of every output that have weight.
    template <class Visit>
    void each_leaf(Visit&& visit) const {
        for (int64_t k = 0; k < in_.slopes.n_outputs; ++k) {
            const Sums* sums = sums_.data() + k * n_leaves_;
            int64_t curvature = 0, weight = 0;
            for (int64_t j = 0; j < n_leaves_; ++j) {
                curvature += sums[j].curvature;
                weight += sums[j].weight;
            }
            const double least = least_curvature * unscale(curvature, hessian_scale_) /
                                 unscale(weight, weight_scale_);
            for (int64_t j = 0; j < n_leaves_; ++j)
                if (sums[j].weight != 0)
                    visit(j * in_.slopes.n_outputs + k, sums[j], curvature_of(sums[j], least), j);
        }
    }

    void fill_values(double* values) const {
        std::fill_n(values, n_leaves_ * in_.slopes.n_outputs, 0.0);
        each_leaf([&](int64_t place, const Sums& sums, double curvature, int64_t leaf) {
            double gradient = unscale(sums.gradient, gradient_scale_);
            double start = 0.0;
            if (approach_ && has_moved(place)) {
                start = approach_->sum[place] + next_step(place, gradient, curvature);
                gradient = 0.0;
                curvature = approach_->bend[place] * weight_of(sums) + in_.l2;
            } else {
                const double most = in_.reach * std::max(1.0, 0.5 / in_.learning_rate) * curvature;
                gradient = std::clamp(gradient, -most, most);
            }
            if (in_.sigma > 0.0) {
                const auto output = static_cast<uint32_t>(place % in_.slopes.n_outputs);
                const Stream stream{in_.seed, in_.step, Role::leaf, output};
                gradient += in_.sigma * std::sqrt(curvature) *
                            normal_at(stream, static_cast<uint64_t>(leaf));
            }
            values[place] = in_.learning_rate * (start - gradient / curvature);
        });
    }

    void advance() const {
        each_leaf([&](int64_t place, const Sums& sums, double curvature, int64_t) {
            if (unscale(sums.curvature, hessian_scale_) < least_sum_) return;
            const double gradient = unscale(sums.gradient, gradient_scale_);
            const double step = next_step(place, gradient, curvature);
            if (!has_moved(place)) approach_->bend[place] = (curvature - l2_) / weight_of(sums);
            approach_->sum[place] += step;
            approach_->last[place] = step;
        });
    }

    bool has_moved(int64_t place) const { return approach_->bend[place] > 0.0; }
    double weight_of(const Sums& sums) const { return unscale(sums.weight, weight_scale_); }

    // A Newton step never longer than the one before, and at most half as long where it turns back:
    // where curvature falls faster than the gradient, steps would grow and miss the minimum for
    // ever.
    double next_step(int64_t place, double gradient, double curvature) const {
        const double last = approach_->last[place];
        const double step = -(gradient + l2_ * approach_->sum[place]) / curvature;
        const double most = std::abs((step < 0.0) == (last < 0.0) ? last : 0.5 * last);
        return std::clamp(step, -std::min(most, in_.reach), std::min(most, in_.reach));
    }

    // gains[d] = what split d adds to the sum over nodes of G^2 / (W + l2), on all rows, or as a
    // part of them tells, and without noise. Leaves that differ in the last split alone are halves
    // of one node of the level above.
    void fill_gains(double* gains) const {
        std::fill(gains, gains + in_.depth, 0.0);
        for (int64_t k = 0; k < in_.slopes.n_outputs; ++k) {
            std::vector<Sums> nodes(sums_.begin() + k * n_leaves_,
                                    sums_.begin() + (k + 1) * n_leaves_);
            double below = score(nodes);
            for (int d = in_.depth - 1; d >= 0; --d) {
                const size_t half = size_t{1} << d;
                for (size_t j = 0; j < half; ++j) {
                    nodes[j].gradient += nodes[j + half].gradient;
                    nodes[j].weight += nodes[j + half].weight;
                }
                nodes.resize(half);
                const double above = score(nodes);
                gains[d] += (below - above) / share_;
                below = above;
            }
        }
    }

    double score(const std::vector<Sums>& nodes) const {
        double total = 0.0;
        for (const Sums& node : nodes) {
            const double g = unscale(node.gradient, gradient_scale_);
            if (node.weight != 0) total += g * g / (weight_of(node) + l2_);
        }
        return total;
    }

    static double unscale(int64_t sum, double scale) {
        return scale > 0.0 ? static_cast<double>(sum) / scale : 0.0;
    }

    double curvature_of(const Sums& sums, double least) const {
        const double weight = weight_of(sums);
        const double curvature =
            l2_ +
            (newton_ ? std::max(unscale(sums.curvature, hessian_scale_), least * weight) : weight);
        // No row has any curvature: a gradient step is all there is.
        return curvature > 0.0 ? curvature : weight;
    }

    const LeafInput& in_;
    const Approach* approach_;
    int n_threads_;
    bool newton_;
    bool moved_;  // the loss is wanted elsewhere than at the raw scores
    int64_t n_leaves_, n_lanes_ = 1;
    double gradient_scale_, hessian_scale_, weight_scale_;
    double share_ = 1.0;      // of the rows that are looked at
    double l2_;               // its share for those
    double least_sum_ = 0.0;  // of second derivatives in a leaf that takes a step
    std::vector<Sums> sums_;
};

// call(index), with room for a leaf index of every row.
template <class Call>
void with_indices(const LeafInput& input, Workspace& workspace, Call&& call) {
    const auto n = static_cast<size_t>(input.slopes.n_rows);
    if (input.depth <= byte_depth) {
        workspace.leaf8.resize(n);
        call(workspace.leaf8.data());
    } else {
        workspace.leaf16.resize(n);
        call(workspace.leaf16.data());
    }
}

}  // namespace

void fit_leaves(const LeafInput& input, const Approach* approach, Workspace& workspace, double* raw,
                double* values, double* gains, int n_threads) {
    LeafFit fit(input, approach, n_threads);
    with_indices(input, workspace, [&](auto* index) { fit.run(index, raw, values, gains); });
}

void approach_leaves(const LeafInput& input, const Approach& approach, Workspace& workspace,
                     const double* raw, double* ahead, double* gains, int n_threads) {
    LeafFit fit(input, &approach, n_threads);
    with_indices(input, workspace, [&](auto* index) { fit.look_ahead(index, raw, ahead, gains); });
}

double largest(const double* x, int64_t n, int n_threads) {
    const int64_t n_blocks = (n + block_rows - 1) / block_rows;
    std::vector<double> found(static_cast<size_t>(n_blocks), 0.0);
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        double most = 0.0;
        double poison = 0.0;  // 0 * x is NaN for infinite and NaN x
        for (int64_t i = begin; i < end; ++i) {
            most = maximum(most, absolute(x[i]));
            poison += 0.0 * x[i];
        }
        found[static_cast<size_t>(begin / block_rows)] =
            poison == 0.0 ? most : std::numeric_limits<double>::infinity();
    });
    double most = 0.0;
    for (const double value : found) most = maximum(most, value);
    return most;
}

}  // namespace sglb
