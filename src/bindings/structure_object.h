// The splits of one oblivious tree as one Python object: checked once, handed from kernel to
// kernel.
#pragma once

#include "arrays.h"
#include "split.h"

namespace sglb::bindings {

struct StructureObject {
    int depth = 0;
    Split splits[most_depth];

    StructureObject() = default;
    StructureObject(const In<int32_t, 1>& features, const In<uint8_t, 1>& lows,
                    const In<uint8_t, 1>& highs) {
        const size_t n = features.shape(0);
        require(lows.shape(0) == n && highs.shape(0) == n && n <= most_depth,
                "features, lows, highs must have one length, at most 16");
        read(features.data(), lows.data(), highs.data(), static_cast<int>(n));
    }

    void read(const int32_t* features, const uint8_t* lows, const uint8_t* highs, int n) {
        depth = n;
        for (int d = 0; d < n; ++d) splits[d] = {features[d], lows[d], highs[d]};
    }

    size_t n_leaves() const { return size_t{1} << depth; }

    // A structure may have been made for other columns than those it is to be used on.
    void check_features(int64_t n_features) const {
        for (int d = 0; d < depth; ++d)
            require(splits[d].feature >= 0 && splits[d].feature < n_features,
                    "feature out of range");
    }
};

}  // namespace sglb::bindings
