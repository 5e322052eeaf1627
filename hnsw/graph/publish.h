/* Publishing: the counts of an index that is written in place, and the order in which they change in persistent memory.
 */
#ifndef SL_HNSW_GRAPH_PUBLISH_H
#define SL_HNSW_GRAPH_PUBLISH_H

#include "hnsw/graph/index.h"
#include "storage/writable.h"

/* The facts on the file's head page. A thread reads each word whole. Beside another process's writer the words may come
 * from different syncs, so readers check each against the room before use. */
struct sl_published {
    uint64_t n;
    uint64_t linked; /* nodes below this number are linked; in persistent memory the rest may be half linked */
    uint64_t entry;  /* as sl_graph.entry */
    uint64_t next_id;
    uint64_t upper_count, upper_rows;
    uint64_t unverified, ordered;
    uint64_t tuned; /* valid records of section TUNED */
    double quant_error_sum, quant_error_max;
    uint64_t quant_error_count;
    uint64_t dead;     /* tombstones that are set in section DEAD */
    uint64_t deleting; /* 1: a writer in persistent memory is setting tombstones that `dead` does not count yet */
    uint64_t free;     /* tombstones of places without a vector */
    uint64_t commit;   /* the number of the commit that these words belong to; 0: the file counts none */
    uint64_t seal;     /* CRC-32C of the words before, and bit 32; 0: words may be of several commits */
};

/* Counts of nodes, slots and upper rows; or the room for them. */
typedef struct sl_extent {
    size_t n, slots, rows;
} sl_extent;

/* The facts of an index, or of a view of it. */
sl_published sl_published_of(const sl_index *index, const sl_graph *graph);

/* Checks that the facts fit the room. Errors: SL_ECORRUPT. */
sl_status sl_published_check(const sl_index *index, const sl_published *facts, sl_extent room);

/* Checks that no dead writer in persistent memory left unlinked nodes or uncounted tombstones. No process may write the
 * file meanwhile. Errors: SL_ECORRUPT, which sl_index_recover mends. */
sl_status sl_published_check_mended(const sl_index *index, const sl_published *facts);

/* Reads the facts, each word once. */
sl_published sl_published_read(const sl_published *facts);
/* Reads the facts of one commit. Returns 0 if a commit is writing them all the time. */
int sl_published_read_whole(const sl_published *facts, sl_published *out);
/* Makes the facts those of a commit. */
void sl_published_seal(sl_published *facts, uint64_t commit);

/* Returns whether the entry point's level, and its slot or node, exist in an index of these sizes. */
static inline int sl_published_has_entry(uint64_t entry, uint64_t n, uint64_t slots) {
    uint64_t level = entry >> 32, low = entry & UINT32_MAX;
    return n == 0 || (level <= SL_MAX_LEVEL && low < (level ? slots : n));
}

/* Returns a section in the mapping of an index that is written in place; NULL if the file lacks it. */
void *sl_section_in_file(const sl_index *index, uint32_t kind);

/* Returns the facts in that mapping. */
sl_published *sl_published_in_file(const sl_index *index);

/* Reserve blocks of the file before they are written: for nodes [n, n + more), and for slots and rows of the upper
 * layers. Do nothing without a writer. */
sl_status sl_publish_reserve_nodes(const sl_index *index, size_t more);
sl_status sl_publish_reserve_upper(const sl_index *index, size_t slots, size_t rows);

/* The functions below publish the steps of an add or a delete in persistent memory. On other media they do nothing. */

/* Says that from now on words of the head page change one by one. */
void sl_publish_unsealed(sl_index *index);
/* Publishes the number of nodes. The new nodes must have rows, and empty lists. */
void sl_publish_nodes(sl_index *index);
/* Publishes that the first `count` nodes are linked, and how many await the proof of reachability. After a crash, the
 * next writer links the rest again. */
void sl_publish_linked(sl_index *index, size_t count);
/* Publishes the entry point. */
void sl_publish_entry(sl_index *index);
/* Publishes that tombstones will be set now. */
void sl_publish_deleting(sl_index *index);
/* Publishes that the tombstones are set, and deleted_count. */
void sl_publish_deleted(sl_index *index);

#endif
