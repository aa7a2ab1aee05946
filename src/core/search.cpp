#include "search.h"

#include <algorithm>

#include "code_panels.h"
#include "leaf_rows.h"
#include "parallel.h"
#include "scoreboard.h"

namespace sglb {
namespace {

// Histograms of all nodes of a level are kept for the next level's subtraction while they take no
// more than this; deeper levels build each node's anew, which gives the same integers.
constexpr int64_t most_histogram_bytes = int64_t{1} << 29;
// Below this many additions a level is not worth waking a thread for.
constexpr int64_t serial_work = 20000;
// Scores of this many pairs of siblings, or a sixteenth of all, are added up by one task. Part of
// the rule: sums of floats depend on it.
constexpr int64_t least_range = 4;
constexpr int64_t most_ranges = 16;

// first .. last of groups of features, of pairs of siblings or of chunks of rows.
struct Range {
    int64_t first, last;
};

// The nodes of a level. The last split made siblings of each node, `pair` and `pair + sibling`; the
// root has none, and `sibling` is 0.
struct Level {
    int64_t n_pairs, sibling, range_size;

    explicit Level(int depth)
        : n_pairs(int64_t{1} << std::max(0, depth - 1)),
          sibling(depth ? n_pairs : 0),
          range_size(std::max(least_range, n_pairs / most_ranges)) {}
    int64_t n_ranges() const { return (n_pairs + range_size - 1) / range_size; }
    Range range(int64_t r) const {
        return {r * range_size, std::min(n_pairs, (r + 1) * range_size)};
    }
};

// A pair of siblings. Histograms of the one with fewer rows are built, in slot `pair + sibling`;
// the other's are what these leave of the parent's.
struct Siblings {
    int64_t smaller;            // node
    int64_t n_rows, n_smaller;  // of both, of the smaller node
    int64_t parent_slot;        // of the parent's histograms
};

class Search {
  public:
    Search(const SearchInput& input, Workspace& workspace, int n_threads)
        : in_(input),
          ws_(workspace),
          n_threads_(n_threads),
          n_nodes_(int64_t{1} << std::max(0, input.rule.max_depth - 1)),
          n_groups_(groups_of(input.codes)),
          n_panels_((n_groups_ + panel_groups - 1) / panel_groups),
          width_(
              *std::max_element(input.codes.n_codes, input.codes.n_codes + input.codes.n_features)),
          group_size_(group_features * width_),
          codes_(input, workspace, n_threads),
          rows_(input.n, input.by_row ? input.rows : nullptr, n_nodes_, workspace, n_threads),
          board_(input, width_, Level(input.rule.max_depth - 1).n_ranges(), workspace),
          slots_(static_cast<size_t>(n_nodes_)) {
        const int64_t node_size = n_groups_ * group_size_ * in_.n_outputs;
        while (n_slots_ * 2 <= n_nodes_ && node_size * n_slots_ * 2 * 8 <= most_histogram_bytes)
            n_slots_ *= 2;
        ws_.hist.resize(node_size * n_slots_);
    }

    int run(Split* splits) {
        int depth = 0;
        for (; depth < in_.rule.max_depth; ++depth) {
            const Candidate best = best_candidate(depth);
            if (!best.exists()) break;
            splits[depth] = best.split;
            if (depth + 1 < in_.rule.max_depth)
                rows_.split(best.split, codes_.column(best.split.feature), int64_t{1} << depth);
        }
        return depth;
    }

  private:
    Candidate best_candidate(int depth) {
        const Level level(depth);
        n_ranges_ = level.n_ranges();
        find_siblings(level);
        if ((int64_t{1} << depth) > n_slots_)
            score_rebuilt(level);
        else if (rows_.n_chunks() > 1 && n_groups_ * n_ranges_ < 4 * n_threads_)
            score_chunks(level);
        else
            score_groups(level);
        return board_.best(n_ranges_, depth, n_groups_ > 2 * panel_groups ? n_threads_ : 1);
    }

