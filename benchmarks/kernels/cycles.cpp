// Nanoseconds of the innermost kernels beside those of a clock cycle, as JSON.
//
// A chain of additions, each waiting for the last, takes a cycle for each on every processor of
// today: it tells the clock where counters of cycles are out of reach, as on most virtual machines.
// Each number is the fastest of many short runs, taken in turn with the clock's.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "candidate_scores.h"
#include "noise.h"
#include "register_sums.h"
#include "uncertainty.h"

using namespace sglb;

namespace {

constexpr int64_t n_rows = 4096, n_codes = 64, depth = 6, n_trees = 128, chain = 100000;
constexpr int n_states = 10, repeats = 2000;
constexpr int64_t stretch_trees = 5;  // between two of ten states in the second half of 100 trees

template <class Work>
double nanoseconds(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
        .count();
}

void add_in_a_chain() {
    uint64_t x = 0;
    for (int64_t i = 0; i < chain; i += 10)
        for (int j = 0; j < 10; ++j) {
            x += 7;
            asm volatile("" : "+r"(x));  // keeps the additions apart
        }
}

}  // namespace

int main() {
    std::mt19937 random(0);
    std::vector<uint8_t> rows(n_rows * group_features);
    for (auto& code : rows) code = static_cast<uint8_t>(random() % n_codes);
    std::vector<uint32_t> order(n_rows), counters(n_rows);
    std::vector<int64_t> words(n_rows);
    for (uint32_t i = 0; i < n_rows; ++i) {
        order[i] = counters[i] = i;
        words[i] = (static_cast<int64_t>(random() % 2001) - 1000) * (int64_t{1} << 32) + 100;
    }
    std::vector<int64_t> parent(n_codes * group_features), child(parent.size());
    std::vector<float> score(parent.size());
    std::vector<int32_t> splits_rows(parent.size());
    std::vector<uint32_t> drawn(4 * n_rows);
    uint32_t* const to[4] = {drawn.data(), drawn.data() + n_rows, drawn.data() + 2 * n_rows,
                             drawn.data() + 3 * n_rows};

    std::vector<Split> splits(n_trees * depth);
    std::vector<int32_t> depths(n_trees, depth);
    std::vector<double> values(n_trees << depth), sums(n_rows);
    for (auto& split : splits)
        split = {static_cast<int32_t>(random() % group_features), 0,
                 static_cast<uint8_t>(random() % n_codes)};
    for (auto& value : values) value = static_cast<double>(random());
    const RegisterSums trees =
        RegisterSums::available()
            ? RegisterSums(values.data(), splits.data(), depths.data(), n_trees, depth, 1)
            : RegisterSums();
    std::vector<uint8_t> columns(n_rows * group_features + 64);
    uint8_t* const codes = columns.data() + (64 - reinterpret_cast<uintptr_t>(columns.data()) % 64);
    std::copy_n(rows.data(), n_rows * group_features, codes);

    Entropies entropies({Link::Kind::sigmoid, 1.0}, 1);
    AlignedVector<double> scores(tile);
    for (auto& score_of_row : scores) score_of_row = 1e-9 * static_cast<double>(random()) - 2.0;
    std::vector<double> numbers(5 * tile);
    double* const out = numbers.data();

    const SplitNode node{parent.data(), child.data()};
    const GroupRule rule{n_codes, group_features, {}, 10.0f};
    double clock = std::numeric_limits<double>::infinity();
    double addition = clock, step = clock, counter = clock, state = clock, entropy = clock;
    double tree = clock, stretch = clock;
    for (int i = 0; i < repeats; ++i) {
        clock = std::min(clock, nanoseconds(add_in_a_chain) / chain);
        addition = std::min(addition, nanoseconds([&] {
                                          build_histogram({rows.data(), group_features, false},
                                                          order.data(), words.data(), n_rows, false,
                                                          parent.data());
                                      }) / (n_rows * group_features));
        std::copy(parent.begin(), parent.end(), child.begin());
        step = std::min(step, nanoseconds([&] {
                                  score_histograms(
                                      &node, 1, rule,
                                      {score.data(), splits_rows.data(), nullptr, nullptr});
                              }) / (2 * n_codes * group_features));
        std::fill(parent.begin(), parent.end(), 0);
        counter =
            std::min(counter, nanoseconds([&] {
                                  gather_words({1, 2, Role::score, 0}, counters.data(), n_rows, to);
                              }) / n_rows);
        state = std::min(state, nanoseconds([&] {
                                    for (int s = 0; s < n_states; ++s)
                                        entropies.add(tile, scores.data());
                                }) / (n_states * tile));
        entropy = std::min(entropy, nanoseconds([&] {
                                        entropies.finish(
                                            tile, 0,
                                            {out, out + 2 * tile, out + 3 * tile, out + 4 * tile});
                                    }) / tile);
        if (trees.empty()) continue;
        constexpr int64_t some = 2 * RegisterSums::rows;
        tree = std::min(tree, nanoseconds([&] {
                                  trees.find(codes, n_rows, some, 0, n_trees, 0, sums.data());
                              }) / (some * n_trees));
        stretch =
            std::min(stretch, nanoseconds([&] {
                                  trees.find(codes, n_rows, some, 0, stretch_trees, 0, sums.data());
                              }) / some);
    }
    std::printf("{\"clock\": %g, \"addition\": %g, \"step\": %g, \"counter\": %g, ", clock,
                addition, step, counter);
    std::printf("\"state\": %g, \"entropy\": %g, ", state, entropy);
    if (trees.empty()) tree = stretch = 0.0;
    std::printf("\"tree\": %g, \"stretch\": %g}\n", tree, stretch);
}
