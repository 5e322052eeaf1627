/* Mounts of this process, as Linux lists them. */
#ifndef SL_STORAGE_MOUNT_H
#define SL_STORAGE_MOUNT_H

#include <stddef.h>

#define SL_MOUNTS "/proc/self/mountinfo"

/* Tells whether `path`, absolute and without links, is a mount point. Writes what is mounted there into `source`: the
 * type, the device and the path on it.
 * Parameters: `list` is SL_MOUNTS, or a file like it. Returns 0 too where the list cannot be read. */
int sl_mount_at(const char *list, const char *path, char *source, size_t size);

#endif
