#include "categories.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "exact_sum.h"
#include "fixed_point.h"
#include "noise.h"
#include "parallel.h"

namespace sglb {
namespace {

size_t index(int64_t i) { return static_cast<size_t>(i); }

// Mixes all bits of a key (the finaliser of SplitMix64).
uint64_t mix(uint64_t key) {
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9;
    key = (key ^ key >> 27) * 0x94D049BB133111EB;
    return key ^ key >> 31;
}

// Numbers keys as they first appear.
class Numbering {
  public:
    // Few possible keys are looked up in a plain table, many in a hash table that grows.
    explicit Numbering(uint64_t n_possible) : direct_(n_possible <= most_direct) {
        slots_.assign(direct_ ? n_possible : 1024, -1);
    }

    int32_t number(uint64_t key) {
        if (direct_) {
            int32_t& slot = slots_[key];
            if (slot < 0) slot = count_++;
            return slot;
        }
        if (2 * static_cast<size_t>(count_) >= slots_.size()) grow();
        const size_t at = find(key);
        if (slots_[at] < 0) {
            slots_[at] = count_++;
            keys_.push_back(key);
        }
        return slots_[at];
    }

    int32_t count() const { return count_; }

  private:
    static constexpr uint64_t most_direct = uint64_t{1} << 20;  // 4 MB: stays in the cache

    size_t find(uint64_t key) const {
        size_t at = mix(key) & (slots_.size() - 1);
        while (slots_[at] >= 0 && keys_[index(slots_[at])] != key)
            at = (at + 1) & (slots_.size() - 1);
        return at;
    }

    void grow() {
        slots_.assign(4 * slots_.size(), -1);
        for (int32_t i = 0; i < count_; ++i) slots_[find(keys_[index(i)])] = i;
    }

    bool direct_;
    std::vector<int32_t> slots_;
    std::vector<uint64_t> keys_;
    int32_t count_ = 0;
};

// Levels of one combination by row: OUT numbers [n_rows]. Returns how many there are.
int32_t number_rows(const Levels& levels, const int32_t* members, int64_t width, int32_t* numbers) {
    uint64_t n_possible = 1;
    int64_t n_members = 0;
    for (; n_members < width && members[n_members] >= 0; ++n_members)
        n_possible *= static_cast<uint64_t>(levels.n_levels[members[n_members]]);
    Numbering numbering(n_possible);
    for (int64_t row = 0; row < levels.n_rows; ++row) {
        uint64_t key = 0;
        for (int64_t m = 0; m < n_members; ++m)
            key = key * static_cast<uint64_t>(levels.n_levels[members[m]]) +
                  static_cast<uint64_t>(levels.data[members[m] * levels.n_rows + row]);
        numbers[row] = numbering.number(key);
    }
    return numbering.count();
}

double weight_of(const Targets& targets, int64_t row) {
    return targets.weight ? targets.weight[row] : 1.0;
}

struct Sum {
    double total = 0.0, count = 0.0;
};

// Rows that lie between asking for a value and using it: about a memory access long.
constexpr int64_t ahead = 16;

void ordered_column(const Levels& levels, const Targets& targets, const Ordered& ordered,
                    int64_t column, int64_t target, int64_t order, uint8_t* codes) {
    const int32_t* level = levels.data + column * levels.n_rows;
    const double* value = targets.values + target * levels.n_rows;
    const uint32_t* rows = ordered.orders + order * levels.n_rows;
    const int64_t feature = column * targets.n_targets + target;
    const double* first = ordered.thresholds + feature * ordered.width;
    const double* last = first + ordered.n_thresholds[feature];
    const double prior = ordered.unit * ordered.means[target];
    std::vector<Sum> sums(index(levels.n_levels[column]));
    for (int64_t i = 0; i < levels.n_rows; ++i) {
        if (i + 2 * ahead <
            levels.n_rows) {  // rows come in random order: no cache sees them coming
            const uint32_t later = rows[i + 2 * ahead];
            __builtin_prefetch(level + later);
            __builtin_prefetch(value + later);
            __builtin_prefetch(codes + later, 1);
            if (targets.weight) __builtin_prefetch(targets.weight + later);
            __builtin_prefetch(sums.data() + level[rows[i + ahead]], 1);
        }
        const uint32_t row = rows[i];
        Sum& sum = sums[index(level[row])];
        const double statistic = (sum.total + prior) / (sum.count + ordered.unit);
        codes[row] = static_cast<uint8_t>(1 + (std::lower_bound(first, last, statistic) - first));
        const double weight = weight_of(targets, row);
        sum.total += weight * value[row];
        sum.count += weight;
    }
}

struct Gain {
    double gain = 0.0, error = 0.0;
};

// Counts numbers in a unit so small that the largest has all the bits that the sum of n leaves it.
class Counter {
  public:
    Counter(double largest, int64_t n) {
        const int bits = 62 - static_cast<int>(std::bit_width(static_cast<uint64_t>(n)));
        if (!(largest > 0.0)) return;
        const int exponent = std::min(bits - 1 - std::ilogb(largest), 1000);
        scale_ = std::ldexp(1.0, exponent);
        unit_ = std::ldexp(1.0, -exponent);
    }
    int64_t of(double value) const { return static_cast<int64_t>(value * scale_); }
    double value(int64_t sum) const { return static_cast<double>(sum) * unit_; }

