// YetiRank (Gulin, Kuralenok and Pavlov, 2011) and YetiLoss (Lyzhin et al., 2023).
//
// Scores get noise and are sorted; each two neighbours at places q and q + 1 are a pair that costs
// |J_q| log(1 + e^(-(z_i - z_j))), i the document of more gain and z the scores without noise. J_q
// is what their swap does to the metric (`RankingMetric`); metric "decay" makes it YetiRank. The
// loss is the mean over several orders. The weights depend on the scores but are not
// differentiated, so that this is no gradient of any loss.
#pragma once

#include <cstdint>

#include "noise.h"
#include "ranking_pairs.h"

namespace sglb {

// Noise of a score, u being uniform: power * log(u / (1 - u)) or power * -log(-log(u)).
enum class ShuffleNoise { logistic, gumbel };

struct Shuffles {
    ShuffleNoise noise;
    double power;
    int64_t n_orders;  // below 2^26
};

// Returns the largest |gradient|, infinity if one is not finite. Order t of a row is made by word
// t % 4 of counter `its number in the whole table` of the stream; output: t / 4.
double yeti(const RankingTarget& target, const double* raw, const Shuffles& shuffles, Stream stream,
            const RankingSlopes& out, int n_threads);

}  // namespace sglb
