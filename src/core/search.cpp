#include "search.h"

#include <algorithm>
#include <cstring>

#include "leaf_rows.h"
#include "parallel.h"
#include "scoreboard.h"

namespace sglb {
namespace {

// Histograms of all leaves of a level are kept for the next level's subtraction while they take no
// more than this; deeper levels build each leaf's anew, which gives the same integers.
constexpr int64_t most_histogram_bytes = int64_t{1} << 29;
// Below this many additions a level is not worth waking a thread for.
constexpr int64_t serial_work = 20000;
// Groups whose codes of one row fill a line of cache, and whose histograms of one leaf a
// first-level cache.
constexpr int64_t panel_groups = 8;
// Codes of all rows that a second-level cache keeps beside the histograms.
constexpr int64_t near_bytes = int64_t{1} << 19;
// Scores of this many pairs of leaves, or a sixteenth of all, are added up by one task. Part of the
// rule: sums of floats depend on it.
constexpr int64_t least_range = 4;
constexpr int64_t most_ranges = 16;

// A split made two leaves of one, `leaf` and `leaf + half`; the root stands alone.
struct Pairs {
    int64_t n, half, range;
    explicit Pairs(int depth)
        : n(int64_t{1} << std::max(0, depth - 1)),
          half(depth ? n : 0),
          range(std::max(least_range, n / most_ranges)) {}
    int64_t n_ranges() const { return (n + range - 1) / range; }
};

// first .. last of groups, or of pairs of leaves.
struct Span {
    int64_t first, last;
};

// What the search knows of a pair of leaves. Histograms of the leaf with fewer rows are built, and
// have place `pair + half`; what they leave of those of both is the other leaf's.
struct Branch {
    int64_t built;            // that leaf
    int64_t n_rows, n_built;  // of both leaves, of that leaf
    int64_t place;            // of the histograms of both
};

class Search {
  public:
    Search(const SearchInput& input, Workspace& workspace, int n_threads)
        : in_(input),
          ws_(workspace),
          n_threads_(n_threads),
          n_leaves_(int64_t{1} << std::max(0, input.rule.max_depth - 1)),
          n_groups_(groups_of(input.codes)),
          n_panels_((n_groups_ + panel_groups - 1) / panel_groups),
          width_(
              *std::max_element(input.codes.n_codes, input.codes.n_codes + input.codes.n_features)),
          group_size_(group_features * width_),
          rows_(input.n, input.by_row ? input.rows : nullptr, n_leaves_, workspace, n_threads),
          board_(input, width_, Pairs(input.rule.max_depth - 1).n_ranges(), workspace) {
        prepare();
    }

    int run(Split* splits) {
        int depth = 0;
        for (; depth < in_.rule.max_depth; ++depth) {
            const Candidate best = best_candidate(depth);
            if (!best.exists()) break;
            splits[depth] = best.split;
            if (depth + 1 < in_.rule.max_depth)
                rows_.part(best.split, column(best.split.feature), int64_t{1} << depth);
        }
        return depth;
    }

  private:
    void prepare() {
        codes_ = in_.codes.rows;
        stride_ = in_.codes.stride;
        panel_size_ = panel_groups * group_features;
        if (!in_.by_row) compact();
        const int64_t level = n_groups_ * group_size_ * in_.n_outputs;
        kept_leaves_ = 1;
        while (kept_leaves_ * 2 <= n_leaves_ &&
               level * kept_leaves_ * 2 * 8 <= most_histogram_bytes)
            kept_leaves_ *= 2;
        ws_.hist.resize(static_cast<size_t>(level * kept_leaves_));
    }

