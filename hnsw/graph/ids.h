/* The ids that users give to nodes, and the map from id to node. index.h has the accessors of a node's id. */
#ifndef SL_HNSW_GRAPH_IDS_H
#define SL_HNSW_GRAPH_IDS_H

#include "hnsw/graph/index.h"

/* Finds the node that has the id and is not deleted; SL_NONE: there is none. The first call makes the map.
 * Errors: SL_ENOMEM. Threads: any number of readers. */
sl_status sl_id_look(sl_index *index, uint64_t id, uint32_t *node);
/* The same, where the id must be there. Errors: SL_ENOTFOUND names the id; SL_ENOMEM. */
sl_status sl_id_find(sl_index *index, uint64_t id, uint32_t *node);

/* Finds the nodes of n ids. nodes[i] is SL_NONE where the index lacks ids[i]. Many ids at once take a fraction of the
 * time of as many calls. Errors: SL_ENOMEM. Threads: as of sl_id_look. */
sl_status sl_ids_find(sl_index *index, const uint64_t *ids, size_t n, uint32_t *nodes);

/* Gives ids to the n nodes that follow the last node. An id of a deleted node is free.
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

/* Counts nodes whose id an earlier node has too, without deleted nodes. A sound index has none. Errors: SL_ENOMEM. */
sl_status sl_ids_count_duplicates(const sl_graph *graph, size_t *duplicates);

#endif
