#include "hnsw/search/allowed.h"

static sl_range within(const sl_allowed *allowed, sl_range range) {
    if (range.end > allowed->n) range.end = allowed->n;
    if (range.first > range.end) range.first = range.end;
    return range;
}

/* The allowed nodes among the 64 of a word that lie in the range. */
static inline uint64_t part_of(const sl_allowed *allowed, size_t word, sl_range range) {
    uint64_t part = sl_allowed_word(allowed, word);
    if (word == range.first / 64) part &= ~(uint64_t)0 << (range.first % 64);
    if (word == range.end / 64) part &= ~(~(uint64_t)0 << (range.end % 64));
    return part;
}

size_t sl_allowed_count(const sl_allowed *allowed, sl_range range) {
    size_t count = 0;
    range = within(allowed, range);
    for (size_t word = range.first / 64; word * 64 < range.end; word++)
        count += (size_t)__builtin_popcountll(part_of(allowed, word, range));
    return count;
}

size_t sl_allowed_take(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room) {
    const sl_range whole = within(allowed, *range);
    size_t count = 0, word = whole.first / 64;
    for (; word * 64 < whole.end && count + 64 <= room; word++)
        for (uint64_t left = part_of(allowed, word, whole); left; left &= left - 1)
            nodes[count++] = (uint32_t)(word * 64 + (size_t)__builtin_ctzll(left));
    size_t next = word * 64;
    range->first = next < whole.end ? next : range->end;
    return count;
}

/* The range has places in the list, if there is a list, else nodes. */
sl_range sl_allowed_whole(const sl_allowed *allowed) {
    return (sl_range){0, allowed->nodes ? allowed->listed : allowed->n};
}

size_t sl_allowed_next(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room) {
    if (!allowed->nodes) return sl_allowed_take(allowed, range, nodes, room);
    size_t count = 0;
    for (; range->first < range->end && count < room; range->first++) {
        nodes[count] = allowed->nodes[range->first];
        count += (size_t)sl_is_allowed(allowed, nodes[count]);
    }
    return count;
}
