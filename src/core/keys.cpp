#include "keys.h"

#include <algorithm>

#include "parallel.h"

namespace sglb {

void Numbering::grow() {
    slots_.resize(4 * slots_.size());
    place_keys(keys_.data(), count_, slots_.data(), static_cast<int64_t>(slots_.size()));
}

int64_t number_keys(const uint64_t* keys, int64_t n, int32_t* numbers) {
    Numbering numbering(~uint64_t{0});
    for (int64_t i = 0; i < n; ++i) numbers[i] = numbering.number(keys[i]);
    return numbering.count();
}

void place_keys(const uint64_t* keys, int64_t n_keys, int32_t* slots, int64_t n_slots) {
    const KeyTable table{keys, n_keys, slots, n_slots};
    std::fill_n(slots, n_slots, -1);
    for (int64_t i = 0; i < n_keys; ++i) slots[table.find(keys[i])] = static_cast<int32_t>(i);
}

void find_keys(const uint64_t* wanted, int64_t n, const KeyTable& table, int32_t* numbers,
               int n_threads) {
    parallel_rows(n, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) numbers[i] = table.slots[table.find(wanted[i])];
    });
}

}  // namespace sglb
