#include "cli/search/truth_scan.h"

#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/index/description.h"

#include <stdlib.h>
#include <string.h>

int truth_inputs_open(truth_inputs *inputs) {
    element query_type;
    int status = vectors_open(inputs->base_path, VECTORS_BASE, &inputs->base);
    if (status == EXIT_DONE) status = vectors_check_metric(inputs->base, inputs->metric);
    if (status == EXIT_DONE) status = vectors_open(inputs->queries_path, VECTORS_QUERIES, &inputs->queries);
    if (status == EXIT_DONE && strcmp(inputs->queries_path, inputs->base_path) != 0)
        status = vectors_check_metric(inputs->queries, inputs->metric);
    if (status == EXIT_DONE) status = check_depth("-k", inputs->k, inputs->base->n, inputs->base_path);
    if (status == EXIT_DONE) status = vectors_match_dim(inputs->queries, inputs->base->dim, inputs->base_path);
    if (status == EXIT_DONE)
        status = vectors_match_type(inputs->queries, element_dtype(inputs->base->type), inputs->base_path, &query_type);
    if (status != EXIT_DONE) return status;
    /* Matching types that differ are both floating-point, and f32 holds either. */
    inputs->type = element_of_dtype(element_dtype(inputs->base->type));
    if (inputs->type != query_type) inputs->type = ELEMENT_F32;
    return EXIT_DONE;
}

void truth_inputs_close(truth_inputs *inputs) {
    vectors_close(inputs->base);
    vectors_close(inputs->queries);
}

size_t truth_row_size(const truth_inputs *inputs) {
    return inputs->base->dim * element_size(inputs->type);
}

int truth_exact_create(const truth_inputs *inputs, size_t first, size_t count, size_t threads, progress *progress,
                       sl_exact **out) {
    sl_exact_params params;
    *out = NULL;
    sl_exact_params_init(&params);
    params.dim = inputs->base->dim;
    params.metric = inputs->metric;
    params.dtype = element_dtype(inputs->type);
    params.k = inputs->k;
    params.threads = threads;
    params.progress = progress_step;
    params.progress_ctx = progress;
    void *rows = allocate(count, truth_row_size(inputs));
    if (!rows) return EXIT_FAILED;
    int result = vectors_read(inputs->queries, first, count, inputs->type, 0, rows);
    if (result == EXIT_DONE) {
        sl_status status = sl_exact_create(&params, rows, count, 0, out);
        if (status != SL_OK) result = report_rows(inputs->queries_path, first, status);
    }
    free(rows);
    return result;
}

int truth_read_blocks(const truth_inputs *inputs, size_t first, size_t end, size_t bytes, truth_block_fn work,
                      void *ctx) {
    size_t row = truth_row_size(inputs), rows = row < bytes ? bytes / row : 1;
    if (rows > end - first) rows = end - first;
    if (rows == 0) return EXIT_DONE;
    char *block = allocate(rows, row);
    int result = block ? EXIT_DONE : EXIT_FAILED;
    for (size_t at = first; result == EXIT_DONE && at < end; at += rows) {
        size_t count = end - at < rows ? end - at : rows;
        result = vectors_read(inputs->base, at, count, inputs->type, 0, block);
        if (result == EXIT_DONE) result = work(ctx, block, at, count);
    }
    free(block);
    return result;
}
