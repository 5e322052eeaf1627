#define _GNU_SOURCE
#include "tests/support/scratch.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void scratch_open(scratch *s) {
    const char *place = getenv("TMPDIR");
    int length = snprintf(s->folder, sizeof s->folder, "%s/shortlist-test-XXXXXX", place && *place ? place : "/tmp");
    ck_assert_int_lt(length, (int)sizeof s->folder);
    ck_assert_ptr_nonnull(mkdtemp(s->folder));
    scratch_name(s, "index.sl", s->path);
}

void scratch_name(const scratch *s, const char *name, char *out) {
    int length = snprintf(out, SCRATCH_PATH, "%s/%s", s->folder, name);
    ck_assert_int_lt(length, SCRATCH_PATH);
}

/* Calls back for each entry but "." and "..". */
static size_t each_entry(const scratch *s, void (*act)(int folder, const char *name)) {
    DIR *folder = opendir(s->folder);
    ck_assert_ptr_nonnull(folder);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        count++;
        if (act) act(dirfd(folder), entry->d_name);
    }
    closedir(folder);
    return count;
}

static void remove_entry(int folder, const char *name) {
    if (unlinkat(folder, name, 0) != 0) ck_assert_int_eq(unlinkat(folder, name, AT_REMOVEDIR), 0);
}

size_t scratch_count(const scratch *s) {
    return each_entry(s, NULL);
}

static void remove_finished(int folder, const char *name) {
    if (strstr(name, ".finished.")) remove_entry(folder, name);
}

size_t scratch_take_finished(const scratch *s) {
    const size_t before = each_entry(s, remove_finished);
    return before - scratch_count(s);
}

void scratch_close(scratch *s) {
    each_entry(s, remove_entry);
    ck_assert_int_eq(rmdir(s->folder), 0);
}

unsigned char *file_read(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    struct stat info;
    ck_assert_int_eq(fstat(fileno(file), &info), 0);
    *size = (size_t)info.st_size;
    unsigned char *bytes = malloc(*size + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* A new file: file systems write the old one out before it is truncated, to save what a crash would lose. */
void file_write(const char *path, const void *bytes, size_t size) {
    (void)unlink(path);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

void file_patch(const char *path, size_t offset, const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, size, (off_t)offset), (ssize_t)size);
    ck_assert_int_eq(close(fd), 0);
}
