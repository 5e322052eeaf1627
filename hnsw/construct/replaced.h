/* The vectors that an add replaces. */
#ifndef SL_HNSW_CONSTRUCT_REPLACED_H
#define SL_HNSW_CONSTRUCT_REPLACED_H

#include "hnsw/construct/build.h"

/* Lists the nodes that the build's rows replace, which sl_replace says, and makes sure that their lives can end.
 * Parameters: ids: one a row; NULL: no row replaces any.
 * Errors: SL_EEXIST: an id stands twice, unless ids may have several vectors; SL_EUNSUPPORTED: the index lies in
 * persistent memory that is written directly; SL_ENOMEM. */
sl_status sl_replaced_list(sl_build *build, const uint64_t *ids);

#endif
