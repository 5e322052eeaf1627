#define _POSIX_C_SOURCE 200809L
#include "cli/files/vectors_format.h"

#include "cli/common/interrupt.h"
#include "cli/common/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const format formats[] = {
    {".fbin", LAYOUT_BIN, ELEMENT_F32},   {".u8bin", LAYOUT_BIN, ELEMENT_U8},   {".i8bin", LAYOUT_BIN, ELEMENT_I8},
    {".ibin", LAYOUT_BIN, ELEMENT_I32},   {".fvecs", LAYOUT_VECS, ELEMENT_F32}, {".bvecs", LAYOUT_VECS, ELEMENT_U8},
    {".ivecs", LAYOUT_VECS, ELEMENT_I32}, {".npy", LAYOUT_NPY, ELEMENT_F32},    {".hdf5", LAYOUT_HDF5, ELEMENT_F32},
    {".h5", LAYOUT_HDF5, ELEMENT_F32},
};

const format *format_of(const char *path) {
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t ending = strlen(formats[i].ending);
        if (length > ending && strcmp(path + length - ending, formats[i].ending) == 0) return &formats[i];
        /* FILE.hdf5:NAME */
        if (formats[i].layout != LAYOUT_HDF5) continue;
        const char *colon = strrchr(path, ':');
        if (colon && (size_t)(colon - path) > ending && memcmp(colon - ending, formats[i].ending, ending) == 0)
            return &formats[i];
    }
    return NULL;
}

int host_is_big_endian(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

int bytes_of(uint64_t n, uint64_t size, uint64_t *out) {
    if (size && n > UINT64_MAX / size) return 0;
    *out = n * size;
    return 1;
}

int source_read(const vectors *vectors, uint64_t offset, void *out, size_t size) {
    unsigned char *bytes = out;
    while (size) {
        if (interrupted()) return report_interrupted();
        ssize_t got = pread(vectors->source->fd, bytes, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return report_failure("%s: cannot read: %s", vectors->path, strerror(errno));
        if (got == 0)
            return report_failure("%s: ended at byte %" PRIu64 " while it was read; it was cut short meanwhile",
                                  vectors->path, offset);
        bytes += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return EXIT_DONE;
}
