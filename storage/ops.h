/* File operations: the system's or a caller's, and the loops round them. */
#ifndef SL_STORAGE_OPS_H
#define SL_STORAGE_OPS_H

#include "base/status.h"

#include <sys/stat.h>

/* Fills the gaps of *given with the system's operations. NULL: all are the system's. */
sl_file_ops sl_file_ops_of(const sl_file_ops *given);

/* Writes all of `data` at `offset`, through interrupted and short writes. Messages name the path. */
sl_status sl_write_at(const sl_file_ops *ops, int fd, const char *path, const void *data, size_t size, uint64_t offset);

/* Reads `size` bytes at `offset`. Errors: SL_ECORRUPT: the file ends earlier, so it was longer at opening. */
sl_status sl_read_at(int fd, const char *path, void *to, size_t size, uint64_t offset);

/* Syncs the file's data. Errors: SL_EIO by errno, naming the path. After a failure nobody knows what reached the
 * device: a later sync may succeed although the bytes are lost. */
sl_status sl_sync_data(const sl_file_ops *ops, int fd, const char *path);

/* Opens a file, again after interruptions; -1 with errno. */
int sl_open_retrying(const sl_file_ops *ops, const char *path, int flags, unsigned mode);

/* Returns whether errno, after a lock has failed, means that the file system has no locks. NFS gives EBADF for an
 * exclusive lock of a file that isn't open for writing. */
int sl_lacks_locks(void);

/* Locks the whole open file by flock: LOCK_SH or LOCK_EX.
 * Errors: SL_EBUSY, without waiting: another has the lock. SL_EUNSUPPORTED: the file system has no locks; errno is the
 * lock's. */
sl_status sl_lock_file(int fd, int kind, const char *path);

/* A file's owner and permissions. */
typedef struct sl_access {
    unsigned mode; /* the nine bits */
    unsigned user, group;
} sl_access;
/* The access of an open file, or of a file at a path. If there is an access control list, the group gets nothing,
 * because the group's bits show the list's mask. */
sl_access sl_access_of(int fd, const struct stat *info);
sl_access sl_access_at(const char *path, const struct stat *info);
/* Gives an open file this access, as far as this process may. If the group can't be set, its bits become those of
 * others. */
void sl_access_give(int fd, const sl_access *access);

/* Syncs the folder of path's last part, so that a file made there outlives a power loss. */
sl_status sl_sync_folder(const sl_file_ops *ops, const char *path);

#endif
