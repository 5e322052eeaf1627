/* Common parts of the fuzz targets. All of it is in a header, because each other file of the folder is a program. */
#ifndef SL_FUZZ_H
#define SL_FUZZ_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <shortlist.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process if the library breaks a promise that holds for any input. */
static inline void demand(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "broken promise: %s; the last message is '%s'\n", what, sl_last_error());
    abort();
}

/* Calls use(path, size) with the bytes as a file without a name; the path is its descriptor's. */
static inline void with_file(const void *bytes, size_t size, void (*use)(const char *path, size_t size)) {
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    use(path, size);
    close(fd);
}

#endif
