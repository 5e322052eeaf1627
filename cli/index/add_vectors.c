#include "cli/index/add_vectors.h"

#include "cli/common/clock.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"

#include <stdlib.h>

/* A base up to so many bytes is unpacked into memory. A larger one is unpacked into a file, so many bytes at once. */
#define SMALL_BASE ((size_t)256 << 20)
#define AT_ONCE    ((size_t)16 << 20)

int adding_prepare(adding *adding, const char *output, size_t most) {
    const size_t small = most && most < SMALL_BASE ? most : SMALL_BASE;
    size_t bytes;
    adding->output = output;
    adding->at_once = small < AT_ONCE ? small : AT_ONCE;
    adding->mapped = vectors_map(adding->base, adding->type);
    if (adding->mapped) return EXIT_DONE;
    int status = vectors_bytes(adding->base, adding->type, &bytes);
    if (status != EXIT_DONE) return status;
    if (bytes > small)
        adding->in_file = bytes;
    else
        adding->in_memory = bytes;
    return EXIT_DONE;
}

size_t adding_bytes(const adding *adding) {
    const size_t words = (size_t)(adding->ids != NULL) + (adding->tags != NULL) + (adding->keys != NULL);
    return adding->in_memory + words * adding->base->n * sizeof(uint64_t);
}

int adding_check_output(const char *output, const char *base_path, const char *ids, const adding_words *words) {
    const char *const given[] = {base_path, ids, words->tags, words->keys};
    const char *inputs[sizeof given / sizeof *given + 1] = {NULL};
    for (size_t i = 0, count = 0; i < sizeof given / sizeof *given; i++)
        if (given[i]) inputs[count++] = given[i];
    return output_check_name(output, inputs);
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
    base_copy_free(&adding->copy);
    free(adding->tags);
    free(adding->keys);
    vectors_close(adding->base);
}

/* Unpacks the base where it is not mapped. */
static int unpack(adding *adding, const void **rows) {
    const double start = now_seconds();
    int status = EXIT_DONE;
    if (adding->in_file)
        status = base_copy_write(&adding->copy, adding->base, adding->type, adding->output, adding->at_once,
                                 adding->progress);
    else if (!adding->mapped)
        status = base_copy_read(&adding->copy, adding->base, adding->type);
    *rows = adding->mapped ? adding->mapped : adding->copy.rows;
    adding->read_s = now_seconds() - start;
    return status == EXIT_DONE ? vectors_unchanged(adding->base) : status;
}

/* Adds all rows in one call, so that leaves can link them. */
int adding_run(adding *adding, const char *what) {
    progress progress;
    const void *rows;
    sl_add_times times = {.struct_size = sizeof times};
    sl_add_params params;
    int result = unpack(adding, &rows);
    if (result != EXIT_DONE) return result;
    sl_add_params_init(&params);
    params.times = &times;
    params.threads = adding->threads;
    params.builder = adding->builder;
    params.progress = progress_step;
    params.progress_ctx = &progress;
    params.tags = adding->tags;
    params.keys = adding->keys;
    const size_t n = adding->base->n;
    const double start = now_seconds();
    progress_begin(&progress, what, "vectors", n, adding->progress);
    sl_status status = sl_index_add(adding->index, rows, element_dtype(adding->type), n, 0, adding->ids, &params);
    adding->link_s = times.linking;
    adding->number_s = times.numbering;
    adding->add_s = now_seconds() - start;
    result = status == SL_OK ? vectors_unchanged(adding->base) : adding->refused(adding->refused_ctx, status);
    progress_end(&progress, result == EXIT_DONE);
    base_copy_free(&adding->copy);
    return result;
}
