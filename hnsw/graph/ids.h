/* The users' ids of nodes, and the map from id to node. index.h has the accessors of one node's id. */
#ifndef SL_HNSW_GRAPH_IDS_H
#define SL_HNSW_GRAPH_IDS_H

#include "hnsw/graph/version.h"

/* Ids that are looked up while the lock is held once. */
#define SL_IDS_AT_ONCE 4096u

/* Finds a node of the id that isn't deleted in `graph`: a version that the caller reads, or the handle's own graph.
 * SL_NONE: there is none. The first call makes the map. Errors: SL_ENOMEM. Threads: any number. */
sl_status sl_id_lookup(sl_index *index, const sl_graph *graph, uint64_t id, uint32_t *node);
/* The same for an id that must be there. Errors: SL_ENOTFOUND names the id; SL_ENOMEM. */
sl_status sl_id_find(sl_index *index, const sl_graph *graph, uint64_t id, uint32_t *node);

/* Returns a sorted copy of n ids, which the caller frees, n words or one. Sets *status on failure, to SL_ENOMEM. */
uint64_t *sl_ids_sorted(const sl_allocator *allocator, const uint64_t *ids, size_t n, sl_status *status);

/* Returns SL_ENOTFOUND with a message that names the id. */
sl_status sl_id_missing(uint64_t id);

/* Finds a node of each of n ids; SL_NONE for ids that the index lacks. One call takes a fraction of the time of n calls
 * of sl_id_lookup. Errors, Threads: as of sl_id_lookup. */
sl_status sl_ids_lookup(sl_index *index, const sl_graph *graph, const uint64_t *ids, size_t n, uint32_t *nodes);

/* Begins a reading, and finds a node of each of n ids in it. Ids that change meanwhile are found as they were or as
 * they are, and none is missed. The caller ends the reading, also after a failure. Parameters: n: at most
 * SL_IDS_AT_ONCE. Errors: SL_ENOMEM. */
sl_status sl_ids_read(sl_index *index, sl_reading *reading, const uint64_t *ids, size_t n, uint32_t *nodes);
/* The same for one id, which must be there. Errors: SL_ENOTFOUND names the id; SL_ENOMEM. */
sl_status sl_id_read(sl_index *index, sl_reading *reading, uint64_t id, uint32_t *node);

/* The next undeleted node of the same id; SL_NONE: there is none. Starting from the node of sl_id_lookup, it gives all
 * nodes of an id, each once. Threads: the caller has the index for a change of its own. */
uint32_t sl_id_next(const sl_index *index, uint32_t node);

/* Nodes, in memory that the caller frees. */
typedef struct sl_node_list {
    uint32_t *nodes;
    size_t count, room;
} sl_node_list;
void sl_node_list_free(sl_node_list *list, const sl_allocator *allocator);
/* Adds a node to the list. Errors: SL_ENOMEM. */
sl_status sl_node_list_add(const sl_index *index, uint32_t node, sl_node_list *list);
/* Adds all nodes of an id to the list that aren't deleted in `graph`: at most one, unless ids may have several vectors.
 * Errors: SL_ENOMEM. Threads: as of sl_id_lookup. */
sl_status sl_id_nodes(sl_index *index, const sl_graph *graph, uint64_t id, sl_node_list *list);
/* Adds the nodes of n ids to the list. Errors: SL_EEXIST: an id stands twice in `ids`, unless ids may have several
 * vectors; SL_ENOMEM. Threads: the caller has the index for a change. */
sl_status sl_ids_nodes(sl_index *index, const uint64_t *ids, size_t n, sl_node_list *list);
/* Begins a reading, and does the same in it. The caller ends the reading, also after a failure. */
sl_status sl_id_read_nodes(sl_index *index, sl_reading *reading, uint64_t id, sl_node_list *list);

/* Returns whether each node's id is its number, the n new nodes included. The index then keeps no ids. */
int sl_ids_are_numbers(const sl_graph *graph, const uint64_t *ids, size_t n);
/* Bytes that appending n ids to an empty index allocates, for ids and map. The index has room for n nodes. */
size_t sl_ids_bytes(const sl_graph *graph, size_t n);

/* The ids of new nodes. */
typedef struct sl_new_ids {
    const uint64_t *ids; /* NULL: numbers from next_id on */
    size_t n;
    const uint32_t *places; /* the nodes; NULL: those behind the last one */
    int replace; /* 1: an id may be that of a node, which the map goes on to name; then all ids differ, or ids may have
                    several vectors */
} sl_new_ids;

/* Gives ids to new nodes. An id is free if no undeleted node has it. If ids may have several vectors, every id is free.
 * Errors: SL_EEXIST names the row; SL_EINVAL, SL_ELIMIT, SL_ENOMEM. A failure changes nothing. */
sl_status sl_ids_append(sl_index *index, const sl_new_ids *rows);
/* Takes a node out of the map. The caller holds the lock. */
void sl_id_remove(sl_index *index, uint32_t node);
/* Makes the map name a node in place of a deleted one. The caller holds the lock. */
void sl_id_put(sl_index *index, uint32_t node);
/* Undoes an append, of nodes that no longer count. Parameters: `next_id`: as it was before the append. */
void sl_ids_undo(sl_index *index, const sl_new_ids *rows, uint64_t next_id);

/* Frees the map after nodes or ids have moved. The next look-up makes it again. */
void sl_ids_forget(sl_index *index);
/* The same for a caller that holds the lock. */
void sl_ids_forget_now(sl_index *index);

/* Replaces the index's ids by an array of 64-bit ids, which the index then owns. The caller holds the lock.
 * Parameters: `ids` has room for `capacity` nodes, and ids for the first n. */
void sl_ids_adopt(sl_index *index, uint64_t *ids);

/* Counts the undeleted nodes whose id an earlier node has. If an id has one vector, a sound index has none.
 * Errors: SL_ENOMEM. */
sl_status sl_ids_count_duplicates(const sl_graph *graph, size_t *duplicates);

#endif
