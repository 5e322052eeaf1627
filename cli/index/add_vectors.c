#include "cli/index/add_vectors.h"

#include "cli/common/clock.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"

#include <stdlib.h>

/* Up to this many bytes, a base is unpacked into memory. A larger base goes into a file, this many bytes at a time. */
#define SMALL_BASE ((size_t)256 << 20)
#define AT_ONCE    ((size_t)16 << 20)

int addition_prepare(addition *addition, const char *output, size_t most) {
    const size_t small = most && most < SMALL_BASE ? most : SMALL_BASE;
    size_t bytes;
    addition->output = output;
    addition->at_once = small < AT_ONCE ? small : AT_ONCE;
    addition->mapped = vectors_map(addition->base, addition->type);
    if (addition->mapped) return EXIT_DONE;
    int status = vectors_bytes(addition->base, addition->type, &bytes);
    if (status != EXIT_DONE) return status;
    if (bytes > small)
        addition->in_file = bytes;
    else
        addition->in_memory = bytes;
    return EXIT_DONE;
}

size_t addition_bytes(const addition *addition) {
    const size_t words = (size_t)(addition->ids != NULL) + (addition->tags != NULL) + (addition->keys != NULL);
    return addition->in_memory + words * addition->base->n * sizeof(uint64_t);
}

int addition_check_output(const char *output, const char *base_path, const char *ids, const word_files *words) {
    const char *const given[] = {base_path, ids, words->tags, words->keys};
    const char *inputs[sizeof given / sizeof *given + 1] = {NULL};
    for (size_t i = 0, count = 0; i < sizeof given / sizeof *given; i++)
        if (given[i]) inputs[count++] = given[i];
    return output_check_name(output, inputs);
}

int addition_read_words(addition *addition, const char *base_path, const word_files *words) {
    size_t n = addition->base->n;
    int status = EXIT_DONE;
    if (words->tags) status = vectors_read_column(words->tags, "tags", base_path, &n, &addition->tags);
    if (status == EXIT_DONE && words->keys)
        status = vectors_read_column(words->keys, "keys", base_path, &n, &addition->keys);
    return status;
}

void addition_free(addition *addition) {
    base_copy_free(&addition->copy);
    free(addition->tags);
    free(addition->keys);
    vectors_close(addition->base);
}

/* Unpacks a base that is not mapped. */
static int unpack_base(addition *addition, const void **rows) {
    const double start = now_seconds();
    int status = EXIT_DONE;
    if (addition->in_file)
        status = base_copy_write(&addition->copy, addition->base, addition->type, addition->output, addition->at_once,
                                 addition->progress);
    else if (!addition->mapped)
        status = base_copy_read(&addition->copy, addition->base, addition->type);
    *rows = addition->mapped ? addition->mapped : addition->copy.rows;
    addition->read_s = now_seconds() - start;
    return status == EXIT_DONE ? vectors_unchanged(addition->base) : status;
}

/* Adds all rows in one call, so that leaves can link them. */
int addition_run(addition *addition, const char *what) {
    progress progress;
    const void *rows;
    sl_add_times times = {.struct_size = sizeof times};
    sl_add_params params;
    int result = unpack_base(addition, &rows);
    if (result != EXIT_DONE) return result;
    sl_add_params_init(&params);
    params.times = &times;
    params.threads = addition->threads;
    params.builder = addition->builder;
    params.replace = (int)addition->replace;
    params.progress = addition->step ? addition->step : progress_step;
    params.progress_ctx = &progress;
    params.tags = addition->tags;
    params.keys = addition->keys;
    const size_t n = addition->base->n;
    const double start = now_seconds();
    progress_begin(&progress, what, "vectors", n, addition->progress);
    sl_status status = sl_index_add(addition->index, rows, element_dtype(addition->type), n, 0, addition->ids, &params);
    addition->link_s = times.linking;
    addition->number_s = times.numbering;
    addition->add_s = now_seconds() - start;
    result = status == SL_OK ? vectors_unchanged(addition->base) : addition->refused(addition->refused_ctx, status);
    progress_end(&progress, result == EXIT_DONE);
    base_copy_free(&addition->copy);
    return result;
}
