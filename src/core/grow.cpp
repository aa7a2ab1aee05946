#include "grow.h"

#include <algorithm>
#include <numeric>

#include "outputs.h"

namespace sglb {
namespace {

// The rows to search on: all there are, all of the range, or a draw; where all were looked at for
// it, those that were not drawn stand for none.
StructureRows choose_rows(const GrowInput& in, Draw& draw, int n_threads) {
    const int64_t n_rows = in.end - in.begin;
    if (in.n_structure_rows >= n_rows) {
        if (n_rows == in.slopes.n_rows) return {nullptr, nullptr, n_rows};
        draw.rows.resize(static_cast<size_t>(n_rows));
        std::iota(draw.rows.begin(), draw.rows.end(), static_cast<uint32_t>(in.begin));
        return {draw.rows.data(), nullptr, n_rows};
    }
    draw_rows({in.slopes, in.sample, in.weights, in.sigma, in.begin, in.end, in.n_structure_rows,
               in.rule.seed, in.rule.step},
              draw, n_threads);
    if (draw.dense) return {nullptr, draw.lift.data(), n_rows, draw.mu, draw.floor};
    return {draw.rows.data(), draw.lift.data(), static_cast<int64_t>(draw.rows.size()), draw.mu,
            draw.floor};
}

}  // namespace

int grow(const GrowInput& in, Workspace& workspace, Split* splits, int n_threads) {
    if (in.begin >= in.end || in.n_structure_rows == 0) return 0;
    workspace.draw.share = 1.0;
    workspace.draw.dense = false;
    const StructureRows rows = choose_rows(in, workspace.draw, n_threads);
    QuantiseInput input{in.slopes,    in.sample,           in.weights,         rows,
                        in.sigma,     in.largest_gradient, in.largest_hessian, in.newton,
                        in.rule.seed, in.rule.step};
    const Scales scales = quantise_scales(input);
    if (in.n_structure_outputs < in.slopes.n_outputs) {
        draw_outputs(input, scales, in.n_structure_outputs, workspace.outputs);
        input.outputs = workspace.outputs;
    }
    workspace.words.resize(static_cast<size_t>(rows.n * input.n_words()));
    quantise(input, scales, workspace.words.data(), n_threads);
    // Sums over a share of the rows are regularised by that share of l2.
    const double share = static_cast<double>(in.end - in.begin) /
                         static_cast<double>(in.slopes.n_rows) * workspace.draw.share;
    SearchRule scaled = in.rule;
    scaled.l2 = in.rule.l2 / scales.unit * scales.mass * share;
    SearchInput task{
        in.codes, workspace.words.data(), rows.n, input.n_words(), rows.rows, rows.n, !rows.rows,
        scaled};
    if (workspace.draw.dense) {
        task.rows = workspace.draw.rows.data();
        task.n = static_cast<int64_t>(workspace.draw.rows.size());
    }
    return search(task, workspace, splits, n_threads);
}

}  // namespace sglb
