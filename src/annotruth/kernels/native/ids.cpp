// A hash table of ids that grows.
//
// The number of slots is a power of two, at least twice the number of ids. The low half of a slot
// is the code of an id and the high half 32 bits of its hash, so that almost always one comparison
// decides whether it is the id that is looked up.
#include <algorithm>
#include <cstring>

#include "arrays.hpp"

namespace annotruth::ids {
namespace {

using Bytes = Array<const uint8_t>;
using Ends = Array<const int64_t>;

constexpr uint64_t EMPTY = 0xFFFFFFFFFFFFFFFF, LOW = 0xFFFFFFFF;
// Odd numbers with half of their bits set.
constexpr uint64_t MIX = 0x9E3779B97F4A7C15, MIX_AGAIN = 0xD6E8FEB86659FD93;
constexpr int64_t WORD = 8;     // bytes that are read at a time: single ones take twice as long
constexpr int64_t BATCH = 256;  // ids whose slots are prefetched before they are read

uint64_t load_word(const uint8_t* text) {
    uint64_t word;
    std::memcpy(&word, text, WORD);
    return word;
}

// A mask of the first bytes of a word, fewer than eight.
uint64_t mask(int64_t n_bytes) { return (uint64_t{1} << (8 * n_bytes)) - 1; }

// A hash of 32 bits of the bytes of a text and its length.
uint64_t hash(const uint8_t* text, int64_t length) {
    uint64_t h = length;
    for (; length >= WORD; length -= WORD, text += WORD) {
        h = (h ^ load_word(text)) * MIX;
        h ^= h >> 32;
    }
    if (length > 0) {
        h = (h ^ (load_word(text) & mask(length))) * MIX;
        h ^= h >> 32;
    }
    return (h * MIX_AGAIN) >> 32;
}

}  // namespace

// Write the code of each id, add new ids to the table, and return the number of ids in it.
//
// Id i is `text[ends[i]:ends[i + 1]]`; the ids of the table likewise. There must be room for all
// that may be new, and eight bytes after the last text.
int64_t find_or_add(Ends ends, Bytes text, Array<uint64_t> slots, Array<int64_t> known_ends,
                    Array<uint8_t> known_text, int64_t n_known, Array<int32_t> codes) {
    const uint64_t slot_mask = slots.size() - 1;
    uint64_t hashes[BATCH];
    for (int64_t begin = 0; begin < codes.size(); begin += BATCH) {
        const int64_t n = std::min(BATCH, codes.size() - begin);
        // A slot, the index of its id's text, and the text are in tables that no cache holds, and
        // each is needed to find the next: waiting for them one by one takes three times as long.
        for (int64_t i = 0; i < n; ++i) {
            const int64_t first = ends[begin + i];
            hashes[i] = hash(text.data + first, ends[begin + i + 1] - first);
            prefetch(slots.data + (hashes[i] & slot_mask));
        }
        for (int64_t i = 0; i < n; ++i) {
            const uint64_t slot = slots[hashes[i] & slot_mask];
            if (slot != EMPTY) prefetch(known_ends.data + (slot & LOW));
        }
        for (int64_t i = 0; i < n; ++i) {
            const uint64_t slot = slots[hashes[i] & slot_mask];
            if (slot != EMPTY) prefetch(known_text.data + known_ends[slot & LOW]);
        }
        for (int64_t i = 0; i < n; ++i) {
            const uint64_t h = hashes[i];
            const uint8_t* const id = text.data + ends[begin + i];
            const int64_t length = ends[begin + i + 1] - ends[begin + i];
            for (uint64_t at = h & slot_mask;; at = (at + 1) & slot_mask) {
                const uint64_t slot = slots[at];
                const int64_t code = slot == EMPTY ? n_known : static_cast<int64_t>(slot & LOW);
                uint8_t* const known = known_text.data + known_ends[code];
                if (slot == EMPTY) {
                    std::memcpy(known, id, length);
                    known_ends[code + 1] = known_ends[code] + length;
                    slots[at] = (h << 32) | n_known++;
                } else if (slot >> 32 != h || known_ends[code + 1] - known_ends[code] != length ||
                           std::memcmp(known, id, length)) {
                    continue;
                }
                codes[begin + i] = static_cast<int32_t>(code);
                break;
            }
        }
    }
    return n_known;
}

// Copy the content of slots to a larger number of empty slots.
void rehash(Array<const uint64_t> slots, Array<uint64_t> more) {
    const uint64_t slot_mask = more.size() - 1;
    for (int64_t i = 0; i < slots.size(); ++i) {
        if (slots[i] == EMPTY) continue;
        uint64_t at = (slots[i] >> 32) & slot_mask;
        while (more[at] != EMPTY) at = (at + 1) & slot_mask;
        more[at] = slots[i];
    }
}

}  // namespace annotruth::ids

void annotruth::bind_ids(nb::module_& m) {
    using namespace ids;
    kernel(m, "find_or_add", find_or_add, "ends", "text", "slots", "known_ends", "known_text",
           "n_known", "codes");
    kernel(m, "rehash", rehash, "slots", "more");
}
