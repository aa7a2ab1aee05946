// Where gradients come from: arrays, or a loss evaluated where they are needed.
//
// A loss costs less to evaluate twice than a gradient costs to write to memory and to read again,
// once there are more rows than a cache holds.
#pragma once

#include <cstdint>

#include "losses.h"
#include "row_numbers.h"

namespace sglb {

struct Slopes {
    int64_t n_rows = 0;
    int64_t n_outputs = 1;
    const double* gradient = nullptr;  // [n_outputs * n_rows], or null for a loss
    const double* hessian = nullptr;   // [n_outputs * n_rows] or null
    LossKernel loss;
    const double* y = nullptr;    // [n_rows]
    const double* raw = nullptr;  // [n_outputs * n_rows]
    bool newton = false;          // second derivatives are wanted too
    RowNumbers numbers;           // of the rows
};

// Bounds of |gradient|, as the estimate from a sample of rows has it, and of second derivatives.
struct SlopeBounds {
    double gradient = 0.0, hessian = 0.0;
};

// Rows kept in an unbiased estimate of the gradient: each with probability `rate`, times 1 / rate.
struct Subsample {
    double rate = 1.0;
    uint64_t seed = 0;
    uint32_t step = 0;
};

// Scratch for the slopes of up to `rows` rows; output k of row i at [k * rows + i].
class SlopeTile {
  public:
    SlopeTile(const Slopes& slopes, int64_t rows);

    // Slopes of rows begin .. begin + n, or of the rows listed. Second derivatives are not sampled:
    // they are a scale, and a leaf without any would jump.
    void fill(const Subsample& sample, int64_t begin, int64_t n);
    // The same of a loss at other raw scores: raw_of(output, i) of row begin + i.
    template <class RawOf>
    void fill_at(const Subsample& sample, int64_t begin, int64_t n, RawOf&& raw_of) {
        raw_.resize(rows_ * slopes_.n_outputs);
        for (int64_t k = 0; k < slopes_.n_outputs; ++k)
            for (int64_t i = 0; i < n; ++i) raw_[k * rows_ + i] = raw_of(k, i);
        evaluate(sample, begin, n, raw_.data(), rows_);
    }
    void gather(const Subsample& sample, const uint32_t* rows, int64_t n);

    const double* gradient(int64_t output) const { return gradient_at_ + output * stride_; }
    const double* hessian(int64_t output) const { return hessian_at_ + output * stride_; }

  private:
    void use_buffers();
    void evaluate(const Subsample& sample, int64_t begin, int64_t n, const double* raw,
                  int64_t raw_stride);
    template <class RowOf>
    void keep(const Subsample& sample, RowOf&& row_of, int64_t n);

    const Slopes& slopes_;
    int64_t rows_;
    std::vector<double> gradient_, hessian_, y_, raw_;
    // Where the last slopes are: in the arrays they come from, or in this tile.
    const double* gradient_at_ = nullptr;
    const double* hessian_at_ = nullptr;
    int64_t stride_ = 0;
};

}  // namespace sglb
