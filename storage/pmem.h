/*
 * Persistent memory behind a few functions, so that nothing else knows libpmem: a build without it, or a DAX file on a
 * machine that has none, works too, by way of the log (writable.h).
 */
#ifndef SL_STORAGE_PMEM_H
#define SL_STORAGE_PMEM_H

#include "base/status.h"

/* Maps an open file to be read, so that it may be on a DAX file system. */
sl_status sl_pmem_map(int fd, const char *path, uint64_t size, void **out);

/* Whether an open file, which is not empty, is on a DAX file system, that is, whether loads from a mapping of it go to
 * the memory itself and not to copies of its pages. errno stays. */
int sl_pmem_is_dax(int fd);

/* Maps path to be read and written in place by libpmem. SL_EUNSUPPORTED, without a message for the user, where this
 * build has no libpmem or the file does not lie in persistent memory (PMEM_IS_PMEM_FORCE=1 has the last word, as
 * everywhere in libpmem). */
sl_status sl_pmem_map_direct(const char *path, uint64_t size, void **out);
void sl_pmem_unmap(void *base, uint64_t size);

/* libpmem's; nothing without it. */
void sl_pmem_flush(void *ctx, const void *at, size_t size, uint64_t offset);
void sl_pmem_drain(void *ctx);

#endif