    // The sampled rows' codes side by side, panel by panel: they are read several times a tree.
    void compact() {
        const int64_t from_stride = in_.codes.stride;
        stride_ = std::min(from_stride, panel_size_);
        panel_size_ = in_.n * stride_;
        ws_.codes.resize(static_cast<size_t>(n_panels_ * panel_size_));
        parallel_rows(in_.n, n_threads_, [&](int64_t begin, int64_t end) {
            constexpr int64_t ahead = 16;
            for (int64_t i = begin; i < end; ++i) {
                const uint8_t* row = in_.codes.rows + in_.rows[i] * from_stride;
                __builtin_prefetch(in_.codes.rows +
                                   in_.rows[std::min(i + ahead, end - 1)] * from_stride);
                for (int64_t p = 0; p < n_panels_; ++p) {
                    uint8_t* to = ws_.codes.data() + p * panel_size_ + i * stride_;
                    const uint8_t* from = row + p * stride_;
                    const int64_t width = std::min(stride_, from_stride - p * stride_);
                    for (int64_t j = 0; j < width; j += group_features)
                        std::memcpy(to + j, from + j, group_features);
                }
            }
        });
        codes_ = ws_.codes.data();
    }

    // Codes of row 0 from a feature on; those of the next row are stride_ bytes further.
    const uint8_t* codes_of(int64_t feature) const {
        constexpr int64_t panel = panel_groups * group_features;
        return codes_ + feature / panel * panel_size_ + feature % panel;
    }

    // A feature's codes; side by side where they are at hand, which takes fewer lines of cache.
    CodeColumn column(int64_t feature) const {
        if (in_.codes.columns && in_.by_row) return {in_.codes.columns + feature * in_.n_words, 1};
        return {codes_of(feature), stride_};
    }

    int64_t* hist(int64_t output, int64_t place, int64_t group) {
        return ws_.hist.data() +
               ((group * in_.n_outputs + output) * kept_leaves_ + place) * group_size_;
    }

    Span panel(int64_t p) const {
        return {p * panel_groups, std::min(n_groups_, (p + 1) * panel_groups)};
    }
    static Span range(int64_t r, const Pairs& pairs) {
        return {r * pairs.range, std::min(pairs.n, (r + 1) * pairs.range)};
    }

    // Adds the rows of a segment to the histograms of some groups, `place(group)` being where they
    // go. A block of rows serves all groups while its codes are in the cache.
    template <class Place>
    void add_rows(int64_t output, const Segment& rows, const Span& groups, Place&& place) const {
        constexpr int64_t block = 1024;
        for (int64_t at = 0; at < rows.count; at += block)
            for (int64_t group = groups.first; group < groups.last; ++group)
                build_histogram(
                    {codes_of(group * group_features), stride_, in_.n_words * stride_ > near_bytes},
                    rows_.order() + rows.begin + at, in_.packed + output * in_.n_words,
                    std::min(block, rows.count - at), board_.features_of(group) <= 4, place(group));
    }

    Candidate best_candidate(int depth) {
        const Pairs pairs(depth);
        n_ranges_ = pairs.n_ranges();
        look_at(pairs);
        if ((int64_t{1} << depth) > kept_leaves_)
            score_anew(pairs);
        else if (rows_.n_chunks() > 1 && n_groups_ * n_ranges_ < 4 * n_threads_)
            score_chunks(pairs);
        else
            score_groups(pairs);
        return board_.best(n_ranges_, depth, n_groups_ > 2 * panel_groups ? n_threads_ : 1);
    }

    // Tasks enough for all threads: each takes some groups of features and a range of leaves
    // through the level.
    void score_groups(const Pairs& pairs) {
        // Several groups at a time read the same line of cache; several tasks a thread leave none
        // waiting long for the last.
        const int64_t size = std::clamp<int64_t>(n_groups_ / (4 * n_threads_), 1, panel_groups);
        const int64_t n_tasks = (n_groups_ + size - 1) / size * n_ranges_;
        parallel_for(n_tasks, threads_for(pairs), [&](int64_t task) {
            const int64_t first = task / n_ranges_ * size, r = task % n_ranges_;
            const Span groups{first, std::min(n_groups_, first + size)}, some = range(r, pairs);
            for (int64_t k = 0; k < in_.n_outputs; ++k)
                for (int64_t pair = some.first; pair < some.last; ++pair)
                    build_child(k, pair, pairs, groups);
            for (int64_t group = groups.first; group < groups.last; ++group) score(group, r, pairs);
        });
    }

