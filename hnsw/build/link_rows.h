/* Links the rows of a build, by leaves or one after another. */
#ifndef SL_HNSW_BUILD_LINK_ROWS_H
#define SL_HNSW_BUILD_LINK_ROWS_H

#include "hnsw/build/build.h"

/* Links the build's nodes, which have all else. AUTO inserts them where memory lacks for leaves, but not in
 * bounded memory. The new nodes' lists are empty after a failure.
 * Errors: SL_ENOMEM, SL_ECANCELED, SL_ENOSPC, SL_EIO. */
sl_status sl_build_link_rows(sl_build *build);
/* Tells whether n nodes from `first` on are linked at once, if this builder is asked for. */
int sl_build_is_from_leaves(const sl_index *index, sl_builder builder, size_t first, size_t n);
/* Refuses a builder that is none, or cannot serve for n more nodes. Errors: SL_EINVAL, SL_EUNSUPPORTED. */
sl_status sl_build_check_builder(const sl_index *index, sl_builder builder, size_t n);
/* Links nodes from `first` on, whose rows are there, as if they had just been added. Errors: SL_ENOMEM. */
sl_status sl_build_relink(sl_index *index, size_t first);

#endif
