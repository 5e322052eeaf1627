/* The ids that users give to nodes, and the map from id to node. index.h has the accessors of a node's id. */
#ifndef SL_HNSW_GRAPH_IDS_H
#define SL_HNSW_GRAPH_IDS_H

#include "hnsw/graph/index.h"

/* Finds a node that has the id and is not deleted; SL_NONE: there is none. The first call makes the map.
 * Errors: SL_ENOMEM. Threads: any number of readers. */
sl_status sl_id_lookup(sl_index *index, uint64_t id, uint32_t *node);
/* The same, where the id must be there. Errors: SL_ENOTFOUND names the id; SL_ENOMEM. */
sl_status sl_id_find(sl_index *index, uint64_t id, uint32_t *node);

/* Returns SL_ENOTFOUND, and names the id. */
sl_status sl_id_missing(uint64_t id);

/* Finds a node of each of n ids. nodes[i] is SL_NONE where the index lacks ids[i]. Many ids at once take a fraction of
 * the time of as many calls. Errors: SL_ENOMEM. Threads: as of sl_id_lookup. */
sl_status sl_ids_lookup(sl_index *index, const uint64_t *ids, size_t n, uint32_t *nodes);

/* Returns another node of the same id that is not deleted; SL_NONE: there is none. Following it from what sl_id_lookup
 * found gives all nodes of an id, each once. The handle must not follow a file, whose map may move. */
uint32_t sl_id_next(const sl_index *index, uint32_t node);

/* Nodes in memory that the caller frees. */
typedef struct sl_node_list {
    uint32_t *nodes;
    size_t count, room;
} sl_node_list;
void sl_node_list_free(sl_node_list *list, const sl_allocator *allocator);
/* Adds all nodes of an id that are not deleted. An index of one vector an id has one at most.
 * Errors: SL_ENOMEM. Threads: as of sl_id_lookup. */
sl_status sl_id_nodes(sl_index *index, uint64_t id, sl_node_list *list);

/* Tells whether every node's id, with the n new ones, is the node's number. The index then keeps no ids. */
int sl_ids_are_numbers(const sl_graph *graph, const uint64_t *ids, size_t n);
/* Bytes that appending n ids to an empty index allocates: the ids, and a map of them. The index has room for n nodes.
 */
size_t sl_ids_bytes(const sl_graph *graph, size_t n);

/* Gives ids to the n nodes that follow the last node. An id of a deleted node is free, and in an index of several
 * vectors an id every id is.
 * Parameters: `ids` is NULL, which continues from next_id, or has n entries.
 * Errors: SL_EEXIST names the row; SL_EINVAL, SL_ELIMIT, SL_ENOMEM. A failure changes nothing. */
sl_status sl_ids_append(sl_index *index, const uint64_t *ids, size_t n);
/* Takes back an append. Parameters: `next_id` is the one from before the append. */
void sl_ids_undo(sl_index *index, uint64_t next_id);

/* Frees the map, because nodes have got other ids or an id another node. The next look-up makes the map again. */
void sl_ids_forget(sl_index *index);

/* Takes over an array of 64-bit ids in place of the index's own.
 * Parameters: `ids` has room for `capacity` nodes, and ids for the first n. */
void sl_ids_adopt(sl_index *index, uint64_t *ids);

/* Counts nodes whose id an earlier node has too, without deleted nodes. A sound index of one vector an id has none.
 * Errors: SL_ENOMEM. */
sl_status sl_ids_count_duplicates(const sl_graph *graph, size_t *duplicates);

#endif
