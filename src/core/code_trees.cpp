#include "code_trees.h"

#include <algorithm>

#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

constexpr int64_t tile = 512;

}  // namespace

// Bytes throughout: vectors have no shift of bytes.
SGLB_KERNEL void leaf_indices(const uint8_t* codes, int64_t stride, const Split* splits, int depth,
                              int64_t n, uint8_t* __restrict index) {
    for (int64_t i = 0; i < n; ++i) index[i] = 0;
    for (int d = 0; d < depth; ++d) {
        const uint8_t* __restrict column = codes + splits[d].feature * stride;
        const uint8_t low = splits[d].low;
        const auto span = static_cast<uint8_t>(splits[d].high - splits[d].low);
        const auto bit = static_cast<uint8_t>(1 << d);
        for (int64_t i = 0; i < n; ++i) {
            const auto offset = static_cast<uint8_t>(column[i] - low);
            index[i] = static_cast<uint8_t>(index[i] | (offset > span ? bit : 0));
        }
        // Keeps the compiler from joining the loops over splits, which would cost the vectors.
        asm volatile("" ::: "memory");
    }
}

void leaf_indices(const uint8_t* codes, int64_t stride, const Split* splits, int depth, int64_t n,
                  uint16_t* index) {
    uint8_t low[tile], high[tile];
    const int low_depth = std::min(depth, byte_depth);
    for (int64_t at = 0; at < n; at += tile) {
        const int64_t count = std::min(tile, n - at);
        leaf_indices(codes + at, stride, splits, low_depth, count, low);
        leaf_indices(codes + at, stride, splits + low_depth, depth - low_depth, count, high);
        for (int64_t i = 0; i < count; ++i)
            index[at + i] = static_cast<uint16_t>(low[i] | high[i] << 8);
    }
}

namespace {

SGLB_KERNEL void widen(const uint8_t* low, const uint8_t* high, int64_t n,
                       int32_t* __restrict index) {
    for (int64_t i = 0; i < n; ++i) index[i] = low[i] | high[i] << 8;
}

SGLB_KERNEL void widen(const uint8_t* low, int64_t n, int32_t* __restrict index) {
    for (int64_t i = 0; i < n; ++i) index[i] = low[i];
}

}  // namespace

void leaf_indices(const uint8_t* codes, int64_t stride, const Split* splits, int depth, int64_t n,
                  int32_t* index) {
    uint8_t low[tile], high[tile];
    const int low_depth = std::min(depth, byte_depth);
    for (int64_t at = 0; at < n; at += tile) {
        const int64_t count = std::min(tile, n - at);
        leaf_indices(codes + at, stride, splits, low_depth, count, low);
        if (depth <= byte_depth) {
            widen(low, count, index + at);
            continue;
        }
        leaf_indices(codes + at, stride, splits + low_depth, depth - low_depth, count, high);
        widen(low, high, count, index + at);
    }
}

namespace {

// Moves the state of some rows whose leaves are known.
class Mover {
  public:
    explicit Mover(const Step& step) : step_(step), size_(step.transition.size) {
        const int64_t n_leaves = int64_t{1} << step.depth, n_outputs = step.n_outputs;
        const Transition& by = step.transition;
        // Raw scores hold the offset, which never moves. With e the first unit vector,
        //
        //     C (raw e - offset e) + offset e + b value = C raw e + (b value + (e - C e) offset)
        //
        // in the first column; the brackets of all leaves are computed once.
        added_.resize(size_ * n_leaves * n_outputs);
        for (int64_t i = 0; i < size_; ++i) {
            const double kept = (i == 0 ? 1.0 : 0.0) - by.C[i * size_];
            const double gain = by.b[i];
            double* added = added_.data() + i * n_leaves * n_outputs;
            for (int64_t j = 0; j < n_leaves; ++j)
                for (int64_t k = 0; k < n_outputs; ++k)
                    added[j * n_outputs + k] =
                        gain * step.values[j * n_outputs + k] + kept * step.offset[k];
        }
    }

