/* The users' ids of nodes, and the map from id to node. index.h has the accessors of one node's id. */
#ifndef SL_HNSW_GRAPH_IDS_H
#define SL_HNSW_GRAPH_IDS_H

#include "hnsw/graph/index.h"

/* Finds an undeleted node of the id; SL_NONE: there is none. The first call makes the map.
 * Errors: SL_ENOMEM. Threads: any number of readers. */
sl_status sl_id_lookup(sl_index *index, uint64_t id, uint32_t *node);
/* The same for an id that must be there. Errors: SL_ENOTFOUND names the id; SL_ENOMEM. */
sl_status sl_id_find(sl_index *index, uint64_t id, uint32_t *node);

/* Returns SL_ENOTFOUND with a message that names the id. */
sl_status sl_id_missing(uint64_t id);

/* Finds a node of each of n ids; SL_NONE for ids that the index lacks. One call takes a fraction of the time of n calls
 * of sl_id_lookup. Errors, Threads: as of sl_id_lookup. */
sl_status sl_ids_lookup(sl_index *index, const uint64_t *ids, size_t n, uint32_t *nodes);

/* The next undeleted node of the same id; SL_NONE: there is none. Starting from the node of sl_id_lookup, it gives all
 * nodes of an id, each once. Don't call it on a handle that follows a file, since the map may move meanwhile. */
uint32_t sl_id_next(const sl_index *index, uint32_t node);

/* Nodes, in memory that the caller frees. */
typedef struct sl_node_list {
    uint32_t *nodes;
    size_t count, room;
} sl_node_list;
void sl_node_list_free(sl_node_list *list, const sl_allocator *allocator);
/* Adds all undeleted nodes of an id to the list: at most one, unless ids may have several vectors.
 * Errors: SL_ENOMEM. Threads: as of sl_id_lookup. */
sl_status sl_id_nodes(sl_index *index, uint64_t id, sl_node_list *list);

/* Returns whether each node's id is its number, the n new nodes included. The index then keeps no ids. */
int sl_ids_are_numbers(const sl_graph *graph, const uint64_t *ids, size_t n);
/* Bytes that appending n ids to an empty index allocates, for ids and map. The index has room for n nodes. */
size_t sl_ids_bytes(const sl_graph *graph, size_t n);

/* Gives ids to the n nodes behind the last one. An id is free if no undeleted node has it. If ids may have several
 * vectors, every id is free.
 * Parameters: `ids`: n ids; NULL: numbers from next_id on.
 * Errors: SL_EEXIST names the row; SL_EINVAL, SL_ELIMIT, SL_ENOMEM. A failure changes nothing. */
sl_status sl_ids_append(sl_index *index, const uint64_t *ids, size_t n);
/* Undoes an append. Parameters: `next_id`: as it was before the append. */
void sl_ids_undo(sl_index *index, uint64_t next_id);

/* Frees the map after nodes or ids have moved. The next look-up makes it again. */
void sl_ids_forget(sl_index *index);

/* Replaces the index's ids by an array of 64-bit ids, which the index then owns.
 * Parameters: `ids` has room for `capacity` nodes, and ids for the first n. */
void sl_ids_adopt(sl_index *index, uint64_t *ids);

/* Counts the undeleted nodes whose id an earlier node has. If an id has one vector, a sound index has none.
 * Errors: SL_ENOMEM. */
sl_status sl_ids_count_duplicates(const sl_graph *graph, size_t *duplicates);

#endif
