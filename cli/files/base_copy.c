#include "cli/files/base_copy.h"

#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int base_copy_read(base_copy *out, vectors *base, element type) {
    *out = (base_copy){0};
    int status = vectors_bytes(base, type, &out->bytes);
    if (status != EXIT_DONE) return status;
    out->rows = vectors_read_all(base, type);
    return out->rows ? EXIT_DONE : EXIT_FAILED;
}

/* For file systems without nameless files: creates a file and removes its name at once. */
static int open_named(const char *output) {
    char *path;
    if (asprintf(&path, "%s.unpacked.XXXXXX", output) < 0) return -1;
    int fd = mkostemp(path, O_CLOEXEC);
    const int error = errno;
    if (fd >= 0) (void)unlink(path);
    free(path);
    errno = error;
    return fd;
}

static int open_unnamed(const char *output) {
    char *folder = output_folder(output);
    if (!folder) return -1;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const int error = errno;
    free(folder);
    errno = error;
    return fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) ? open_named(output) : fd;
}

static int write_rows(int fd, const char *rows, size_t size) {
    while (size > 0) {
        ssize_t written = write(fd, rows, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return -1;
        rows += written;
        size -= (size_t)written;
    }
    return 0;
}

static int refuse_file(const vectors *base, const char *output, size_t bytes) {
    const char *const remedy = errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? "make room there, or " : "";
    return report_failure("%s: cannot unpack it into a file of %zu bytes beside %s: %s; %sconvert it to a file that is "
                          "read where it lies, such as .fbin",
                          base->path, bytes, output, strerror(errno), remedy);
}

/* Copies all rows to the file, block by block. */
static int copy_rows(int fd, vectors *base, element type, const char *output, size_t at_once, progress *progress) {
    const size_t row = base->dim * element_size(type), most = at_once > row ? at_once / row : 1;
    char *rows = allocate(most < base->n ? most : base->n, row);
    int status = rows ? EXIT_DONE : EXIT_FAILED;
    for (size_t first = 0, count; status == EXIT_DONE && first < base->n; first += count) {
        count = base->n - first < most ? base->n - first : most;
        status = vectors_read(base, first, count, type, 0, rows);
        if (status == EXIT_DONE && write_rows(fd, rows, count * row) != 0)
            status = refuse_file(base, output, base->n * row);
        if (status == EXIT_DONE && progress_step(progress, first + count, base->n)) status = report_interrupted();
    }
    free(rows);
    return status;
}

int base_copy_write(base_copy *out, vectors *base, element type, const char *output, size_t at_once,
                    int progress_wanted) {
    progress progress;
    *out = (base_copy){.is_file = 1};
    int status = vectors_bytes(base, type, &out->bytes);
    if (status != EXIT_DONE) return status;
    int fd = open_unnamed(output);
    if (fd < 0) return refuse_file(base, output, out->bytes);
    progress_begin(&progress, "unpacking", "vectors", base->n, progress_wanted);
    status = copy_rows(fd, base, type, output, at_once, &progress);
    progress_end(&progress, status == EXIT_DONE);
    if (status == EXIT_DONE) {
        void *rows = mmap(NULL, out->bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (rows == MAP_FAILED)
            status = refuse_file(base, output, out->bytes);
        else
            out->rows = rows;
    }
    close(fd);
    return status;
}

void base_copy_free(base_copy *copy) {
    if (copy->rows && copy->is_file)
        munmap(copy->rows, copy->bytes);
    else
        free(copy->rows);
    *copy = (struct base_copy){0};
}
