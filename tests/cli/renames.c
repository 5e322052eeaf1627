/* Loaded before the C library: renaming to a path that ends with REFUSE_RENAME fails, as over a mount. With the word
 * "all" nothing can be renamed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef int (*rename_fn)(const char *, const char *);

int rename(const char *from, const char *to) {
    rename_fn next;
    *(void **)&next = dlsym(RTLD_NEXT, "rename");
    const char *ending = getenv("REFUSE_RENAME");
    const size_t length = strlen(to), wanted = ending ? strlen(ending) : 0;
    const int all = ending && strcmp(ending, "all") == 0;
    if (!all && (!wanted || length < wanted || strcmp(to + length - wanted, ending) != 0)) return next(from, to);
    errno = EBUSY;
    return -1;
}
