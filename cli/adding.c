#include "cli/adding.h"

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/system.h"

#include <stdlib.h>

/* Adding is spread over the cores within a block, so a block is large. Two blocks would not make reading faster. Rows
 * of one call can be linked at once: a base that can be mapped is one block, and takes no memory of its own. */
#define BLOCK_SIZE ((size_t)256 << 20)

int adding_prepare(adding *adding, size_t most, size_t *bytes) {
    adding->mapped = vectors_map(adding->base, adding->type);
    if (adding->mapped) {
        adding->block_rows = adding->base->n;
        if (bytes) *bytes = 0;
        return EXIT_DONE;
    }
    size_t row = adding->base->dim * element_size(adding->type);
    size_t size = most && most < BLOCK_SIZE ? most : BLOCK_SIZE;
    adding->block_rows = size > row ? size / row : 1;
    if (adding->block_rows > adding->base->n) adding->block_rows = adding->base->n;
    if (bytes) *bytes = adding->block_rows * row;
    adding->block = allocate(adding->block_rows, row);
    return adding->block ? EXIT_DONE : EXIT_FAILED;
}

int adding_check_output(const char *output, const char *base_path, const char *ids, const adding_words *words) {
    const char *const given[] = {base_path, ids, words->tags, words->keys};
    const char *inputs[sizeof given / sizeof *given + 1] = {NULL};
    for (size_t i = 0, count = 0; i < sizeof given / sizeof *given; i++)
        if (given[i]) inputs[count++] = given[i];
    return output_check(output, inputs);
}

int adding_read_words(adding *adding, const char *base_path, const adding_words *words) {
    size_t n = adding->base->n;
    int status = EXIT_DONE;
    if (words->tags) status = vectors_read_column(words->tags, "tags", base_path, &n, &adding->tags);
    if (status == EXIT_DONE && words->keys)
        status = vectors_read_column(words->keys, "keys", base_path, &n, &adding->keys);
    return status;
}

void adding_free(adding *adding) {
    free(adding->block);
    free(adding->tags);
    free(adding->keys);
    vectors_close(adding->base);
}

int adding_run(adding *adding, const char *what) {
    progress progress;
    sl_add_times times = {.struct_size = sizeof times};
    sl_add_params params;
    sl_add_params_init(&params);
    params.times = &times;
    params.threads = adding->threads;
    params.builder = adding->builder;
    params.progress = progress_step;
    params.progress_ctx = &progress;
    int result = EXIT_DONE;
    size_t n = adding->base->n;
    progress_begin(&progress, what, "vectors", n, adding->progress);
    for (size_t first = 0; result == EXIT_DONE && first < n; first += adding->block_rows) {
        size_t count = n - first < adding->block_rows ? n - first : adding->block_rows;
        double start = now_seconds();
        if (!adding->mapped) result = vectors_read(adding->base, first, count, adding->type, 0, adding->block);
        if (result != EXIT_DONE) break;
        double read = now_seconds();
        progress_part(&progress, first, count);
        params.tags = adding->tags ? adding->tags + first : NULL;
        params.keys = adding->keys ? adding->keys + first : NULL;
        const void *rows = adding->mapped ? adding->mapped : adding->block;
        sl_status status = sl_index_add(adding->index, rows, element_dtype(adding->type), count, 0,
                                        adding->ids ? adding->ids + first : NULL, &params);
        adding->read_s += read - start;
        adding->link_s += times.linking;
        adding->number_s += times.numbering;
        adding->add_s += now_seconds() - read;
        if (status != SL_OK) result = adding->refused(adding->refused_ctx, first, status);
    }
    if (result == EXIT_DONE) result = vectors_unchanged(adding->base);
    progress_end(&progress, result == EXIT_DONE);
    return result;
}
