// Codes of the rows of a sample as a search reads them: row by row, a panel of features at a time.
#pragma once

#include <cstdint>

#include "histogram.h"
#include "partition.h"
#include "search.h"
#include "workspace.h"

namespace sglb {

// Groups whose codes of one row fill a line of cache, and whose histograms of one node a
// first-level cache.
inline constexpr int64_t panel_groups = 8;

class CodePanels {
  public:
    // The codes of all rows as they are, or turned if they are by feature only; those of sampled
    // rows are copied, panel by panel, because they are read several times a tree.
    CodePanels(const SearchInput& input, Workspace& workspace, int n_threads);

    // Codes of a group of features.
    RowCodes group(int64_t group) const {
        return {first_row(group * group_features), stride_, n_rows_ * stride_ > near_bytes};
    }
    // Codes of a feature, in the table by feature if there is one: it takes fewer lines of cache.
    CodeColumn column(int64_t feature) const {
        if (columns_) return {columns_ + feature * n_rows_, 1};
        return {first_row(feature), stride_};
    }

  private:
    static constexpr int64_t panel_features = panel_groups * group_features;
    // Codes of all rows that a second-level cache keeps beside the histograms.
    static constexpr int64_t near_bytes = int64_t{1} << 19;

    const uint8_t* first_row(int64_t feature) const {
        return codes_ + feature / panel_features * panel_size_ + feature % panel_features;
    }
    void copy(const SearchInput& input, Workspace& workspace, int n_threads);
    void copy_rows(const SearchInput& input, uint8_t* to, int64_t begin, int64_t end) const;
    void gather_columns(const SearchInput& input, uint8_t* to, int64_t begin, int64_t end) const;

    const uint8_t* codes_;
    const uint8_t* columns_;  // or null
    int64_t n_rows_, stride_, panel_size_;
};

}  // namespace sglb
