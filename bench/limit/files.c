#include "files.h"

#include <stdio.h>
#include <stdlib.h>

static void die(const char *what, const char *why) {
    fprintf(stderr, "limit: %s: %s\n", what, why);
    exit(1);
}

void must(sl_status status, const char *what) {
    if (status != SL_OK) die(what, sl_last_error());
}

void *must_alloc(size_t count, size_t size) {
    void *block = calloc(count ? count : 1, size);
    if (!block) die("memory", "there is too little");
    return block;
}

matrix matrix_read(const char *path, size_t element_bytes) {
    uint32_t counts[2];
    FILE *file = fopen(path, "rb");
    if (!file || fread(counts, sizeof *counts, 2, file) != 2) die(path, "cannot be read");
    matrix m = {.rows = counts[0], .columns = counts[1], .row_bytes = counts[1] * element_bytes};
    m.at = must_alloc(m.rows, m.row_bytes);
    if (fread(m.at, m.row_bytes, m.rows, file) != m.rows) die(path, "is shorter than its first bytes say");
    fclose(file);
    return m;
}