    // Histograms of a level have slots 0 .. n_pairs, those of the smaller siblings of the next one
    // come behind them.
    void find_siblings(const Level& level) {
        siblings_.resize(level.n_pairs);
        for (int64_t pair = 0; pair < level.n_pairs; ++pair) {
            const int64_t n_first = rows_.count(pair);
            if (!level.sibling) {
                siblings_[0] = {0, n_first, n_first, 0};
                continue;
            }
            const int64_t n_second = rows_.count(pair + level.sibling);
            const bool first_is_smaller = n_first <= n_second;
            int64_t& first_slot = slots_[pair];
            int64_t& second_slot = slots_[pair + level.sibling];
            siblings_[pair] = {first_is_smaller ? pair : pair + level.sibling, n_first + n_second,
                               std::min(n_first, n_second), first_slot};
            second_slot = first_slot;
            (first_is_smaller ? first_slot : second_slot) = pair + level.sibling;
        }
    }
    const Siblings& siblings(int64_t pair) const { return siblings_[pair]; }

    int64_t* hist(int64_t output, int64_t slot, int64_t group) {
        return ws_.hist.data() + ((group * in_.n_outputs + output) * n_slots_ + slot) * group_size_;
    }

    // Adds the rows of a node in some chunks to the histograms of some groups, `to(group)`. A block
    // of rows serves all groups while its codes are in the cache.
    template <class To>
    void add_rows(int64_t output, int64_t node, Range chunks, Range groups, To&& to) const {
        constexpr int64_t block = 1024;
        for (int64_t c = chunks.first; c < chunks.last; ++c) {
            const Segment& rows = rows_.segment(c, node);
            for (int64_t at = 0; at < rows.count; at += block)
                for (int64_t group = groups.first; group < groups.last; ++group)
                    build_histogram(codes_.group(group), rows_.order() + rows.begin + at,
                                    in_.packed + output * in_.n_words,
                                    std::min(block, rows.count - at),
                                    board_.features_of(group) <= 4, to(group));
        }
    }

    // Histograms of the smaller node of a pair. A node without rows needs none: nobody reads them.
    template <class To>
    void build(int64_t output, int64_t pair, Range chunks, Range groups, To&& to) const {
        if (!siblings(pair).n_smaller) return;
        for (int64_t group = groups.first; group < groups.last; ++group)
            std::fill_n(to(group), group_size_, int64_t{0});
        add_rows(output, siblings(pair).smaller, chunks, groups, to);
    }

    // Tasks enough for all threads: each takes some groups of features and a range of pairs through
    // the level.
    void score_groups(const Level& level) {
        // Several groups at a time read the same line of cache; several tasks a thread leave none
        // waiting long for the last.
        const int64_t size = std::clamp<int64_t>(n_groups_ / (4 * n_threads_), 1, panel_groups);
        const int64_t n_tasks = (n_groups_ + size - 1) / size * n_ranges_;
        parallel_for(n_tasks, threads_for(level), [&](int64_t task) {
            const int64_t first = task / n_ranges_ * size, r = task % n_ranges_;
            const Range groups{first, std::min(n_groups_, first + size)}, pairs = level.range(r);
            for (int64_t k = 0; k < in_.n_outputs; ++k)
                for (int64_t pair = pairs.first; pair < pairs.last; ++pair)
                    build(k, pair, {0, rows_.n_chunks()}, groups,
                          [&](int64_t group) { return hist(k, pair + level.sibling, group); });
            for (int64_t group = groups.first; group < groups.last; ++group)
                score_kept(group, r, level);
        });
    }

    // An addition to a histogram and a step over one of its codes take about the same time.
    int threads_for(const Level& level) const {
        int64_t steps = 2 * width_ * level.n_pairs;
        for (const Siblings& pair : siblings_) steps += pair.n_smaller;
        return steps * in_.codes.n_features * in_.n_outputs < serial_work ? 1 : n_threads_;
    }