    // An addition to a histogram and a step over one of its codes take about the same time.
    int threads_for(const Pairs& pairs) const {
        int64_t steps = 2 * width_ * pairs.n;
        for (const Branch& branch : branches_) steps += branch.n_built;
        return steps * in_.codes.n_features * in_.n_outputs < serial_work ? 1 : n_threads_;
    }

    // Few features, few leaves: threads share the rows, then the groups.
    void score_chunks(const Pairs& pairs) {
        const int64_t n_builds = in_.n_outputs * pairs.n * n_panels_;
        const int64_t size = (rows_.n_chunks() - 1) * n_builds * panel_groups * group_size_;
        if (ws_.part_hist.size() < static_cast<size_t>(size))
            ws_.part_hist.resize(static_cast<size_t>(size));
        parallel_for(rows_.n_chunks() * n_builds, n_threads_, [&](int64_t task) {
            build_part(task % n_builds, task / n_builds, n_builds, pairs);
        });
        parallel_for(n_groups_ * n_ranges_, n_threads_, [&](int64_t task) {
            const int64_t group = task / n_ranges_, r = task % n_ranges_;
            add_parts(group, range(r, pairs), n_builds, pairs);
            score(group, r, pairs);
        });
    }

    // Histograms of a level have places 0 .. half, those of the next one's smaller leaves come
    // behind them.
    void look_at(const Pairs& pairs) {
        branches_.resize(static_cast<size_t>(pairs.n));
        places_.resize(static_cast<size_t>(n_leaves_));
        for (int64_t pair = 0; pair < pairs.n; ++pair) {
            const int64_t n_here = rows_.count(pair);
            if (!pairs.half) {
                branches_[0] = {0, n_here, n_here, 0};
                continue;
            }
            const int64_t n_there = rows_.count(pair + pairs.half);
            const bool here = n_here <= n_there;
            int64_t& place = places_[static_cast<size_t>(pair)];
            int64_t& other = places_[static_cast<size_t>(pair + pairs.half)];
            branches_[static_cast<size_t>(pair)] = {here ? pair : pair + pairs.half,
                                                    n_here + n_there, std::min(n_here, n_there),
                                                    place};
            other = place;
            (here ? place : other) = pair + pairs.half;
        }
    }
    const Branch& branch(int64_t pair) const { return branches_[static_cast<size_t>(pair)]; }

    // A leaf without rows needs no histograms: nobody reads them.
    void build_child(int64_t output, int64_t pair, const Pairs& pairs, const Span& groups) {
        if (!branch(pair).n_built) return;
        const auto place = [&](int64_t group) { return hist(output, pair + pairs.half, group); };
        for (int64_t group = groups.first; group < groups.last; ++group)
            std::fill_n(place(group), group_size_, int64_t{0});
        for (int64_t c = 0; c < rows_.n_chunks(); ++c)
            add_rows(output, rows_.segment(c, branch(pair).built), groups, place);
    }

    int64_t* part_of(int64_t build, int64_t chunk, int64_t n_builds) {
        return ws_.part_hist.data() + ((chunk - 1) * n_builds + build) * panel_groups * group_size_;
    }

    // As build_child for the rows of one chunk; the first chunk's sums are where the total goes.
    void build_part(int64_t build, int64_t chunk, int64_t n_builds, const Pairs& pairs) {
        const Span groups = panel(build % n_panels_);
        const int64_t pair = build / n_panels_ % pairs.n, output = build / n_panels_ / pairs.n;
        if (!branch(pair).n_built) return;
        const auto place = [&](int64_t group) {
            return chunk == 0
                       ? hist(output, pair + pairs.half, group)
                       : part_of(build, chunk, n_builds) + (group - groups.first) * group_size_;
        };
        for (int64_t group = groups.first; group < groups.last; ++group)
            std::fill_n(place(group), group_size_, int64_t{0});
        add_rows(output, rows_.segment(chunk, branch(pair).built), groups, place);
    }

