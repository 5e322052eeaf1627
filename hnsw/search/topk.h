/* The k best of a stream of scores, in a heap whose root is the worst entry kept. Larger scores are better. Among equal
 * scores the smaller id is better. */
#ifndef SL_HNSW_SEARCH_TOPK_H
#define SL_HNSW_SEARCH_TOPK_H

#include <stddef.h>
#include <stdint.h>

typedef struct sl_top_entry {
    double score;
    uint64_t id;
} sl_top_entry;

typedef struct sl_top {
    sl_top_entry *entries;
    size_t size, k;
} sl_top;

static inline int sl_top_worse(sl_top_entry a, sl_top_entry b) {
    return a.score < b.score || (a.score == b.score && a.id > b.id);
}

/* Sifts `entry` down from the root of a heap of `size` entries. */
static inline void sl_top_sink(sl_top_entry *entries, size_t size, sl_top_entry entry) {
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && sl_top_worse(entries[child + 1], entries[child])) child++;
        if (!sl_top_worse(entries[child], entry)) break;
        entries[at] = entries[child];
    }
    entries[at] = entry;
}

/* Adds the entry if it's among the k best so far. Never adds NaN. */
static inline void sl_top_push(sl_top *top, double score, uint64_t id) {
    sl_top_entry entry = {score, id};
    if (score != score) return;
    if (top->size < top->k) {
        size_t at = top->size++;
        for (; at > 0 && sl_top_worse(entry, top->entries[(at - 1) / 2]); at = (at - 1) / 2)
            top->entries[at] = top->entries[(at - 1) / 2];
        top->entries[at] = entry;
    } else if (sl_top_worse(top->entries[0], entry)) {
        sl_top_sink(top->entries, top->size, entry);
    }
}

/* Sorts the entries in place, best first. They form no heap any more. */
static inline void sl_top_sort(sl_top *top) {
    for (size_t size = top->size; size > 1; size--) {
        sl_top_entry worst = top->entries[0], last = top->entries[size - 1];
        sl_top_sink(top->entries, size - 1, last);
        top->entries[size - 1] = worst;
    }
}

/* Merges sorted entries into `into`, whose entries are sorted too and have room for all. */
static inline void sl_top_merge(sl_top *into, const sl_top_entry *more, size_t count) {
    size_t a = into->size, b = count, at = a + b;
    into->size = at;
    while (b > 0) {
        int first = a > 0 && sl_top_worse(into->entries[a - 1], more[b - 1]);
        into->entries[--at] = first ? into->entries[--a] : more[--b];
    }
}

#endif
