#include "cli/common/hash.h"

#include "cli/common/report.h"
#include "cli/common/system.h"

#include <stdio.h>

const char *hash_digits(const file_hash *hash) {
    return hash->text[0] ? hash->text : NULL;
}

void print_hash(const file_hash *hash) {
    if (hash->text[0]) printf("hash %s\n", hash->text);
}

#ifdef SHORTLIST_HAVE_XXHASH

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define BLOCK ((size_t)1 << 20)

static int read_into(int fd, const char *path, XXH3_state_t *state, void *block) {
    for (;;) {
        ssize_t got = read(fd, block, BLOCK);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return report_failure("%s: cannot read: %s", path, strerror(errno));
        if (got == 0) return EXIT_DONE;
        (void)XXH3_128bits_update(state, block, (size_t)got);
    }
}

int hash_file(const char *path, size_t room, file_hash *out) {
    XXH3_state_t state;
    *out = (file_hash){""};
    if (room) return EXIT_DONE;
    void *block = allocate(BLOCK, 1);
    if (!block) return EXIT_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int status = fd < 0 ? report_failure("%s: cannot open: %s", path, strerror(errno)) : EXIT_DONE;
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    if (status == EXIT_DONE) status = read_into(fd, path, &state, block);
    if (fd >= 0) close(fd);
    free(block);
    if (status != EXIT_DONE) return status;
    const XXH128_hash_t hash = XXH3_128bits_digest(&state);
    snprintf(out->text, sizeof out->text, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    return EXIT_DONE;
}

#else

int hash_file(const char *path, size_t room, file_hash *out) {
    (void)path, (void)room;
    *out = (file_hash){""};
    return EXIT_DONE;
}

#endif
