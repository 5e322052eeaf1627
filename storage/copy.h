/* The bytes of one open file into another. */
#ifndef SL_STORAGE_COPY_H
#define SL_STORAGE_COPY_H

#include "base/thread.h"
#include "storage/ops.h"

typedef struct sl_file_copy {
    const sl_file_ops *ops; /* of the file that is written */
    int by_system;          /* the system may copy by itself: share blocks, or move them without their coming here */
    int from, to;
    const char *from_path, *to_path;
    uint64_t size;
    sl_progress *progress; /* stepped by bytes, holes too */
} sl_file_copy;

/* All size bytes; what is a hole in the one is a hole in the other. What `to` held is gone, whether or not it succeeds.
 * While `from` is written to, each byte is what it was at some time between the beginning and the end. */
sl_status sl_copy_file(const sl_file_copy *copy);

#endif
