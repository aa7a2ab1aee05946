// Keys of 64 bits in hash tables of consecutive slots: a slot has the number of a key or -1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sglb {

// Keys and the slots they are found by; the number of slots is a power of two above that of keys.
struct KeyTable {
    const uint64_t* keys;
    int64_t n_keys;
    const int32_t* slots;
    int64_t n_slots;

    // The index of a key's slot, or of the free slot where it belongs.
    uint64_t find(uint64_t key) const {
        const uint64_t mask = static_cast<uint64_t>(n_slots) - 1;
        uint64_t at = mix(key) & mask;
        while (slots[at] >= 0 && (slots[at] >= n_keys || keys[slots[at]] != key))
            at = (at + 1) & mask;
        return at;
    }

  private:
    // Mixes all bits of a key (the finaliser of SplitMix64).
    static uint64_t mix(uint64_t key) {
        key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9;
        key = (key ^ key >> 27) * 0x94D049BB133111EB;
        return key ^ key >> 31;
    }
};

// Numbers keys as they first appear.
class Numbering {
  public:
    // Few possible keys are looked up in a plain table, many in a hash table that grows.
    explicit Numbering(uint64_t n_possible) : direct_(n_possible <= most_direct) {
        slots_.assign(direct_ ? n_possible : 1024, -1);
    }

    int32_t number(uint64_t key) {
        if (!direct_ && 2 * static_cast<size_t>(count_) >= slots_.size()) grow();
        int32_t& slot = slots_[direct_ ? key : table().find(key)];
        if (slot < 0) {
            slot = count_++;
            if (!direct_) keys_.push_back(key);
        }
        return slot;
    }

    int32_t count() const { return count_; }

  private:
    static constexpr uint64_t most_direct = uint64_t{1} << 20;  // 4 MB: stays in the cache

    KeyTable table() const {
        return {keys_.data(), count_, slots_.data(), static_cast<int64_t>(slots_.size())};
    }
    void grow();

    bool direct_;
    std::vector<int32_t> slots_;
    std::vector<uint64_t> keys_;
    int32_t count_ = 0;
};

// Keys numbered as they first appear: OUT numbers [n]. Returns how many there are.
int64_t number_keys(const uint64_t* keys, int64_t n, int32_t* numbers);

// A table of keys, each of which is there once: OUT slots [n_slots].
void place_keys(const uint64_t* keys, int64_t n_keys, int32_t* slots, int64_t n_slots);

// OUT numbers [n]: the number of each wanted key in a table, -1 for a key it does not have.
void find_keys(const uint64_t* wanted, int64_t n, const KeyTable& table, int32_t* numbers,
               int n_threads);

}  // namespace sglb
