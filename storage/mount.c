#define _GNU_SOURCE
#include "storage/mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* The list writes blanks and backslashes of a path as \ooo. */
static void unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        int octal = from[0] == '\\' && strspn(from + 1, "01234567") >= 3;
        *to++ = (char)(octal ? (from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0') : from[0]);
        if (octal) from += 3;
    }
    *to = '\0';
}

/* A line is "36 35 98:0 ROOT POINT OPTIONS [TAG]... - TYPE DEVICE OPTIONS". */
static int read_mount(char *line, const char *path, char *source, size_t size) {
    char *fields[5], *rest = line;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!(fields[i] = strsep(&rest, " ")) || !rest) return 0;
    unescape(fields[4]);
    if (strcmp(fields[4], path) != 0) return 0;
    rest = strstr(rest, " - ");
    if (rest) rest += 3;
    char *type = rest ? strsep(&rest, " ") : NULL, *device = rest ? strsep(&rest, " ") : NULL;
    unescape(fields[3]);
    if (device) unescape(device);
    snprintf(source, size, "%s%s%s, %s of it", type ? type : "", device ? " of " : "", device ? device : "", fields[3]);
    return 1;
}

/* A later mount of the same point lies on top. */
int sl_mount_at(const char *list, const char *path, char *source, size_t size) {
    char *line = NULL;
    size_t room = 0;
    int found = 0;
    FILE *file = fopen(list, "re");
    while (file && getline(&line, &room, file) > 0)
        found |= read_mount(line, path, source, size);
    free(line);
    if (file) fclose(file);
    return found;
}
