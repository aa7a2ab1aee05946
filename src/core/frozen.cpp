#include "frozen.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "aligned.h"
#include "elementary.h"
#include "parallel.h"

namespace sglb {
namespace {

// Draws that are handled with a fixed number of registers: a batch of `posterior/frozen.py`.
constexpr int64_t batch = 16;

// A run of rows for one thread. Every thread has sums of its own, so there are as many as threads.
struct Run {
    int64_t begin, end;
};

Run run_of(int64_t n_rows, int64_t n_runs, int64_t r) {
    return {n_rows * r / n_runs, n_rows * (r + 1) / n_runs};
}

int64_t runs_of(int64_t n_rows, int n_threads) {
    return std::clamp<int64_t>(n_rows / block_rows, 1, std::max(n_threads, 1));
}

// M draws, known to the compiler where Fixed is not 0.
template <int64_t Fixed>
SGLB_INLINE int64_t count(int64_t n_draws) {
    return Fixed ? Fixed : n_draws;
}

struct SumTask {
    const DrawShape& shape;
    const double* state;
    const double* diagonal;
    const double* factor;
    const int32_t* leaf;
    const double* magic;
};

// sums[leaf] += round(scale * state), scale being one number a row; null for 1.
template <int64_t Fixed>
SGLB_INLINE void sum_diagonal(const SumTask& task, Run run, int64_t k, const double* scale,
                              double* __restrict sums) {
    const int64_t m = count<Fixed>(task.shape.n_draws), n_outputs = task.shape.n_outputs;
    const double* __restrict magic = task.magic;
    const double* state = task.state + k * task.shape.n_rows * m;
    for (int64_t i = run.begin; i < run.end; ++i) {
        const double times = scale ? scale[i] : 1.0;
        const double* __restrict row = state + i * m;
        double* __restrict sum = sums + (task.leaf[i] * n_outputs + k) * m;
        for (int64_t d = 0; d < m; ++d) sum[d] += (times * row[d] + magic[d]) - magic[d];
    }
}

// sums[leaf] += round(diagonal_k * state_k - factor_k * (sum over l of factor_l * state_l)).
template <int64_t Fixed>
SGLB_INLINE void sum_block(const SumTask& task, Run run, double* __restrict mean,
                           double* __restrict sums) {
    const int64_t m = count<Fixed>(task.shape.n_draws), n_outputs = task.shape.n_outputs;
    const int64_t n_rows = task.shape.n_rows;
    const double* __restrict magic = task.magic;
    for (int64_t i = run.begin; i < run.end; ++i) {
        for (int64_t d = 0; d < m; ++d) mean[d] = 0.0;
        for (int64_t k = 0; k < n_outputs; ++k) {
            const double factor = task.factor[k * n_rows + i];
            const double* __restrict row = task.state + (k * n_rows + i) * m;
            for (int64_t d = 0; d < m; ++d) mean[d] += factor * row[d];
        }
        for (int64_t k = 0; k < n_outputs; ++k) {
            const double factor = task.factor[k * n_rows + i];
            const double diagonal = task.diagonal[k * n_rows + i];
            const double* __restrict row = task.state + (k * n_rows + i) * m;
            double* __restrict sum = sums + (task.leaf[i] * n_outputs + k) * m;
            for (int64_t d = 0; d < m; ++d)
                sum[d] += ((diagonal * row[d] - factor * mean[d]) + magic[d]) - magic[d];
        }
    }
}

SGLB_KERNEL void sum_diagonal_batch(const SumTask& task, Run run, int64_t k, const double* scale,
                                    double* sums) {
    sum_diagonal<batch>(task, run, k, scale, sums);
}
SGLB_KERNEL void sum_diagonal_any(const SumTask& task, Run run, int64_t k, const double* scale,
                                  double* sums) {
    sum_diagonal<0>(task, run, k, scale, sums);
}
SGLB_KERNEL void sum_block_batch(const SumTask& task, Run run, double* mean, double* sums) {
    sum_block<batch>(task, run, mean, sums);
}
SGLB_KERNEL void sum_block_any(const SumTask& task, Run run, double* mean, double* sums) {
    sum_block<0>(task, run, mean, sums);
}

// Sums of runs of rows, added up: whole numbers of units, hence the same for any runs.
template <class Sum>
void sum_runs(const DrawShape& shape, int64_t n_leaves, double* sums, int n_threads, Sum&& sum) {
    const int64_t size = n_leaves * shape.n_outputs * shape.n_draws;
    const int64_t n_runs = runs_of(shape.n_rows, n_threads);
    std::vector<AlignedVector<double>> parts(static_cast<size_t>(n_runs));
    parallel_for(n_runs, n_threads, [&](int64_t r) {
        AlignedVector<double>& part = parts[static_cast<size_t>(r)];
        part.assign(static_cast<size_t>(size), 0.0);
        sum(run_of(shape.n_rows, n_runs, r), part.data());
    });
    std::fill_n(sums, size, 0.0);
    for (const AlignedVector<double>& part : parts)
        for (int64_t i = 0; i < size; ++i) sums[i] += part[static_cast<size_t>(i)];
}

struct AdvanceTask {
    const DrawShape& shape;
    const int32_t* leaf;
    const double* values;
    double shrink;
    double* state;
};

template <int64_t Fixed>
SGLB_INLINE void advance_rows(const AdvanceTask& task, Run run, double* __restrict largest) {
    const int64_t m = count<Fixed>(task.shape.n_draws), n_outputs = task.shape.n_outputs;
    const double shrink = task.shrink;
    for (int64_t k = 0; k < n_outputs; ++k)
        for (int64_t i = run.begin; i < run.end; ++i) {
            const double* __restrict value = task.values + (task.leaf[i] * n_outputs + k) * m;
            double* __restrict row = task.state + (k * task.shape.n_rows + i) * m;
            for (int64_t d = 0; d < m; ++d) {
                row[d] = shrink * row[d] + value[d];
                largest[d] = maximum(largest[d], absolute(row[d]));
            }
        }
}

SGLB_KERNEL void advance_batch(const AdvanceTask& task, Run run, double* largest) {
    advance_rows<batch>(task, run, largest);
}
SGLB_KERNEL void advance_any(const AdvanceTask& task, Run run, double* largest) {
    advance_rows<0>(task, run, largest);
}

// Rows that pass while the values of a group of partitions stay in the second cache beside their
// state: 512 KB of state, 256 KB of values of eight trees of 256 leaves.
constexpr int64_t tile_rows = 4096;
constexpr int64_t group = 8;

struct AddTask {
    const DrawShape& shape;
    const PartitionLeaves& rows;
    const double* values;
    double* state;
};

// A batch of draws of a row in registers. Compilers keep an array in memory.
using Batch = double __attribute__((vector_size(batch * sizeof(double))));

SGLB_INLINE void add_values(const double* values, const int64_t* at, int64_t n, double* row) {
    Batch sum, value;
    std::memcpy(&sum, row, sizeof sum);
    for (int64_t t = 0; t < n; ++t) {
        std::memcpy(&value, values + at[t], sizeof value);
        sum += value;
    }
    std::memcpy(row, &sum, sizeof sum);
}

SGLB_KERNEL void add_group(const AddTask& task, Run run, int64_t first, int64_t last) {
    const int64_t m = task.shape.n_draws, n_outputs = task.shape.n_outputs, n = last - first;
    const PartitionLeaves& rows = task.rows;
    for (int64_t k = 0; k < n_outputs; ++k)
        for (int64_t i = run.begin; i < run.end; ++i) {
            int64_t at[group];  // where the values of the row's leaves begin
            for (int64_t t = 0; t < n; ++t) {
                const int64_t leaf = rows.leaves[(first + t) * rows.n_rows + i];
                at[t] = ((rows.first[first + t] + leaf) * n_outputs + k) * m;
            }
            double* row = task.state + (k * task.shape.n_rows + rows.first_row + i) * m;
            if (m == batch) {
                add_values(task.values, at, n, row);
                continue;
            }
            for (int64_t t = 0; t < n; ++t)
                for (int64_t d = 0; d < m; ++d) row[d] += task.values[at[t] + d];
        }
}

SGLB_KERNEL void normals_of(const Stream& stream, uint64_t first, int64_t n, double* out) {
    const Stream copy = stream;  // lets the compiler keep it in registers
    for (int64_t d = 0; d < n; ++d) out[d] = normal_at(copy, first + static_cast<uint64_t>(d));
}

}  // namespace

void sum_curvature(const DrawShape& shape, const double* state, const Curvature& curvature,
                   const RowLeaves& rows, const double* magic, double* sums, int n_threads) {
    if (!curvature.factor && shape.n_outputs == 1)
        return sum_gradient(shape, state, curvature.diagonal, rows, magic, sums, n_threads);
    const SumTask task{shape, state, curvature.diagonal, curvature.factor, rows.leaf, magic};
    sum_runs(shape, rows.n_leaves, sums, n_threads, [&](Run run, double* part) {
        if (curvature.factor) {
            AlignedVector<double> mean(static_cast<size_t>(shape.n_draws));
            const auto sum = shape.n_draws == batch ? sum_block_batch : sum_block_any;
            return sum(task, run, mean.data(), part);
        }
        const auto sum = shape.n_draws == batch ? sum_diagonal_batch : sum_diagonal_any;
        for (int64_t k = 0; k < shape.n_outputs; ++k)
            sum(task, run, k, curvature.diagonal + k * shape.n_rows, part);
    });
}

void sum_gradient(const DrawShape& shape, const double* gradient, const double* weight,
                  const RowLeaves& rows, const double* magic, double* sums, int n_threads) {
    const SumTask task{shape, gradient, nullptr, nullptr, rows.leaf, magic};
    sum_runs(shape, rows.n_leaves, sums, n_threads, [&](Run run, double* part) {
        const auto sum = shape.n_draws == batch ? sum_diagonal_batch : sum_diagonal_any;
        for (int64_t k = 0; k < shape.n_outputs; ++k) sum(task, run, k, weight, part);
    });
}

void advance_draws(const DrawShape& shape, const RowLeaves& rows, const double* values,
                   double shrink, double* state, double* largest, int n_threads) {
    const AdvanceTask task{shape, rows.leaf, values, shrink, state};
    const int64_t n_runs = runs_of(shape.n_rows, n_threads), m = shape.n_draws;
    std::vector<AlignedVector<double>> parts(static_cast<size_t>(n_runs));
    parallel_for(n_runs, n_threads, [&](int64_t r) {
        AlignedVector<double>& part = parts[static_cast<size_t>(r)];
        part.assign(static_cast<size_t>(m), 0.0);
        const auto advance = m == batch ? advance_batch : advance_any;
        advance(task, run_of(shape.n_rows, n_runs, r), part.data());
    });
    std::fill_n(largest, m, 0.0);
    for (const AlignedVector<double>& part : parts)
        for (int64_t d = 0; d < m; ++d)
            largest[d] = maximum(largest[d], part[static_cast<size_t>(d)]);
}

void add_partitions(const DrawShape& shape, const PartitionLeaves& rows, const double* values,
                    double* state, int n_threads) {
    const AddTask task{shape, rows, values, state};
    const int64_t n_tiles =
        std::max((rows.n_rows + tile_rows - 1) / tile_rows, runs_of(rows.n_rows, n_threads));
    parallel_for(n_tiles, n_threads, [&](int64_t number) {
        const Run run = run_of(rows.n_rows, n_tiles, number);
        for (int64_t first = 0; first < rows.n_partitions; first += group)
            add_group(task, run, first, std::min(first + group, rows.n_partitions));
    });
}

void draw_normals(Stream stream, uint32_t first_draw, int64_t n_leaves, int64_t n_outputs,
                  int64_t n_draws, double* out) {
    for (int64_t j = 0; j < n_leaves; ++j)
        for (int64_t k = 0; k < n_outputs; ++k) {
            stream.output = static_cast<uint32_t>(k);
            const uint64_t first = (static_cast<uint64_t>(j) << 32) + first_draw;
            normals_of(stream, first, n_draws, out + (j * n_outputs + k) * n_draws);
        }
}

}  // namespace sglb
