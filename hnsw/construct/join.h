/* Joins graphs: makes one graph of several, whose lists stay in use. Each node walks over the larger graphs. The nodes
 * that its walks find become candidates for its list, and it becomes a candidate for theirs. */
#ifndef SL_HNSW_CONSTRUCT_JOIN_H
#define SL_HNSW_CONSTRUCT_JOIN_H

#include "hnsw/construct/build.h"
#include "hnsw/construct/neighbour_lists.h"

/* A join, and the numbers that the copied nodes have in the new index. */
typedef struct sl_join {
    const sl_copied *copied;
    const sl_points *points; /* all nodes of the new index */
    uint32_t **new_of;       /* for each graph: node -> node of the new index; SL_NONE: not copied */
    size_t *copied_nodes;    /* for each graph: the number of its nodes that are copied */
} sl_join;

/*
 * Sets *kind to SL_JOIN_OVER_LARGER if joining n rows of several graphs pays, else leaves it.
 *
 * It pays if the graphs have the new index's m and at least its ef_construction. Half or more of each must be copied,
 * and there must be no more walks than rows. Errors: SL_ENOMEM.
 */
sl_status sl_join_choose(const sl_graph *graph, const sl_copied *copied, size_t n, sl_join_kind *kind);

/* Maps the nodes of the graphs to those of the new index. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_join_init(sl_join *join, const sl_copied *copied, const sl_points *points);
void sl_join_free(sl_join *join);

/* Lists each node's nearest among two kinds of candidates: hits of its walks over larger graphs, and neighbours of
 * linked nodes that weren't copied. The lists don't depend on the number of threads. The caller frees, also on failure.
 * Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_join_neighbours(const sl_join *join, sl_neighbour_lists *neighbours);

/* Appends links of a node's old list to its new list, until that is as long as the old one was. Links to nodes that
 * weren't copied are left out. `links`: `degree` places per node. */
void sl_join_append_old(const sl_join *join, size_t degree, uint32_t *links);

/* Gives the new index the partitions of the graphs that it's made of. Numbering then starts from their centroids.
 * Errors: SL_ENOMEM. */
sl_status sl_join_partitions(const sl_copied *copied, size_t n, sl_graph *graph);

#endif
