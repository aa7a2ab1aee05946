#include "leaf_values.h"

#include <algorithm>
#include <cmath>

#include "noise.h"

namespace sglb {
namespace {

// Newton curvature per weight is at least this share of its mean over all rows: a leaf of saturated
// rows must not take an unbounded step.
constexpr double least_curvature = 1e-3;

class Leaves {
  public:
    Leaves(const LeafSums& sums, const LeafRule& rule)
        : sums_(sums), rule_(rule), l2_(rule.l2 * sums.share) {}

    // visit(index, sum, curvature, leaf) for the leaves of every output that have weight.
    template <class Visit>
    void each(Visit&& visit) const {
        for (int64_t k = 0; k < sums_.n_outputs; ++k) {
            const LeafSum* leaves = sums_.sums.data() + k * sums_.n_leaves;
            LeafSum all;
            for (int64_t j = 0; j < sums_.n_leaves; ++j) {
                all.curvature += leaves[j].curvature;
                all.weight += leaves[j].weight;
            }
            const double least = least_curvature * sums_.curvature(all) / sums_.weight(all);
            for (int64_t j = 0; j < sums_.n_leaves; ++j)
                if (leaves[j].weight != 0)
                    visit(j * sums_.n_outputs + k, leaves[j], curvature(leaves[j], least), j);
        }
    }

    // A Newton step never longer than the one before, and at most half as long where it turns back:
    // where curvature falls faster than the gradient, steps would grow and miss the minimum for
    // ever.
    double next_step(const NewtonPath& path, int64_t index, double gradient,
                     double curvature) const {
        const double last = path.last[index];
        const double step = -(gradient + l2_ * path.sum[index]) / curvature;
        const double most = std::abs((step < 0.0) == (last < 0.0) ? last : 0.5 * last);
        const double longest = std::min(most, rule_.trust_radius);
        return std::clamp(step, -longest, longest);
    }

    double l2() const { return l2_; }

  private:
    double curvature(const LeafSum& sum, double least) const {
        const double weight = sums_.weight(sum);
        const double curvature =
            l2_ + (sums_.newton ? std::max(sums_.curvature(sum), least * weight) : weight);
        // No row has any curvature: a gradient step is all there is.
        return curvature > 0.0 ? curvature : weight;
    }

    const LeafSums& sums_;
    const LeafRule& rule_;
    double l2_;  // its share for the rows that were looked at
};

bool has_moved(const NewtonPath& path, int64_t index) { return path.curvature[index] > 0.0; }

}  // namespace

void leaf_values(const LeafSums& sums, const LeafRule& rule, const LeafMove& move,
                 const NewtonPath* path, double* values) {
    std::fill_n(values, sums.n_leaves * sums.n_outputs, 0.0);
    const Leaves leaves(sums, rule);
    leaves.each([&](int64_t index, const LeafSum& sum, double curvature, int64_t leaf) {
        double gradient = sums.gradient(sum);
        double start = 0.0;
        if (path && has_moved(*path, index)) {
            start = path->sum[index] + leaves.next_step(*path, index, gradient, curvature);
            gradient = 0.0;
            curvature = path->curvature[index] * sums.weight(sum) + rule.l2;
        } else {
            const double most =
                rule.trust_radius * std::max(1.0, 0.5 / move.learning_rate) * curvature;
            gradient = std::clamp(gradient, -most, most);
        }
        if (move.noise > 0.0) {
            const auto output = static_cast<uint32_t>(index % sums.n_outputs);
            const Stream stream{move.seed, move.step, Role::leaf, output};
            gradient +=
                move.noise * std::sqrt(curvature) * normal_at(stream, static_cast<uint64_t>(leaf));
        }
        values[index] = move.learning_rate * (start - gradient / curvature);
    });
}

void advance_path(const LeafSums& sums, const LeafRule& rule, const NewtonPath& path) {
    const Leaves leaves(sums, rule);
    leaves.each([&](int64_t index, const LeafSum& sum, double curvature, int64_t) {
        if (sums.curvature(sum) < sums.least_curvature) return;
        const double step = leaves.next_step(path, index, sums.gradient(sum), curvature);
        if (!has_moved(path, index))
            path.curvature[index] = (curvature - leaves.l2()) / sums.weight(sum);
        path.sum[index] += step;
        path.last[index] = step;
    });
}

// Leaves that differ in the last split alone are halves of one node of the level above.
void split_gains(const LeafSums& sums, double l2, double* gains) {
    const double l2_share = l2 * sums.share;
    const auto score = [&](const std::vector<LeafSum>& nodes) {
        double total = 0.0;
        for (const LeafSum& node : nodes) {
            const double gradient = sums.gradient(node);
            if (node.weight != 0) total += gradient * gradient / (sums.weight(node) + l2_share);
        }
        return total;
    };
    int depth = 0;
    while (int64_t{1} << depth < sums.n_leaves) ++depth;
    std::fill_n(gains, depth, 0.0);
    for (int64_t k = 0; k < sums.n_outputs; ++k) {
        std::vector<LeafSum> nodes(sums.sums.begin() + k * sums.n_leaves,
                                   sums.sums.begin() + (k + 1) * sums.n_leaves);
        double below = score(nodes);
        for (int d = depth - 1; d >= 0; --d) {
            const size_t half = size_t{1} << d;
            for (size_t j = 0; j < half; ++j) {
                nodes[j].gradient += nodes[j + half].gradient;
                nodes[j].weight += nodes[j + half].weight;
            }
            nodes.resize(half);
            const double above = score(nodes);
            gains[d] += (below - above) / sums.share;
            below = above;
        }
    }
}

}  // namespace sglb
