#define _GNU_SOURCE
#include "base/cgroup.h"

#include "base/mounts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Version 2 has one tree of groups. Version 1 has a tree for each controller, of which memory is one. */
typedef struct hierarchy {
    const char *type;  /* of its file system */
    const char *usual; /* where it is mounted as a rule */
    const char *limit; /* the file of a group's limit */
} hierarchy;

enum { HIERARCHIES = 2 };

static const hierarchy hierarchies[HIERARCHIES] = {{"cgroup2", "/sys/fs/cgroup", "memory.max"},
                                                   {"cgroup", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"}};

/* A group without a limit has the word "max", or a number that no machine has. */
static void read_limit(const char *folder, const char *name, uint64_t *least) {
    char path[PATH_MAX], line[64];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return;
    FILE *file = fopen(path, "re");
    if (!file) return;
    const uint64_t limit = fgets(line, sizeof line, file) ? strtoull(line, NULL, 10) : 0;
    fclose(file);
    if (limit && limit < *least) *least = limit;
}

/* Reads the limits from the group `group` up to the mount at `point`. A folder that is missing has no limit: the group
 * may be gone, or the mount shows another part of the tree. */
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

/* Tells whether a path is that of a group, or of one in it. */
static int is_within(const char *path, const char *group) {
    const size_t length = strlen(group);
    return strncmp(path, group, length) == 0 && (path[length] == '/' || !path[length]);
}

/* The part of a group's path below the mount, whose root may be a group. NULL: the mount shows groups of others. A root
 * outside the namespace of groups tells nothing. */
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

/* Reads where the tree is mounted, or else where it is as a rule. */
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

/* A line is "NUMBER:CONTROLLERS:GROUP". Version 2 has number 0 and no controllers. `was_read`: of each hierarchy. */
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
    /* Without /proc, the groups that hold all others of a container are still there. */
    for (size_t i = 0; i < HIERARCHIES; i++)
        if (!was_read[i]) read_limits(&hierarchies[i], root, hierarchies[i].usual, "", &least);
    return least;
}
