/* Versions: what readers see of a graph while writers change it.
 *
 *   writer:  change the handle's graph --> sl_version_publish: a copy of it becomes the current version
 *   reader:  sl_reading_begin: the current version --> its arrays stay until sl_reading_end
 *
 * A version's fields never change. Its arrays are those of the handle's graph. So links change under a reader, and any
 * mixture of old and new links is valid. Rows of a node stay as long as a reader may find the node. A writer that
 * replaces an array leaves the old one to the version, which is freed with it, once no reader can hold it: see
 * base/epochs.h.
 *
 * Changes pass a gate, one at a time. Readers don't pass it. */
#ifndef SL_HNSW_GRAPH_VERSION_H
#define SL_HNSW_GRAPH_VERSION_H

#include "base/epochs.h"
#include "base/gate.h"
#include "hnsw/graph/index.h"

typedef struct sl_graph_version sl_graph_version;

struct sl_versions {
    const sl_graph *current; /* atomic: the current version's graph */
    sl_epochs epochs;
    sl_gate gate;
    sl_gate saves;      /* one save at a time. A save enters it before `gate` */
    int places_stay;    /* atomic: 1 while a save reads places of deleted nodes without the gate */
    sl_spin publishing; /* held while a version is published, and while the map of ids is read or changes */
    /* Under `publishing`. */
    sl_graph_version *retired, **retired_end; /* replaced versions, oldest first */
    size_t retired_count, retired_bytes;      /* of these; the bytes with the arrays that are freed with them */
    sl_graph_version *spare;                  /* versions to be filled */
    size_t spares;
};

/* Makes the first version, of an empty graph. Errors: SL_ENOMEM. */
sl_status sl_versions_init(sl_index *index);
/* Frees all versions and what only they have. The index's own arrays stay. */
void sl_versions_free(sl_index *index);

/* Bytes of a version, without its arrays. */
size_t sl_version_bytes(void);

/* Retired versions that readers may still read, and the epochs that hold them. */
typedef struct sl_versions_held {
    uint64_t epoch, oldest; /* the current one; the oldest that a reader announces, as of sl_epochs_oldest */
    size_t versions, bytes;
} sl_versions_held;
/* Threads: any, at any time. The caller reads no version. */
sl_versions_held sl_versions_get_held(const sl_index *index);

/* Returns whether the current version has nodes, which searches may be reading. */
int sl_version_is_read(const sl_index *index);

/* Makes sure that `count` versions can be published without a failure. Errors: SL_ENOMEM. */
sl_status sl_version_reserve(sl_index *index, size_t count);
/* Frees reserved versions that weren't needed. */
void sl_version_unreserve(sl_index *index);
/* Makes the handle's graph, as it is, the current version. Needs a reserved version. The caller holds the lock. */
void sl_version_publish(sl_index *index);
/* The same for a caller that doesn't hold the lock. */
void sl_version_publish_now(sl_index *index);

/* Frees a block that the handle's graph no longer uses, unless the current version has it. Then the version frees it.
 */
void sl_version_release(const sl_index *index, const sl_allocator *allocator, void *block, size_t size);
/* The same for partitions. */
void sl_version_release_partitions(const sl_index *index, sl_partitions *partitions);

/* One use of the current version. */
typedef struct sl_reading {
    const sl_index *index;
    sl_epoch_reader *reader;
    const sl_graph *graph;
    sl_graph view; /* of a handle that follows a file: the version, with the file's counts */
} sl_reading;

/* Returns the current version's graph, which stays until sl_reading_end. Threads: any, at any time; never waits. */
const sl_graph *sl_reading_begin(const sl_index *index, sl_reading *reading);
void sl_reading_end(sl_reading *reading);

/* Lock what versions and the map of ids have together. A reading that begins under the lock sees the nodes that the map
 * names. Hold it for some thousand look-ups at most. */
void sl_publishing_lock(const sl_index *index);
void sl_publishing_unlock(const sl_index *index);

/* Begin and end a change of the handle's graph by one thread alone. Errors: SL_EBUSY, in a forked child; SL_EIO: a sync
 * of the file has failed. */
static inline sl_status sl_change_begin(const sl_index *index) {
    SL_TRY(sl_gate_enter(&index->versions->gate));
    const sl_status status = index->writer ? sl_writable_check_failed(index->writer) : SL_OK;
    if (status != SL_OK) sl_gate_leave(&index->versions->gate);
    return status;
}
static inline void sl_change_end(const sl_index *index) {
    sl_gate_leave(&index->versions->gate);
}

/* Begins and ends a time in which writers neither free nor take places of deleted nodes. It begins within the gate. */
static inline void sl_version_keep_places(const sl_index *index, int keep) {
    __atomic_store_n(&index->versions->places_stay, keep, __ATOMIC_RELEASE);
}
/* Sets whether places stay. The caller is alone in the gate. */
static inline int sl_version_places_stay(const sl_index *index) {
    return __atomic_load_n(&index->versions->places_stay, __ATOMIC_ACQUIRE);
}

/* The same for a reader that keeps its announcement. */
const sl_graph *sl_version_enter(const sl_index *index, sl_epoch_reader *reader);
void sl_version_exit(const sl_index *index, sl_epoch_reader *reader);

#endif
