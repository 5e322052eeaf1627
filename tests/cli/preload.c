/* Loaded before the C library. Environment variables say what differs from the system:
 *   REFUSE_RENAME=ENDING   renaming to a path that ends so fails, as over a mount. "all": every renaming fails.
 *   REFUSE_LOCKS=ERROR     flock and the locks of fcntl fail with this number, as without locks of the file system.
 *   INTERRUPT_AT=ENDING    SIGINT comes when a path that ends so is opened for the first time; "": any path */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

static int ends_with(const char *text, const char *ending) {
    const size_t length = strlen(text), wanted = strlen(ending);
    return length >= wanted && strcmp(text + length - wanted, ending) == 0;
}

static void find_next(const char *name, void *out) {
    *(void **)out = dlsym(RTLD_NEXT, name);
}

int rename(const char *from, const char *to) {
    int (*next)(const char *, const char *);
    const char *ending = getenv("REFUSE_RENAME");
    find_next("rename", &next);
    if (!ending || (strcmp(ending, "all") != 0 && !ends_with(to, ending))) return next(from, to);
    errno = EBUSY;
    return -1;
}

static int has_no_locks(void) {
    const char *error = getenv("REFUSE_LOCKS");
    if (error) errno = atoi(error);
    return error != NULL;
}

int flock(int fd, int operation) {
    int (*next)(int, int);
    find_next("flock", &next);
    return operation != LOCK_UN && has_no_locks() ? -1 : next(fd, operation);
}

int fcntl(int fd, int command, ...) {
    int (*next)(int, int, ...);
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    find_next("fcntl", &next);
    const int locks = command == F_OFD_SETLK || command == F_OFD_GETLK;
    return locks && has_no_locks() ? -1 : next(fd, command, argument);
}

static void interrupt(const char *path) {
    static int done;
    const char *ending = getenv("INTERRUPT_AT");
    if (done || !ending || !ends_with(path, ending)) return;
    done = 1;
    raise(SIGINT);
}

typedef int (*open_fn)(const char *, int, ...);
typedef FILE *(*fopen_fn)(const char *, const char *);

static unsigned mode_of(int flags, va_list arguments) {
    return flags & O_CREAT ? va_arg(arguments, unsigned) : 0;
}

int open(const char *path, int flags, ...) {
    open_fn next;
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = mode_of(flags, arguments);
    va_end(arguments);
    find_next("open", &next);
    interrupt(path);
    return next(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    open_fn next;
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = mode_of(flags, arguments);
    va_end(arguments);
    find_next("open64", &next);
    interrupt(path);
    return next(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode) {
    fopen_fn next;
    find_next("fopen", &next);
    interrupt(path);
    return next(path, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    fopen_fn next;
    find_next("fopen64", &next);
    interrupt(path);
    return next(path, mode);
}
