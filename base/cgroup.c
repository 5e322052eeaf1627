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

static const hierarchy hierarchies[] = {{"cgroup2", "/sys/fs/cgroup", "memory.max"},
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

/* The part of a group's path below the mount, whose root may be a group. */
static const char *below(const char *group, const char *mounted) {
    const size_t length = strlen(mounted);
    if (strcmp(mounted, "/") == 0) return group;
    const int within = strncmp(group, mounted, length) == 0 && (group[length] == '/' || !group[length]);
    return within ? group + length : group;
}

static int has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length])) return 1;
    return 0;
}

static void read_tree(const hierarchy *tree, const char *root, const char *group, uint64_t *least) {
    char list[PATH_MAX];
    sl_mounts mounts;
    sl_mount mount;
    read_limits(tree, root, tree->usual, group, least);
    if (snprintf(list, sizeof list, "%s%s", root, SL_MOUNTS) >= (int)sizeof list) return;
    sl_mounts_open(&mounts, list);
    while (sl_mounts_next(&mounts, &mount))
        if (strcmp(mount.type, tree->type) == 0 && (tree == &hierarchies[0] || has_word(mount.options, "memory")))
            read_limits(tree, root, mount.point, below(group, mount.root), least);
    sl_mounts_close(&mounts);
}

/* A line is "NUMBER:CONTROLLERS:GROUP". Version 2 has number 0 and no controllers. */
static void read_line(char *line, const char *root, uint64_t *least) {
    line[strcspn(line, "\n")] = '\0';
    char *rest = line, *number = strsep(&rest, ":"), *controllers = strsep(&rest, ":");
    if (!rest || rest[0] != '/') return;
    if (!*controllers && strcmp(number, "0") == 0)
        read_tree(&hierarchies[0], root, rest, least);
    else if (has_word(controllers, "memory"))
        read_tree(&hierarchies[1], root, rest, least);
}

uint64_t sl_cgroup_memory(const char *root) {
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    uint64_t least = UINT64_MAX;
    /* Without /proc, the groups that hold all others of a container are still there. */
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++)
        read_limits(&hierarchies[i], root, hierarchies[i].usual, "", &least);
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path) return least;
    FILE *file = fopen(path, "re");
    if (!file) return least;
    while (getline(&line, &room, file) > 0)
        read_line(line, root, &least);
    free(line);
    fclose(file);
    return least;
}
