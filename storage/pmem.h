/* Persistent memory behind a few functions. Nothing else knows libpmem.
 *
 * Without libpmem, or without persistent memory under a DAX file, the log is used: see writable.h. */
#ifndef SL_STORAGE_PMEM_H
#define SL_STORAGE_PMEM_H

#include "base/status.h"

/* Maps an open file for reading. The file may be on a DAX file system. */
sl_status sl_pmem_map(int fd, const char *path, uint64_t size, void **out);

/* Returns whether an open file that isn't empty is on a DAX file system. Loads from a mapping then go to the memory
 * itself, not to copies of its pages. errno is kept. */
int sl_pmem_is_dax(int fd);

/* Maps path by libpmem, for reading and for writing in place. PMEM_IS_PMEM_FORCE=1 has the last word, as everywhere in
 * libpmem.
 * Errors: SL_EUNSUPPORTED: this build has no libpmem, or the file isn't in persistent memory. The user never sees this
 * message. */
sl_status sl_pmem_map_direct(const char *path, uint64_t size, void **out);
void sl_pmem_unmap(void *base, uint64_t size);

/* libpmem's calls; they do nothing without it. */
void sl_pmem_flush(void *ctx, const void *at, size_t size, uint64_t offset);
void sl_pmem_drain(void *ctx);

#endif
