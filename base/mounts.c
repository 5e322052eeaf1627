#define _GNU_SOURCE
#include "base/mounts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* The list writes blanks and backslashes as \ooo. */
static char *unescaped(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        int octal = from[0] == '\\' && strspn(from + 1, "01234567") >= 3;
        *to++ = (char)(octal ? (from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0') : from[0]);
        if (octal) from += 3;
    }
    *to = '\0';
    return text;
}

/* A line is "36 35 98:0 ROOT POINT OPTIONS [TAG]... - TYPE DEVICE OPTIONS". */
static int read_mount(char *line, sl_mount *out) {
    char *fields[5], *rest = line;
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!(fields[i] = strsep(&rest, " ")) || !rest) return 0;
    rest = strstr(rest, " - ");
    if (!rest) return 0;
    rest += 3;
    char *type = strsep(&rest, " "), *device = strsep(&rest, " ");
    if (!device) return 0;
    *out = (sl_mount){.root = unescaped(fields[3]),
                      .point = unescaped(fields[4]),
                      .type = type,
                      .device = unescaped(device),
                      .options = rest ? rest : ""};
    return 1;
}

void sl_mounts_open(sl_mounts *mounts, const char *list) {
    *mounts = (sl_mounts){.file = fopen(list, "re")};
}

int sl_mounts_next(sl_mounts *mounts, sl_mount *out) {
    while (mounts->file && getline(&mounts->line, &mounts->room, mounts->file) > 0)
        if (read_mount(mounts->line, out)) return 1;
    return 0;
}

void sl_mounts_close(sl_mounts *mounts) {
    if (mounts->file) fclose(mounts->file);
    free(mounts->line);
}

int sl_mount_at(const char *list, const char *path, char *source, size_t size) {
    sl_mounts mounts;
    sl_mount mount;
    int found = 0;
    sl_mounts_open(&mounts, list);
    while (sl_mounts_next(&mounts, &mount)) {
        if (strcmp(mount.point, path) != 0) continue;
        snprintf(source, size, "%s of %s, %s of it", mount.type, mount.device, mount.root);
        found = 1;
    }
    sl_mounts_close(&mounts);
    return found;
}
