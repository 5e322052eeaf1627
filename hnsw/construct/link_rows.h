/* Links the rows of a build, from leaves or one after another. */
#ifndef SL_HNSW_CONSTRUCT_LINK_ROWS_H
#define SL_HNSW_CONSTRUCT_LINK_ROWS_H

#include "hnsw/construct/build.h"

/* Links the build's nodes, whose rows, ids and slots are there. AUTO inserts them if memory for leaves is lacking, but
 * not in bounded memory. After a failure the new nodes' lists are empty. Errors: SL_ENOMEM, SL_ECANCELED, SL_ENOSPC,
 * SL_EIO. */
sl_status sl_build_link_rows(sl_build *build);
/* Whether this builder links n nodes from `first` on from leaves. */
int sl_build_is_from_leaves(const sl_index *index, sl_builder builder, size_t first, size_t n);
/* Refuses an unknown builder, and one that can't link n more nodes. Errors: SL_EINVAL, SL_EUNSUPPORTED. */
sl_status sl_build_check_builder(const sl_index *index, sl_builder builder, size_t n);
/* Links nodes from `first` on, whose rows are there, as if they had just been added. Errors: SL_ENOMEM. */
sl_status sl_build_relink(sl_index *index, size_t first);

#endif