    // Few features, few nodes: threads share the rows, then the groups. The histograms of the first
    // chunk are where the total goes, those of the others are in scratch memory.
    void score_chunks(const Level& level) {
        const int64_t n_builds = in_.n_outputs * level.n_pairs * n_panels_;
        const int64_t panel_size = panel_groups * group_size_;
        const auto size = static_cast<size_t>((rows_.n_chunks() - 1) * n_builds * panel_size);
        if (ws_.chunk_hist.size() < size) ws_.chunk_hist.resize(size);
        const auto chunk_hist = [&](int64_t build_number, int64_t chunk, int64_t group) {
            return ws_.chunk_hist.data() + ((chunk - 1) * n_builds + build_number) * panel_size +
                   group % panel_groups * group_size_;
        };
        parallel_for(rows_.n_chunks() * n_builds, n_threads_, [&](int64_t task) {
            const int64_t number = task % n_builds, chunk = task / n_builds;
            const int64_t first = number % n_panels_ * panel_groups;
            const int64_t pair = number / n_panels_ % level.n_pairs;
            const int64_t k = number / n_panels_ / level.n_pairs;
            build(k, pair, {chunk, chunk + 1}, {first, std::min(n_groups_, first + panel_groups)},
                  [&](int64_t group) {
                      return chunk == 0 ? hist(k, pair + level.sibling, group)
                                        : chunk_hist(number, chunk, group);
                  });
        });
        parallel_for(n_groups_ * n_ranges_, n_threads_, [&](int64_t task) {
            const int64_t group = task / n_ranges_, r = task % n_ranges_;
            const Range pairs = level.range(r);
            for (int64_t k = 0; k < in_.n_outputs; ++k)
                for (int64_t pair = pairs.first; pair < pairs.last; ++pair)
                    for (int64_t c = 1; c < rows_.n_chunks() && siblings(pair).n_smaller; ++c) {
                        const int64_t number =
                            (k * level.n_pairs + pair) * n_panels_ + group / panel_groups;
                        add_histogram(chunk_hist(number, c, group),
                                      hist(k, pair + level.sibling, group), group_size_);
                    }
            score_kept(group, r, level);
        });
    }

    void score_kept(int64_t group, int64_t r, const Level& level) {
        score(group, r, level, [&](int64_t k, int64_t pair) {
            return SplitNode{hist(k, siblings(pair).parent_slot, group),
                             hist(k, pair + level.sibling, group)};
        });
    }

    // More nodes than histograms can be kept of: those of one range at a time, from its rows.
    void score_rebuilt(const Level& level) {
        parallel_for(n_groups_ * n_ranges_, n_threads_, [&](int64_t task) {
            const int64_t group = task / n_ranges_, r = task % n_ranges_;
            const Range pairs = level.range(r);
            const int64_t n_pairs = pairs.last - pairs.first;
            std::vector<int64_t> words(
                static_cast<size_t>(2 * n_pairs * in_.n_outputs * group_size_));
            const auto node = [&](int64_t k, int64_t pair) {
                int64_t* parent =
                    words.data() + 2 * (k * n_pairs + pair - pairs.first) * group_size_;
                return SplitNode{parent, parent + group_size_};
            };
            for (int64_t k = 0; k < in_.n_outputs; ++k)
                for (int64_t pair = pairs.first; pair < pairs.last; ++pair) {
                    const auto add = [&](int64_t child, bool to_child) {
                        int64_t* to = node(k, pair).parent + (to_child ? group_size_ : 0);
                        add_rows(k, child, {0, rows_.n_chunks()}, {group, group + 1},
                                 [&](int64_t) { return to; });
                    };
                    add(pair, false);
                    if (!level.sibling) continue;
                    add(pair + level.sibling, false);
                    add(siblings(pair).smaller, true);
                }
            score(group, r, level, node);
        });
    }

    template <class NodeOf>
    void score(int64_t group, int64_t r, const Level& level, NodeOf&& node_of) {
        const Range pairs = level.range(r);
        std::vector<SplitNode> nodes;  // not kept by the thread: see parallel.h
        nodes.reserve(static_cast<size_t>(in_.n_outputs * (pairs.last - pairs.first)));
        for (int64_t k = 0; k < in_.n_outputs; ++k)
            for (int64_t pair = pairs.first; pair < pairs.last; ++pair) {
                if (!siblings(pair).n_rows) continue;
                nodes.push_back(node_of(k, pair));
                if (!level.sibling || !siblings(pair).n_smaller) nodes.back().child = nullptr;
            }
        board_.score(group, r, nodes);
    }

    const SearchInput& in_;
    Workspace& ws_;
    int n_threads_;
    int64_t n_nodes_;  // of the last level that is searched
    int64_t n_groups_, n_panels_, width_, group_size_;
    CodePanels codes_;
    LeafRows rows_;
    Scoreboard board_;
    int64_t n_slots_ = 1, n_ranges_ = 1;
    std::vector<Siblings> siblings_;  // by pair
    std::vector<int64_t> slots_;      // of the nodes' histograms
};

}  // namespace

int search(const SearchInput& input, Workspace& workspace, Split* splits, int n_threads) {
    if (input.n == 0 || input.codes.n_features == 0) return 0;
    return Search(input, workspace, n_threads).run(splits);
}

}  // namespace sglb