    // Rows begin .. begin + n.
    template <class Index>
    void run(const Index* index, int64_t begin, int64_t n, double* state) const {
        for (int64_t k = 0; k < step_.n_outputs; ++k)
            if (size_ == 1)
                move_one(index, n, k, state + k * step_.n_rows + begin);
            else if (size_ == 2)
                move_two(index, n, k, state + k * step_.n_rows + begin);
            else
                move_all(index, n, k, state + k * step_.n_rows + begin);
    }

  private:
    template <class Index>
    void move_one(const Index* index, int64_t n, int64_t k, double* raw) const {
        const double shrink = step_.transition.C[0];
        const double* added = added_.data() + k;
        for (int64_t i = 0; i < n; ++i)
            raw[i] = shrink * raw[i] + added[index[i] * step_.n_outputs];
    }

    // Momentum, with the sums of `move_all` in its order.
    template <class Index>
    void move_two(const Index* index, int64_t n, int64_t k, double* __restrict raw) const {
        const std::vector<double>& C = step_.transition.C;
        const double c00 = C[0], c01 = C[1], c10 = C[2], c11 = C[3];
        double* __restrict velocity = raw + step_.n_outputs * step_.n_rows;
        const double* added = added_.data() + k;
        const double* added_velocity = added + (int64_t{1} << step_.depth) * step_.n_outputs;
        for (int64_t row = 0; row < n; ++row) {
            const int64_t leaf = index[row] * step_.n_outputs;
            const double f = raw[row], v = velocity[row];
            raw[row] = 0.0 + c00 * f + c01 * v + added[leaf];
            velocity[row] = 0.0 + c10 * f + c11 * v + added_velocity[leaf];
        }
    }

    template <class Index>
    void move_all(const Index* index, int64_t n, int64_t k, double* raw) const {
        const int64_t part = step_.n_outputs * step_.n_rows;
        const int64_t n_values = (int64_t{1} << step_.depth) * step_.n_outputs;
        std::vector<double> moved(static_cast<size_t>(size_));
        for (int64_t row = 0; row < n; ++row) {
            for (int64_t i = 0; i < size_; ++i) {
                double sum = 0.0;
                for (int64_t j = 0; j < size_; ++j)
                    sum += step_.transition.C[i * size_ + j] * raw[j * part + row];
                moved[i] = sum + added_[i * n_values + index[row] * step_.n_outputs + k];
            }
            for (int64_t i = 0; i < size_; ++i) raw[i * part + row] = moved[i];
        }
    }

    const Step& step_;
    int64_t size_;
    std::vector<double> added_;  // [size * 2^depth * n_outputs]
};

}  // namespace

void advance(const uint8_t* columns, const Step& step, double* state, int n_threads) {
    const Mover mover(step);
    parallel_rows(step.n_rows, n_threads, [&](int64_t begin, int64_t end) {
        uint16_t index[tile];
        for (int64_t at = begin; at < end; at += tile) {
            const int64_t n = std::min(tile, end - at);
            leaf_indices(columns + at, step.n_rows, step.splits, step.depth, n, index);
            mover.run(index, at, n, state);
        }
    });
}

void advance(const uint8_t* columns, const Step& step, const Workspace& workspace, double* state,
             int n_threads) {
    if (workspace.depth != step.depth ||
        !std::equal(step.splits, step.splits + step.depth, workspace.splits))
        return advance(columns, step, state, n_threads);
    const Mover mover(step);
    parallel_rows(step.n_rows, n_threads, [&](int64_t begin, int64_t end) {
        if (step.depth <= byte_depth)
            mover.run(workspace.leaf8.data() + begin, begin, end - begin, state);
        else
            mover.run(workspace.leaf16.data() + begin, begin, end - begin, state);
    });
}

}  // namespace sglb
