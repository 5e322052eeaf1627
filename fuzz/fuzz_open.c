/* Opens any bytes as an index file and uses what opens. As they are, few inputs get past the checksums; with those put
 * right, the fuzzer's changes reach everything behind them. */
#define _GNU_SOURCE
#include "tests/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes as a file without a name, which has a path nevertheless. */
static void use_as_file(const void *bytes, size_t size) {
    char path[64];
    int fd = memfd_create("index", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)hostile_use(path, size, SL_PLACE_MAP, NULL);
    (void)hostile_use(path, size, SL_PLACE_DRAM, NULL);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    use_as_file(data, size);
    unsigned char *sealed = malloc(size + 1);
    if (!sealed) abort();
    memcpy(sealed, data, size);
    hostile_seal(sealed, size);
    use_as_file(sealed, size);
    free(sealed);
    return 0;
}
