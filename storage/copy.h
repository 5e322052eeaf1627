/* Copies the bytes of one open file into another. */
#ifndef SL_STORAGE_COPY_H
#define SL_STORAGE_COPY_H

#include "base/thread.h"
#include "storage/ops.h"

typedef struct sl_file_copy {
    const sl_file_ops *ops; /* of the file that is written */
    int by_system;          /* the system may share blocks, or move bytes without their coming here */
    int from, to;
    const char *from_path, *to_path;
    uint64_t size;
    sl_progress *progress; /* stepped by bytes, holes too */
} sl_file_copy;

/* Copies all `size` bytes. A hole stays a hole. The old content of `to` is gone, also on failure. If `from` is
 * written to meanwhile, each byte is one that it had at some time in the call. */
sl_status sl_copy_file(const sl_file_copy *copy);

#endif
