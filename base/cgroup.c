#define _GNU_SOURCE
#include "base/cgroup.h"

#include "base/mounts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Version 2 has one tree of groups. Version 1 has one for each controller, such as memory. */
typedef struct hierarchy {
    const char *type;  /* of its file system */
    const char *usual; /* where systems mount it by default */
    const char *limit; /* name of the file that holds a group's limit */
} hierarchy;

enum { HIERARCHIES = 2 };

static const hierarchy hierarchies[HIERARCHIES] = {{"cgroup2", "/sys/fs/cgroup", "memory.max"},
                                                   {"cgroup", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"}};

/* Without a limit, the file holds "max" or a number larger than any machine's memory. */
static void read_limit(const char *folder, const char *name, uint64_t *least) {
    char path[PATH_MAX], line[64];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return;
    FILE *file = fopen(path, "re");
    if (!file) return;
    const uint64_t limit = fgets(line, sizeof line, file) ? strtoull(line, NULL, 10) : 0;
    fclose(file);
    if (limit && limit < *least) *least = limit;
}

/* Reads the limits of `group` and of the groups above it, up to the mount at `point`. A missing folder sets no limit:
 * the group may be gone, or the mount shows another part of the tree. */
static void read_limits(const hierarchy *tree, const char *root, const char *point, const char *group,
                        uint64_t *least) {
    char folder[PATH_MAX];
    const int length = snprintf(folder, sizeof folder, "%s%s%s", root, point, strstr(group, "/..") ? "" : group);
    if (length < 0 || length >= (int)sizeof folder) return;
    const size_t top = strlen(root) + strlen(point);
    for (;;) {
        read_limit(folder, tree->limit, least);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top) return;
        *slash = '\0';
    }
}

/* Returns whether a path names this group or a group inside it. */
static int is_within(const char *path, const char *group) {
    const size_t length = strlen(group);
    return strncmp(path, group, length) == 0 && (path[length] == '/' || !path[length]);
}

/* Returns the part of a group's path below the mount, whose root may itself be a group. Returns NULL if the mount shows
 * other groups only. For a root outside the namespace of groups, returns the whole path. */
static const char *path_in_mount(const char *group, const char *mounted) {
    if (strcmp(mounted, "/") == 0 || is_within(mounted, "/..")) return group;
    return is_within(group, mounted) ? group + strlen(mounted) : NULL;
}

static int has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length])) return 1;
    return 0;
}

/* Reads the limits at the tree's mounts, or at the default place if it isn't mounted. */
static void read_tree(const hierarchy *tree, const char *root, const char *group, uint64_t *least) {
    char list[PATH_MAX];
    sl_mounts mounts;
    sl_mount mount;
    int is_mounted = 0;
    if (snprintf(list, sizeof list, "%s%s", root, SL_MOUNTS) >= (int)sizeof list) return;
    sl_mounts_open(&mounts, list);
    while (sl_mounts_next(&mounts, &mount)) {
        if (strcmp(mount.type, tree->type) != 0) continue;
        if (tree == &hierarchies[1] && !has_word(mount.options, "memory")) continue;
        const char *shown = path_in_mount(group, mount.root);
        is_mounted = 1;
        if (shown) read_limits(tree, root, mount.point, shown, least);
    }
    sl_mounts_close(&mounts);
    if (!is_mounted) read_limits(tree, root, tree->usual, group, least);
}

/* A line is "NUMBER:CONTROLLERS:GROUP". Version 2 has number 0 and no controllers. `was_read` marks the hierarchies
 * found. */
static void read_line(char *line, const char *root, int *was_read, uint64_t *least) {
    line[strcspn(line, "\n")] = '\0';
    char *rest = line, *number = strsep(&rest, ":"), *controllers = strsep(&rest, ":");
    if (!rest || rest[0] != '/') return;
    const int second = !*controllers && strcmp(number, "0") == 0;
    if (!second && !has_word(controllers, "memory")) return;
    const size_t which = second ? 0 : 1;
    read_tree(&hierarchies[which], root, rest, least);
    was_read[which] = 1;
}

uint64_t sl_cgroup_memory(const char *root) {
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    uint64_t least = UINT64_MAX;
    int was_read[HIERARCHIES] = {0};
    const int fits = snprintf(path, sizeof path, "%s/proc/self/cgroup", root) < (int)sizeof path;
    FILE *file = fits ? fopen(path, "re") : NULL;
    while (file && getline(&line, &room, file) > 0)
        read_line(line, root, was_read, &least);
    free(line);
    if (file) fclose(file);
    /* Without /proc, a container still shows its topmost groups. */
    for (size_t i = 0; i < HIERARCHIES; i++)
        if (!was_read[i]) read_limits(&hierarchies[i], root, hierarchies[i].usual, "", &least);
    return least;
}
