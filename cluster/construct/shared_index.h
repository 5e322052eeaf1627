/* An index that all ranks build together. Each rank has a handle, and its share of the work. */
#ifndef SL_CLUSTER_CONSTRUCT_SHARED_INDEX_H
#define SL_CLUSTER_CONSTRUCT_SHARED_INDEX_H

#include "cluster/construct/share.h"
#include "storage/work.h"

/* Returns whether ranks can share the adding of n vectors to this empty index: its builder takes leaves. Inserts need
 * the whole graph, so one rank makes them all. */
int sl_shared_index_can_add(const sl_index *index, sl_builder builder, size_t n);

/* Makes the next add and the next save the work of all ranks. `s` must outlive both. Every rank calls, with an empty
 * index of the same parameters, before it reserves room, and with a builder for which sl_shared_index_can_add is true.
 * `is_parted`: each rank keeps the refinements of its own vectors alone. The index can then only be saved, without
 * room, and max_memory does not count these rows. */
void sl_shared_index_begin(sl_index *index, const sl_rank_share *s, int is_parted);

/* Returns how many leaves the add had to compare, and how many of them earlier runs had compared. */
sl_work_counts sl_shared_index_counts(const sl_index *index);

/* Path of a rank's work file beside the output, to be freed by free(). NULL: no memory. */
char *sl_rank_work_path(const char *output, size_t rank);
/* Lets this rank go on from what earlier runs have left: of the work files beside the output, it reads those whose
 * number, modulo the ranks, is its own. An earlier run may have had another number of ranks. The index was created with
 * the rank's own work file. Errors: those of the work file; SL_EIO, SL_ENOMEM. */
sl_status sl_shared_index_resume(sl_index *index, const char *output, const sl_comm *comm);

#endif
