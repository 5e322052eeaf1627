/* Links the rows of a build, from leaves or one after another. */
#ifndef SL_HNSW_CONSTRUCT_LINK_ROWS_H
#define SL_HNSW_CONSTRUCT_LINK_ROWS_H

#include "hnsw/construct/build.h"

/* Links the build's nodes, which have rows, ids and slots already. If memory for leaves is lacking, AUTO inserts the
 * nodes instead; in bounded memory the call fails. After an error the new nodes have empty lists. An insertion that is
 * cancelled returns SL_OK, and leaves nodes unlinked. Errors: SL_ENOMEM, SL_ECANCELED, SL_ENOSPC, SL_EIO. */
sl_status sl_build_link_rows(sl_build *build);
/* Returns whether the builder would link n nodes, of which `first` is the first, from leaves. */
int sl_build_is_from_leaves(const sl_index *index, sl_builder builder, size_t first, size_t n);
/* Refuses an unknown builder, and one that can't link n more nodes. Errors: SL_EINVAL, SL_EUNSUPPORTED. */
sl_status sl_build_check_builder(const sl_index *index, sl_builder builder, size_t n);
/* Links the nodes from `first` on as if they had just been added. They have their rows already. Errors: SL_ENOMEM. */
sl_status sl_build_relink(sl_index *index, size_t first);

#endif
