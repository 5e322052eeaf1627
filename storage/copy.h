/* Copies an open file's bytes into another. */
#ifndef SL_STORAGE_COPY_H
#define SL_STORAGE_COPY_H

#include "base/thread.h"
#include "storage/ops.h"

typedef struct sl_file_copy {
    const sl_file_ops *ops; /* of the written file */
    int by_system;          /* 1: the system may share blocks, or copy bytes by itself */
    int from, to;
    const char *from_path, *to_path;
    uint64_t size;
    sl_progress *progress; /* stepped by bytes, holes included */
} sl_file_copy;

/* Copies all `size` bytes. Holes stay holes. The old content of `to` is lost, even on failure. If `from` is written
 * meanwhile, each copied byte is one that it had during the call. */
sl_status sl_copy_file(const sl_file_copy *copy);

#endif
