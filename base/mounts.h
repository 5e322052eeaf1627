/* Mounts of this process, as Linux lists them. */
#ifndef SL_BASE_MOUNTS_H
#define SL_BASE_MOUNTS_H

#include <stddef.h>
#include <stdio.h>

#define SL_MOUNTS "/proc/self/mountinfo"

/* One mount. The texts last until the next one is read. */
typedef struct sl_mount {
    const char *root;    /* the path on the file system that is mounted */
    const char *point;   /* where it is mounted */
    const char *type;    /* of the file system, such as "ext4" */
    const char *device;  /* or any other name of its source */
    const char *options; /* of the file system, separated by commas */
} sl_mount;

typedef struct sl_mounts {
    FILE *file;
    char *line;
    size_t room;
} sl_mounts;

/* Opens SL_MOUNTS or a file like it. A list that can't be read counts as empty. */
void sl_mounts_open(sl_mounts *mounts, const char *list);
/* Reads the next mount. Returns 0 after the last one. A later mount hides an earlier one at the same point. */
int sl_mounts_next(sl_mounts *mounts, sl_mount *out);
void sl_mounts_close(sl_mounts *mounts);

/* Returns whether `path`, absolute and without links, is a mount point. Describes the mount in `source`: its type, its
 * device and the path on the device. */
int sl_mount_at(const char *list, const char *path, char *source, size_t size);

#endif
