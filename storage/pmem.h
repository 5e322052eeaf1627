/*
 * Persistent memory behind a few functions; nothing else knows libpmem.
 *
 * A build without libpmem works too, and so does a DAX file on a machine without persistent memory. They use the log
 * (writable.h).
 */
#ifndef SL_STORAGE_PMEM_H
#define SL_STORAGE_PMEM_H

#include "base/status.h"

/* Maps an open file for reading; the file may be on a DAX file system. */
sl_status sl_pmem_map(int fd, const char *path, uint64_t size, void **out);

/* Tells whether an open file that is not empty is on a DAX file system. Loads from a mapping there go to the memory
 * itself, and not to copies of its pages. errno stays. */
int sl_pmem_is_dax(int fd);

/* Maps path by libpmem for reading and for writing in place. PMEM_IS_PMEM_FORCE=1 has the last word, as everywhere in
 * libpmem.
 * Errors: SL_EUNSUPPORTED: this build has no libpmem, or the file is not in persistent memory. Its message is not
 * meant for the user. */
sl_status sl_pmem_map_direct(const char *path, uint64_t size, void **out);
void sl_pmem_unmap(void *base, uint64_t size);

/* libpmem's calls; without it they do nothing. */
void sl_pmem_flush(void *ctx, const void *at, size_t size, uint64_t offset);
void sl_pmem_drain(void *ctx);

#endif
