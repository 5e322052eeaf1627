/* Writes one small valid index of every kind into a folder: fuzz_open starts from them. */
#include "tests/support/hostile.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 2;
    }
    if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) {
        perror(argv[1]);
        return 1;
    }
    for (int kind = 0; kind < HOSTILE_KINDS; kind++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/kind-%d.sl", argv[1], kind);
        if (length < 0 || (size_t)length >= sizeof path) return 1;
        hostile_build(kind, path);
    }
    return 0;
}
