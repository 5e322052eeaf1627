/* The system's file operations and whatever a caller puts in their place, and the loops round them. */
#ifndef SL_STORAGE_OPS_H
#define SL_STORAGE_OPS_H

#include "base/status.h"

#include <sys/stat.h>

/* *given with the system's for what it leaves out; the system's alone where given is NULL. */
sl_file_ops sl_file_ops_of(const sl_file_ops *given);

/* All of data at offset; interrupted and short writes are gone on with. Failures name the path. */
sl_status sl_write_at(const sl_file_ops *ops, int fd, const char *path, const void *data, size_t size, uint64_t offset);

/* All size bytes at offset. SL_ECORRUPT where the file ends before: it was longer when it was opened. */
sl_status sl_read_at(int fd, const char *path, void *to, size_t size, uint64_t offset);

/* SL_EIO by errno, naming the path. After a failure nothing is known of what reached the device: a sync that is tried
 * again may succeed without having written what was lost. */
sl_status sl_sync_data(const sl_file_ops *ops, int fd, const char *path);

/* Opens, interrupted or not; -1 with errno. */
int sl_open_retrying(const sl_file_ops *ops, const char *path, int flags, unsigned mode);

/* A lock of the open file on the whole of it, LOCK_SH or LOCK_EX of flock: SL_EBUSY at once where another has it. */
sl_status sl_lock_file(int fd, int kind, const char *path);

/* Whose a file is, and who may do what with it. */
typedef struct sl_access {
    unsigned mode; /* the nine bits */
    unsigned user, group;
} sl_access;
/* Of an open file, or of one at a path. The group of a file with an access control list gets nothing: its bits show the
 * list's mask instead. */
sl_access sl_access_of(int fd, const struct stat *info);
sl_access sl_access_at(const char *path, const struct stat *info);
/* To an open file, as far as this process may: where the group cannot be given, its bits are those of others. */
void sl_access_give(int fd, const sl_access *access);

/* Syncs the folder that path's last part lies in, so that a file made there is found after a power loss. */
sl_status sl_sync_folder(const sl_file_ops *ops, const char *path);

#endif