  private:
    double scale_ = 1.0, unit_ = 1.0;
};

// What the gains of all combinations share.
struct Explained {
    Explained(const Targets& targets, int64_t n_rows, double ridge)
        : targets(targets), n_rows(n_rows), ridge(ridge) {
        for (int64_t row = 0; row < n_rows; ++row)
            largest_weight = std::max(largest_weight, weight_of(targets, row));
        finite = std::isfinite(largest_weight * largest_weight);
        ExactSum sum;
        for (int64_t k = 0; k < targets.n_targets; ++k) {
            double largest = 0.0;
            for (int64_t row = 0; row < n_rows; ++row) {
                const double value = targets.values[k * n_rows + row];
                const double product = weight_of(targets, row) * value;
                largest = std::max(largest, std::abs(product));
                sum.add(product * value);
            }
            largest_product.push_back(largest);
            const double square = largest * largest;
            finite &= std::isfinite(square * square);
        }
        total = sum.value();
    }

    const Targets& targets;
    int64_t n_rows;
    double ridge;
    double largest_weight = 0.0;
    std::vector<double> largest_product;  // by target
    double total = 0.0;                   // of w g^2
    bool finite = true;
};

Gain gain_of(const int32_t* numbers, int32_t n_numbers, const Explained& explained) {
    const Targets& targets = explained.targets;
    const int64_t n_rows = explained.n_rows;
    if (!explained.finite || !(explained.total > 0.0)) return {};
    struct Mass {
        int64_t count, squares;
    };
    struct Moments {
        int64_t sum, squares, fourths;
    };
    const double largest = explained.largest_weight;
    const Counter weights(largest, n_rows), squared_weights(largest * largest, n_rows);
    std::vector<Mass> masses(index(n_numbers));
    for (int64_t row = 0; row < n_rows; ++row) {
        const double weight = weight_of(targets, row);
        Mass& mass = masses[index(numbers[row])];
        mass.count += weights.of(weight);
        mass.squares += squared_weights.of(weight * weight);
    }
    ExactSum gain, variance;
    std::vector<double> gains(index(n_numbers)), variances(index(n_numbers));
    for (int64_t k = 0; k < targets.n_targets; ++k) {
        const double product = explained.largest_product[index(k)], square = product * product;
        const Counter sums(product, n_rows), squares(square, n_rows);
        const Counter fourths(square * square, n_rows);
        std::vector<Moments> moments(index(n_numbers));
        for (int64_t row = 0; row < n_rows; ++row) {
            const double one = weight_of(targets, row) * targets.values[k * n_rows + row];
            Moments& moment = moments[index(numbers[row])];
            moment.sum += sums.of(one);
            moment.squares += squares.of(one * one);
            moment.fourths += fourths.of((one * one) * (one * one));
        }
        for (size_t i = 0; i < moments.size(); ++i) {
            const double count = weights.value(masses[i].count);
            const double squared = squared_weights.value(masses[i].squares);
            // Rows of next to no weight count as none.
            const double divisor = count - (count > 0.0 ? squared / count : 0.0) + explained.ridge;
            const double sum = sums.value(moments[i].sum), own = squares.value(moments[i].squares);
            gains[i] = (sum * sum - own) / divisor;
            variances[i] =
                2.0 * (own * own - fourths.value(moments[i].fourths)) / (divisor * divisor);
        }
        gain.add(gains.data(), nullptr, n_numbers);
        variance.add(variances.data(), nullptr, n_numbers);
    }
    // A level of one row has no variance; rounding may leave it a trifle below zero.
    return {gain.value() / explained.total,
            std::sqrt(std::max(variance.value(), 0.0)) / explained.total};
}

}  // namespace

void permutation(uint64_t seed, uint32_t copy, int64_t n, uint32_t* order) {
    const Stream stream{seed, copy, Role::permutation, 0};
    for (int64_t i = 0; i < n; ++i) order[i] = static_cast<uint32_t>(i);
    for (int64_t i = n - 1; i > 0; --i) {
        // The upper half of a 64-bit number times i + 1: a place in 0..i.
        const Words w = words_at(stream, static_cast<uint64_t>(i));
        const auto size = static_cast<uint64_t>(i) + 1;
        const uint64_t place = (w[1] * size + (w[0] * size >> 32)) >> 32;
        std::swap(order[i], order[place]);
    }
}

void level_sums(const Levels& levels, const Targets& targets, double* sums, double* counts,
                int n_threads) {
    std::vector<int64_t> start{0};
    for (int64_t c = 0; c < levels.n_columns; ++c)
        start.push_back(start.back() + levels.n_levels[c]);
    const int64_t total = start.back();
    for (int64_t target = -1; target < targets.n_targets; ++target) {  // -1: the counts
        const double* values = target < 0 ? nullptr : targets.values + target * levels.n_rows;
        double* out = target < 0 ? counts : sums + target * total;
        const Summands summands(values, targets.weight, levels.n_rows, n_threads);
        parallel_for(levels.n_columns, n_threads, [&](int64_t c) {
            summands.by_group(levels.data + c * levels.n_rows, levels.n_levels[c],
                              out + start[index(c)]);
        });
    }
}

void ordered_codes(const Levels& levels, const Targets& targets, const Ordered& ordered,
                   uint8_t* columns, int n_threads) {
    const int64_t n_features = levels.n_columns * targets.n_targets;
    parallel_for(n_features * ordered.n_orders, n_threads, [&](int64_t task) {
        const int64_t feature = task / ordered.n_orders;
        ordered_column(levels, targets, ordered, feature / targets.n_targets,
                       feature % targets.n_targets, task % ordered.n_orders,
                       columns + task * levels.n_rows);
    });
}

void combine(const Levels& levels, const Combinations& combinations, int32_t* numbers,
             int64_t* n_numbers, int n_threads) {
    parallel_for(combinations.n, n_threads, [&](int64_t i) {
        n_numbers[i] = number_rows(levels, combinations.members + i * combinations.width,
                                   combinations.width, numbers + i * levels.n_rows);
    });
}

void combination_gains(const Levels& levels, const Combinations& combinations,
                       const Targets& targets, double ridge, double* gains, double* errors,
                       int n_threads) {
    const Explained explained(targets, levels.n_rows, ridge);
    parallel_for(combinations.n, n_threads, [&](int64_t i) {
        std::vector<int32_t> numbers(index(levels.n_rows));
        const int32_t count = number_rows(levels, combinations.members + i * combinations.width,
                                          combinations.width, numbers.data());
        const Gain found = gain_of(numbers.data(), count, explained);
        gains[i] = found.gain;
        errors[i] = found.error;
    });
}

int64_t number_keys(const uint64_t* keys, int64_t n, int32_t* numbers) {
    Numbering numbering(~uint64_t{0});
    for (int64_t i = 0; i < n; ++i) numbers[i] = numbering.number(keys[i]);
    return numbering.count();
}

void place_keys(const uint64_t* keys, int64_t n_keys, int32_t* slots, int64_t n_slots) {
    const uint64_t mask = static_cast<uint64_t>(n_slots) - 1;
    std::fill(slots, slots + n_slots, -1);
    for (int64_t i = 0; i < n_keys; ++i) {
        uint64_t at = mix(keys[i]) & mask;
        while (slots[at] >= 0) at = (at + 1) & mask;
        slots[at] = static_cast<int32_t>(i);
    }
}

void find_keys(const uint64_t* wanted, int64_t n, const uint64_t* keys, int64_t n_keys,
               const int32_t* slots, int64_t n_slots, int32_t* places, int n_threads) {
    const uint64_t mask = static_cast<uint64_t>(n_slots) - 1;
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            uint64_t at = mix(wanted[i]) & mask;
            while (slots[at] >= 0 && (slots[at] >= n_keys || keys[slots[at]] != wanted[i]))
                at = (at + 1) & mask;
            places[i] = slots[at];
        }
    });
}

}  // namespace sglb
