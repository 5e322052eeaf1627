/* An index in a file that is written in place: what of it changes besides its arrays, and how much room those have. */
#ifndef SL_HNSW_GRAPH_PUBLISH_H
#define SL_HNSW_GRAPH_PUBLISH_H

#include "hnsw/graph/index.h"
#include "storage/writable.h"

/* The head page of the file, in words that are read whole. Whoever follows a file that another process writes to may
 * see some of them older than others: each is clamped to the room there is before it is used. */
struct sl_published {
    uint64_t n;
    uint64_t linked; /* nodes below it have been linked; in persistent memory those from there on may be half so */
    uint64_t entry;  /* as sl_index.entry */
    uint64_t next_id;
    uint64_t upper_count, upper_rows;
    uint64_t unverified, ordered;
    uint64_t tuned; /* records of section TUNED that count */
    double quant_error_sum, quant_error_max;
    uint64_t quant_error_count;
    uint64_t dead;     /* bits that are set of section DEAD */
    uint64_t deleting; /* 1: in persistent memory, bits are being set that `dead` does not count yet */
};

/* How many of what an array has, or has room for. */
typedef struct sl_extent {
    size_t n, slots, rows;
} sl_extent;

/* The facts of an index as this view of it, or its own graph, says. */
sl_published sl_published_of(const sl_index *index, const sl_graph *graph);

/* SL_ECORRUPT for facts that cannot be those of an index with this room. */
sl_status sl_published_check(const sl_index *index, const sl_published *facts, sl_extent room);

/* SL_ECORRUPT for those of a file that nobody writes, where a writer in persistent memory has left nodes unlinked or
 * marks uncounted: sl_index_recover puts it right. */
sl_status sl_published_check_mended(const sl_index *index, const sl_published *facts);

/* The facts as they are now, each read once. */
sl_published sl_published_read(const sl_published *facts);

/* Whether the entry point is in an index of these sizes: its slot and its level, or the node itself. */
static inline int sl_published_has_entry(uint64_t entry, uint64_t n, uint64_t slots) {
    uint64_t level = entry >> 32, low = entry & UINT32_MAX;
    return n == 0 || (level <= SL_MAX_LEVEL && low < (level ? slots : n));
}

/* A section's place in the mapping of an index that is written in place; NULL where it has none such. */
void *sl_section_in_file(const sl_index *index, uint32_t kind);

/* The facts where they lie in that mapping. */
sl_published *sl_published_in_file(const sl_index *index);

/* In persistent memory, where an add is published step by step; nothing elsewhere.
 * reserve: blocks for nodes [n, n + more) and `slots` and `rows` of the upper layers, before they are written to.
 * publish: there are index->n nodes now, whose rows are written and whose lists are empty.
 * linked: the first so many are linked; a crash has all from there on linked anew. entry: the entry point is what it is
 * now. */
sl_status sl_publish_reserve_nodes(const sl_index *index, size_t more);
sl_status sl_publish_reserve_upper(const sl_index *index, size_t slots, size_t rows);
void sl_publish_nodes(sl_index *index);
void sl_publish_linked(sl_index *index, size_t count);
void sl_publish_entry(sl_index *index);
/* deleting: marks of deletion are about to be set. deleted: they are, and dead_count is right. */
void sl_publish_deleting(sl_index *index);
void sl_publish_deleted(sl_index *index);

/* Makes a full list of links hold `count` ids and nothing else, at most one of which it has not held: after each store,
 * and so after a crash between any two, every link that stays is there, one of them perhaps twice. */
void sl_links_become(const sl_index *index, uint32_t *links, size_t degree, const uint32_t *ids, size_t count);

/* Takes away links that stand twice in a list, as a crash may leave them. */
void sl_links_tidy(const sl_index *index, uint32_t *links, size_t degree);

/* What a reader sees of the index: a copy of its graph in *copy, brought up to date, where the handle follows a file
 * that another process writes; else the index's own graph. */
const sl_graph *sl_view_of(const sl_index *index, sl_graph *copy);

/* Puts into a view of the index what the file's writer has published since. Nothing changes where what is read does not
 * fit the room. */
void sl_view_follow(const sl_index *index, sl_graph *view);

#endif
