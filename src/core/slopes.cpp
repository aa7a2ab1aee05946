#include "slopes.h"

#include <algorithm>

#include "noise.h"

namespace sglb {

SlopeTile::SlopeTile(const Slopes& slopes, int64_t rows) : slopes_(slopes), rows_(rows) {}

void SlopeTile::fill(const Subsample& sample, int64_t begin, int64_t n) {
    if (slopes_.gradient && !(sample.rate < 1.0)) {
        gradient_at_ = slopes_.gradient + begin;
        hessian_at_ = slopes_.hessian ? slopes_.hessian + begin : nullptr;
        stride_ = slopes_.n_rows;
        return;
    }
    if (!slopes_.gradient) return evaluate(sample, begin, n, slopes_.raw + begin, slopes_.n_rows);
    use_buffers();
    for (int64_t k = 0; k < slopes_.n_outputs; ++k) {
        const int64_t at = k * slopes_.n_rows + begin;
        std::copy_n(slopes_.gradient + at, n, gradient_.data() + k * rows_);
        if (slopes_.hessian) std::copy_n(slopes_.hessian + at, n, hessian_.data() + k * rows_);
    }
    keep(sample, [begin](int64_t i) { return begin + i; }, n);
}

void SlopeTile::evaluate(const Subsample& sample, int64_t begin, int64_t n, const double* raw,
                         int64_t raw_stride) {
    use_buffers();
    slopes_.loss.run({n, raw_stride, rows_, slopes_.n_outputs, slopes_.y + begin, raw,
                      gradient_.data(), slopes_.newton ? hessian_.data() : nullptr});
    keep(sample, [begin](int64_t i) { return begin + i; }, n);
}

void SlopeTile::use_buffers() {
    const auto size = static_cast<size_t>(rows_ * slopes_.n_outputs);
    gradient_.resize(size);
    if (slopes_.hessian || slopes_.newton) hessian_.resize(size);
    gradient_at_ = gradient_.data();
    hessian_at_ = hessian_.data();
    stride_ = rows_;
}

void SlopeTile::gather(const Subsample& sample, const uint32_t* rows, int64_t n) {
    use_buffers();
    if (slopes_.gradient) {
        for (int64_t k = 0; k < slopes_.n_outputs; ++k)
            for (int64_t i = 0; i < n; ++i)
                gradient_[k * rows_ + i] = slopes_.gradient[k * slopes_.n_rows + rows[i]];
        for (int64_t k = 0; slopes_.hessian && k < slopes_.n_outputs; ++k)
            for (int64_t i = 0; i < n; ++i)
                hessian_[k * rows_ + i] = slopes_.hessian[k * slopes_.n_rows + rows[i]];
    } else {
        y_.resize(rows_);
        raw_.resize(gradient_.size());
        for (int64_t i = 0; i < n; ++i) y_[i] = slopes_.y[rows[i]];
        for (int64_t k = 0; k < slopes_.n_outputs; ++k)
            for (int64_t i = 0; i < n; ++i)
                raw_[k * rows_ + i] = slopes_.raw[k * slopes_.n_rows + rows[i]];
        slopes_.loss.run({n, rows_, rows_, slopes_.n_outputs, y_.data(), raw_.data(),
                          gradient_.data(), slopes_.newton ? hessian_.data() : nullptr});
    }
    keep(sample, [rows](int64_t i) { return int64_t{rows[i]}; }, n);
}

template <class RowOf>
void SlopeTile::keep(const Subsample& sample, RowOf&& row_of, int64_t n) {
    if (!(sample.rate < 1.0)) return;
    const Stream stream{sample.seed, sample.step, Role::subsample, 0};
    const double scale = 1.0 / sample.rate;
    for (int64_t i = 0; i < n; ++i) {
        const auto number = static_cast<uint64_t>(slopes_.numbers.of(row_of(i)));
        const bool kept = unit(words_at(stream, number)[0]) < sample.rate;
        for (int64_t k = 0; k < slopes_.n_outputs; ++k)
            gradient_[k * rows_ + i] *= kept ? scale : 0.0;
    }
}

}  // namespace sglb
