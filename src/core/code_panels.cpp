#include "code_panels.h"

#include <algorithm>
#include <cstring>

#include "parallel.h"

namespace sglb {

CodePanels::CodePanels(const SearchInput& input, Workspace& workspace, int n_threads)
    : codes_(input.codes.rows),
      columns_(input.by_row ? input.codes.columns : nullptr),
      n_rows_(input.n_words),
      stride_(input.codes.stride),
      panel_size_(panel_features) {
    if (!input.by_row) copy(input, workspace, n_threads);
}

void CodePanels::copy(const SearchInput& input, Workspace& workspace, int n_threads) {
    const int64_t from_stride = input.codes.stride;
    const int64_t n_panels = (from_stride + panel_features - 1) / panel_features;
    stride_ = std::min(from_stride, panel_features);
    panel_size_ = input.n * stride_;
    workspace.codes.resize(n_panels * panel_size_);
    parallel_rows(input.n, n_threads, [&](int64_t begin, int64_t end) {
        constexpr int64_t ahead = 16;
        for (int64_t i = begin; i < end; ++i) {
            const uint8_t* row = input.codes.rows + input.rows[i] * from_stride;
            __builtin_prefetch(input.codes.rows +
                               input.rows[std::min(i + ahead, end - 1)] * from_stride);
            for (int64_t p = 0; p < n_panels; ++p) {
                uint8_t* to = workspace.codes.data() + p * panel_size_ + i * stride_;
                const uint8_t* from = row + p * stride_;
                const int64_t width = std::min(stride_, from_stride - p * stride_);
                for (int64_t j = 0; j < width; j += group_features)
                    std::memcpy(to + j, from + j, group_features);
            }
        }
    });
    codes_ = workspace.codes.data();
}

}  // namespace sglb
