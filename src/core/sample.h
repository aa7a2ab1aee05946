// The sample that the structure of a tree is searched on: rows and outputs, drawn, with noisy
// gradients as integers.
//
// A shard draws its part of the sample where its rows are. What concerns all shards is in numbers
// that add up: the pilot, the count of rows, squares by output. So the sample does not depend on
// how the rows are dealt to shards, and the search needs nothing but the sample.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "quantise.h"
#include "row_draw.h"
#include "search.h"

namespace sglb {

// How large a sample is wanted, of all shards together.
struct SamplePlan {
    int64_t n_rows, n_outputs;
    bool newton;  // scores G^2 / (H + l2) instead of G^2 / (W + l2)
};

struct SampleInput {
    Codes codes;
    Slopes slopes;
    Subsample subsample;
    Weights weights;
    double noise;  // standard deviation of the noise on a gradient of weight 1
    SlopeBounds bounds;
    SamplePlan plan;
    uint64_t seed;
    uint32_t step;
};

// A shard's part of a sample, with the codes of its rows: all that another process needs of it.
struct SamplePart {
    int64_t n;
    const uint8_t* codes;  // [n * n_columns]
    const int64_t* words;  // [n_words * n]
};

// What the parts of a sample have in common: the scales of the words and, of the rows of a copy,
// the share that was looked at.
struct Packing {
    Scales scales{};
    double share = 1.0;
};

class Sample {
  public:
    // Starts to draw a sample.
    void begin(const SampleInput& input);
    // All that follows, where one shard holds all rows.
    void finish(int n_threads);

    // The same in stages. If `needs_pilot`: the pilot of this shard.
    bool needs_pilot() const;
    void look(Pilot& pilot) const { pilot_rows(draw_input(), pilot); }
    // From the pilots of all shards, added up, the rows; how many there are here.
    int64_t draw_part(const Pilot& pilot, int n_threads);
    // From the number of rows in all shards and in those before this one: squares by output.
    void count(int64_t before, int64_t n_in_all);
    std::vector<int64_t> squares() const;
    bool needs_squares() const { return in_.plan.n_outputs < in_.slopes.n_outputs; }
    // From the squares of all shards, added up: the words.
    void pack(const std::vector<int64_t>& squares, int n_threads);

    // The number of rows in all shards, if it is as planned: before it is known, words can be
    // packed for it. They are those of any number between `packed_for`.
    int64_t planned_rows() const;
    std::pair<int64_t, int64_t> packed_for() const;

    // This shard's part, OUT codes [n_rows * n_columns], words [n_outputs * n_rows].
    void write(uint8_t* codes, int64_t* words) const;
    Packing packing() const { return {scales_, draw_.share}; }
    // The parts of all shards, in any order. `input` says which columns are searched, which rows
    // and which step.
    void join(const SampleInput& input, const Packing& packing,
              const std::vector<SamplePart>& parts, int64_t n_words);

    // What is searched; l2 is in units of weight.
    SearchInput search_input(SearchRule rule) const;

    int64_t n_rows() const {
        return all_rows() ? rows_.n : static_cast<int64_t>(draw_.rows.size());
    }
    int64_t n_columns() const { return in_.codes.n_features; }
    int64_t n_outputs() const { return n_words_; }
    int64_t n_table_rows() const { return in_.slopes.numbers.n_in_all; }
    uint64_t seed() const { return in_.seed; }
    uint32_t step() const { return in_.step; }

  private:
    int64_t draw_all();
    DrawInput draw_input() const;
    QuantiseInput quantise_input() const;
    bool all_rows() const { return !rows_.rows && !draw_.dense; }

    SampleInput in_{};
    Draw draw_;
    StructureRows rows_;
    Scales scales_{};
    std::vector<int32_t> outputs_;
    std::vector<int64_t> words_;  // [n_words * rows of rows_]
    int64_t n_words_ = 1, before_ = 0;
    std::vector<uint8_t> codes_;  // of a joined sample
};

}  // namespace sglb
