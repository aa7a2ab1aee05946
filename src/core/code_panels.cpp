#include "code_panels.h"

#include <algorithm>
#include <cstring>

#include "bins.h"
#include "parallel.h"

namespace sglb {

CodePanels::CodePanels(const SearchInput& input, Workspace& workspace, int n_threads)
    : codes_(input.codes.rows),
      columns_(input.by_row ? input.codes.columns : nullptr),
      n_rows_(input.n_words),
      stride_(input.codes.stride),
      panel_size_(panel_features) {
    if (!input.by_row) {
        copy(input, workspace, n_threads);
    } else if (!codes_) {
        workspace.codes.resize(n_rows_ * stride_);
        to_rows(columns_, input.codes.n_features, n_rows_, stride_, workspace.codes.data(),
                n_threads);
        codes_ = workspace.codes.data();
    }
}

void CodePanels::copy(const SearchInput& input, Workspace& workspace, int n_threads) {
    stride_ = std::min(input.codes.stride, panel_features);
    panel_size_ = input.n * stride_;
    workspace.codes.resize((input.codes.stride + panel_features - 1) / panel_features *
                           panel_size_);
    uint8_t* to = workspace.codes.data();
    parallel_rows(input.n, n_threads, [&](int64_t begin, int64_t end) {
        if (input.codes.rows)
            copy_rows(input, to, begin, end);
        else
            gather_columns(input, to, begin, end);
    });
    codes_ = to;
}

void CodePanels::copy_rows(const SearchInput& input, uint8_t* to, int64_t begin,
                           int64_t end) const {
    constexpr int64_t ahead = 16;
    const int64_t from_stride = input.codes.stride;
    for (int64_t i = begin; i < end; ++i) {
        const uint8_t* row = input.codes.rows + input.rows[i] * from_stride;
        __builtin_prefetch(input.codes.rows +
                           input.rows[std::min(i + ahead, end - 1)] * from_stride);
        for (int64_t at = 0; at < from_stride; at += stride_) {
            uint8_t* out = to + at / panel_features * panel_size_ + i * stride_;
            const int64_t width = std::min(stride_, from_stride - at);
            for (int64_t j = 0; j < width; j += group_features)
                std::memcpy(out + j, row + at + j, group_features);
        }
    }
}

// A feature at a time: rows never fall, so that what a page of memory has is read together.
void CodePanels::gather_columns(const SearchInput& input, uint8_t* to, int64_t begin,
                                int64_t end) const {
    for (int64_t feature = 0; feature < input.codes.stride; ++feature) {
        uint8_t* out = to + feature / panel_features * panel_size_ + feature % panel_features;
        if (feature >= input.codes.n_features) {
            for (int64_t i = begin; i < end; ++i) out[i * stride_] = 0;
            continue;
        }
        const uint8_t* column = input.codes.columns + feature * input.codes.n_rows;
        for (int64_t i = begin; i < end; ++i) out[i * stride_] = column[input.rows[i]];
    }
}

}  // namespace sglb
