/*
 * Joining graphs: an index gets nodes of several indexes, whose lists serve on. Each node walks over the larger ones to
 * what is near to it. The smaller ones' nodes tell the larger ones' that way.
 */
#ifndef SL_HNSW_BUILD_JOIN_H
#define SL_HNSW_BUILD_JOIN_H

#include "hnsw/build/build.h"
#include "hnsw/build/neighbour_lists.h"

/* A join under way. */
typedef struct sl_join {
    const sl_copied *copied;
    const sl_points *points; /* all nodes of the new index */
    uint32_t **new_of;       /* of each graph: node -> node of the new index, SL_NONE where it was not copied */
    size_t *copied_nodes;    /* of each graph: nodes that were copied */
} sl_join;

/* Sets *kind to SL_JOIN_OVER_LARGER where n rows of several graphs are to be joined: the graphs were made as the new
 * index is, at least half of each is copied, and there are no more walks than rows. Else *kind stays
 * as it is. Errors: SL_ENOMEM. */
sl_status sl_join_choose(const sl_graph *graph, const sl_copied *copied, size_t n, sl_join_kind *kind);

/* Makes the maps of nodes. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_join_init(sl_join *join, const sl_copied *copied, const sl_points *points);
void sl_join_free(sl_join *join);

/* Lists what each node is near to in larger graphs, and behind its links to nodes that were not copied. The result
 * does not depend on the number of threads. The caller frees, also on failure. Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_join_neighbours(const sl_join *join, sl_neighbour_lists *neighbours);

/* Appends what each node's list has in its old graph to `links`, `degree` entries a node, while a list is shorter than
 * it was there. */
void sl_join_append_old(const sl_join *join, size_t degree, uint32_t *links);

/* Gives an index without partitions those of the graphs whose rows it has. Numbering then begins at their centroids.
 * Errors: SL_ENOMEM. */
sl_status sl_join_partitions(const sl_copied *copied, size_t n, sl_graph *graph);

#endif
