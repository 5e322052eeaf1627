#define _GNU_SOURCE
#include "storage/dirty.h"

#include <string.h>
#include <sys/mman.h>

static uint64_t words_for(uint64_t bits) {
    return bits / 64 + 1;
}

/* Words for the bits of lines, and the bits of words behind them. */
static uint64_t total_words(uint64_t lines) {
    return words_for(lines) + words_for(words_for(lines));
}

sl_status sl_dirty_init(sl_dirty *dirty, uint64_t size) {
    uint64_t lines = size / SL_DIRTY_LINE + 1;
    size_t bytes = (size_t)total_words(lines) * sizeof(uint64_t);
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) return sl_fail(SL_ENOMEM, "cannot get %zu bytes of addresses; raise their limit", bytes);
    *dirty = (sl_dirty){.lines = block, .words = (uint64_t *)block + words_for(lines), .count = lines};
    return SL_OK;
}

void sl_dirty_free(sl_dirty *dirty) {
    if (dirty->lines) munmap(dirty->lines, (size_t)total_words(dirty->count) * sizeof(uint64_t));
    *dirty = (sl_dirty){0};
}

void sl_dirty_mark(sl_dirty *dirty, uint64_t offset, uint64_t size) {
    if (!size) return;
    uint64_t last = (offset + size - 1) / SL_DIRTY_LINE;
    for (uint64_t line = offset / SL_DIRTY_LINE; line <= last; line++) {
        uint64_t word = line / 64, bit = (uint64_t)1 << (line % 64);
        /* Most lines of a list that is written again are marked already, and a look is cheaper than a locked write. */
        if (__atomic_load_n(&dirty->lines[word], __ATOMIC_RELAXED) & bit) continue;
        uint64_t before = __atomic_fetch_or(&dirty->lines[word], bit, __ATOMIC_RELAXED);
        if (before & bit) continue;
        __atomic_fetch_add(&dirty->marked, 1, __ATOMIC_RELAXED);
        if (!before) __atomic_fetch_or(&dirty->words[word / 64], (uint64_t)1 << (word % 64), __ATOMIC_RELAXED);
    }
}

/* The first set bit of [at, end); end: there is none. */
static uint64_t next_bit(const uint64_t *bits, uint64_t at, uint64_t end) {
    while (at < end) {
        uint64_t rest = bits[at / 64] >> (at % 64);
        if (rest) {
            at += (uint64_t)__builtin_ctzll(rest);
            return at < end ? at : end;
        }
        at = (at / 64 + 1) * 64;
    }
    return end;
}

uint64_t sl_dirty_next(const sl_dirty *dirty, uint64_t *offset, uint64_t most) {
    uint64_t line = *offset / SL_DIRTY_LINE, words = words_for(dirty->count);
    while (line < dirty->count) {
        uint64_t end = (line / 64 + 1) * 64;
        line = next_bit(dirty->lines, line, end < dirty->count ? end : dirty->count);
        if (line < end && line < dirty->count) break;
        line = next_bit(dirty->words, end / 64, words) * 64;
    }
    if (line >= dirty->count) return 0;
    uint64_t first = line;
    while (line < dirty->count && (line - first) * SL_DIRTY_LINE < most && (dirty->lines[line / 64] >> (line % 64) & 1))
        line++;
    *offset = first * SL_DIRTY_LINE;
    return (line - first) * SL_DIRTY_LINE;
}

void sl_dirty_clear(sl_dirty *dirty) {
    uint64_t words = words_for(dirty->count);
    for (uint64_t word = next_bit(dirty->words, 0, words); word < words; word = next_bit(dirty->words, word, words)) {
        dirty->lines[word] = 0;
        dirty->words[word / 64] &= ~((uint64_t)1 << (word % 64));
    }
    dirty->marked = 0;
}
