#include "cli/common/output.h"

#include "cli/common/interrupt.h"
#include "cli/common/report.h"
#include "cli/common/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE (1u << 20)

struct output {
    char *path;      /* the name that the user gave, for messages */
    char *target;    /* the file behind symbolic links, so that a link stays a link */
    char *temporary; /* NULL after the rename */
    int fd;
    size_t used;
    unsigned char buffer[BUFFER_SIZE];
};

/* Existing temporary files. A command has at most two. */
static char *unfinished[4];
enum { UNFINISHED = sizeof unfinished / sizeof *unfinished };

static void replace_unfinished(char *from, char *to) {
    for (size_t i = 0; i < UNFINISHED; i++) {
        char *expected = from;
        if (__atomic_compare_exchange_n(&unfinished[i], &expected, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
    }
}

void output_remove_unfinished(void) {
    for (size_t i = 0; i < UNFINISHED; i++) {
        const char *path = __atomic_load_n(&unfinished[i], __ATOMIC_SEQ_CST);
        if (path) unlink(path);
    }
}

/* Forgets a temporary file after its removal or rename. */
static void forget_temporary(output *output) {
    if (!output->temporary) return;
    replace_unfinished(output->temporary, NULL);
    free(output->temporary);
    output->temporary = NULL;
}

static int report_write(const char *path, const char *doing) {
    const char *remedy =
        errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? "; free some space or write elsewhere" : "";
    return report_failure("%s: cannot %s: %s%s", path, doing, strerror(errno), remedy);
}

char *output_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

int is_same_file(const char *a, const char *b) {
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

int output_check_name(const char *path, const char *const *inputs) {
    struct stat info;
    int exists = stat(path, &info) == 0;
    if (exists && !S_ISREG(info.st_mode))
        return report_failure("%s: cannot write: not a regular file; name another output", path);
    for (; exists && *inputs; inputs++)
        if (is_same_file(path, *inputs))
            return report_failure("%s: would take the place of the input %s; name another output", path, *inputs);
    char *folder = output_folder(path);
    if (!folder) return report_failure("out of memory");
    int status = EXIT_DONE;
    if (stat(folder, &info) != 0 || access(folder, W_OK | X_OK) != 0)
        status = report_failure("%s: cannot write into folder %s: %s; %s, or name another output", path, folder,
                                strerror(errno), errno == ENOENT ? "make it" : "allow it");
    else if (!S_ISDIR(info.st_mode))
        status = report_failure("%s: cannot write: %s is not a folder; name another output", path, folder);
    free(folder);
    return status;
}

int output_try(const char *path, int own) {
    sl_status status = sl_save_try(path);
    return status == SL_OK || (own && status == SL_EBUSY) ? EXIT_DONE : report_status(path, status);
}

int output_check(const char *path, const char *const *inputs) {
    int status = output_check_name(path, inputs);
    return status == EXIT_DONE ? output_try(path, 0) : status;
}

/* A file's name has up to 255 bytes. A stem of this length leaves room for what is appended. */
#define MAX_STEM 200

static int open_temporary(output *output) {
    size_t size = strlen(output->target) + 32;
    output->temporary = allocate(size, 1);
    if (!output->temporary) return EXIT_FAILED;
    const char *slash = strrchr(output->target, '/'), *name = slash ? slash + 1 : output->target;
    const int stem = (int)(name - output->target) + (int)strnlen(name, MAX_STEM);
    /* Appends a number if a killed process with the same id left its file behind. */
    for (unsigned tries = 0; tries < 100 && output->fd < 0; tries++) {
        snprintf(output->temporary, size, "%.*s.tmp-%ld-%u", stem, output->target, (long)getpid(), tries);
        output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd < 0 && errno != EEXIST) break;
    }
    if (output->fd >= 0) {
        replace_unfinished(NULL, output->temporary);
        return EXIT_DONE;
    }
    int status = report_write(output->path, "create it");
    forget_temporary(output);
    return status;
}

int output_create(const char *path, output **out) {
    *out = NULL;
    int status = output_check(path, (const char *const[]){NULL});
    if (status != EXIT_DONE) return status;
    output *output = allocate(1, sizeof *output);
    if (!output) return EXIT_FAILED;
    output->fd = -1;
    output->path = strdup(path);
    output->target = realpath(path, NULL);
    if (!output->target) output->target = strdup(path);
    if (!output->path || !output->target)
        status = report_failure("out of memory");
    else
        status = open_temporary(output);
    if (status != EXIT_DONE)
        output_discard(output);
    else
        *out = output;
    return status;
}

static int write_all(output *output, const unsigned char *data, size_t size) {
    while (size) {
        if (interrupted()) return report_interrupted();
        ssize_t written = write(output->fd, data, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return report_write(output->path, "write it");
        data += written;
        size -= (size_t)written;
    }
    return EXIT_DONE;
}

static int flush_output(output *output) {
    size_t size = output->used;
    output->used = 0;
    return write_all(output, output->buffer, size);
}

int output_write(output *output, const void *data, size_t size) {
    int status = EXIT_DONE;
    if (size > BUFFER_SIZE - output->used) status = flush_output(output);
    if (status != EXIT_DONE) return status;
    if (size > BUFFER_SIZE) return write_all(output, data, size);
    memcpy(output->buffer + output->used, data, size);
    output->used += size;
    return EXIT_DONE;
}

int output_rewrite_start(output *output, const void *data, size_t size) {
    int status = flush_output(output);
    if (status == EXIT_DONE && lseek(output->fd, 0, SEEK_SET) != 0) status = report_write(output->path, "write it");
    if (status == EXIT_DONE) status = write_all(output, data, size);
    if (status == EXIT_DONE && lseek(output->fd, 0, SEEK_END) < 0) status = report_write(output->path, "write it");
    return status;
}

/* Syncs the folder. Without this, a power failure can undo the rename. */
static int sync_folder(const output *output) {
    char *folder = output_folder(output->target);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    /* EINVAL: the file system cannot sync a folder. */
    int synced = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    if (fd >= 0) close(fd);
    return synced ? EXIT_DONE : report_write(output->path, "sync its folder");
}

/* Leaves the finished file where it is. */
static int keep_finished(output *output) {
    int status = report_failure("%s: cannot put it in place: %s; the finished file is %s: move it to its place",
                                output->path, strerror(errno), output->temporary);
    forget_temporary(output);
    return status;
}

int output_commit(output *output) {
    int status = flush_output(output);
    if (status == EXIT_DONE && fsync(output->fd) != 0) status = report_write(output->path, "sync it");
    int closed = close(output->fd);
    output->fd = -1;
    if (status == EXIT_DONE && closed != 0) status = report_write(output->path, "close it");
    if (status == EXIT_DONE && interrupted()) status = report_interrupted();
    if (status == EXIT_DONE && rename(output->temporary, output->target) != 0) status = keep_finished(output);
    if (status == EXIT_DONE) {
        forget_temporary(output);
        status = sync_folder(output);
    }
    output_discard(output);
    return status;
}

void output_discard(output *output) {
    if (!output) return;
    if (output->fd >= 0) close(output->fd);
    if (output->temporary) unlink(output->temporary);
    forget_temporary(output);
    free(output->target);
    free(output->path);
    free(output);
}