    void add_parts(int64_t group, const Span& range, int64_t n_builds, const Pairs& pairs) {
        for (int64_t k = 0; k < in_.n_outputs; ++k)
            for (int64_t pair = range.first; pair < range.last; ++pair)
                for (int64_t c = 1; c < rows_.n_chunks() && branch(pair).n_built; ++c) {
                    const int64_t build = (k * pairs.n + pair) * n_panels_ + group / panel_groups;
                    add_histogram(part_of(build, c, n_builds) + group % panel_groups * group_size_,
                                  hist(k, pair + pairs.half, group), group_size_);
                }
    }

    void score(int64_t group, int64_t r, const Pairs& pairs) {
        score_range(group, r, pairs, [&](int64_t k, int64_t pair) {
            return Family{hist(k, branch(pair).place, group), hist(k, pair + pairs.half, group)};
        });
    }

    // More leaves than histograms can be kept of: those of one range at a time, from its rows.
    void score_anew(const Pairs& pairs) {
        parallel_for(n_groups_ * n_ranges_, n_threads_, [&](int64_t task) {
            const int64_t group = task / n_ranges_, r = task % n_ranges_;
            const Span span = range(r, pairs);
            const int64_t width = span.last - span.first;
            std::vector<int64_t> own(static_cast<size_t>(2 * width * in_.n_outputs * group_size_));
            const auto place = [&](int64_t k, int64_t pair, bool is_part) {
                const int64_t at = k * width + pair - span.first;
                return own.data() + (2 * at + is_part) * group_size_;
            };
            const auto add = [&](int64_t k, int64_t pair, int64_t leaf, bool is_part) {
                for (int64_t c = 0; c < rows_.n_chunks(); ++c)
                    add_rows(k, rows_.segment(c, leaf), {group, group + 1},
                             [&](int64_t) { return place(k, pair, is_part); });
            };
            for (int64_t k = 0; k < in_.n_outputs; ++k)
                for (int64_t pair = span.first; pair < span.last; ++pair) {
                    add(k, pair, pair, false);
                    if (!pairs.half) continue;
                    add(k, pair, pair + pairs.half, false);
                    add(k, pair, branch(pair).built, true);
                }
            score_range(group, r, pairs, [&](int64_t k, int64_t pair) {
                return Family{place(k, pair, false), place(k, pair, true)};
            });
        });
    }

    template <class FamilyOf>
    void score_range(int64_t group, int64_t r, const Pairs& pairs, FamilyOf&& family) {
        const Span span = range(r, pairs);
        static thread_local std::vector<Family> families;
        families.clear();
        for (int64_t k = 0; k < in_.n_outputs; ++k)
            for (int64_t pair = span.first; pair < span.last; ++pair) {
                if (!branch(pair).n_rows) continue;
                families.push_back(family(k, pair));
                if (!pairs.half || !branch(pair).n_built) families.back().part = nullptr;
            }
        board_.score(group, r, families);
    }

    const SearchInput& in_;
    Workspace& ws_;
    int n_threads_;
    int64_t n_leaves_;  // of the last level that is searched
    int64_t n_groups_, n_panels_, width_, group_size_;
    LeafRows rows_;
    Scoreboard board_;
    int64_t kept_leaves_ = 1, n_ranges_ = 1;
    const uint8_t* codes_ = nullptr;
    int64_t stride_ = 0, panel_size_ = 0;
    std::vector<Branch> branches_;  // by pair
    std::vector<int64_t> places_;   // of the leaves' histograms
};

}  // namespace

int search(const SearchInput& input, Workspace& workspace, Split* splits, int n_threads) {
    if (input.n == 0 || input.codes.n_features == 0) return 0;
    return Search(input, workspace, n_threads).run(splits);
}

}  // namespace sglb
