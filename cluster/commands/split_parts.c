/* The indexes of a split's parts. */
#include "cli/common/clock.h"
#include "cli/common/interrupt.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/index/description.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/split_job.h"

#include <stdio.h>
#include <stdlib.h>

/* Reads the rows of a slice. */
static int read_slice(split_job *job, size_t part, sl_part_rows *rows) {
    const size_t first = sl_comm_share(job->base->n, part, job->split.facts.parts);
    const size_t count = sl_comm_share(job->base->n, part + 1, job->split.facts.parts) - first;
    const size_t row = job->base->dim * element_size(job->type);
    sl_status status = SL_OK;
    *rows = (sl_part_rows){.allocator = job->split.allocator, .row = row};
    rows->rows = sl_mem_grow(&rows->allocator, NULL, &rows->rows_room, count * row, 1, &status);
    rows->numbers = sl_mem_grow(&rows->allocator, NULL, &rows->numbers_room, count, sizeof *rows->numbers, &status);
    if (status != SL_OK) return report_status(NULL, status);
    rows->count = count;
    for (size_t i = 0; i < count; i++)
        rows->numbers[i] = first + i;
    return vectors_read(job->base, first, count, job->type, 0, rows->rows);
}

sl_status split_create_index(const split_job *job, sl_index **out) {
    const split_options *options = job->options;
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = job->base->dim;
    params.metric = (sl_metric)options->metric;
    params.dtype = element_dtype(job->base->type);
    params.codes = index_codes(options->codes, params.dtype);
    params.refine = (sl_refine)options->refine;
    params.m = options->m;
    params.ef_construction = options->ef_build;
    params.seed = options->seed;
    params.log = report_log(&params.log_ctx);
    params.tags = options->kind == SL_SPLIT_NEIGHBOURHOODS;
    return sl_index_create(&params, out);
}

static int stops(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return interrupted();
}

/* Links a part's rows. The caller frees the index, also on failure. */
static sl_status build_part(const split_job *job, const sl_part_rows *rows, sl_index **index) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = job->options->threads;
    params.tags = rows->others;
    params.progress = stops;
    SL_TRY(split_create_index(job, index));
    return sl_index_add(*index, rows->rows, element_dtype(job->type), rows->count, 0, rows->numbers, &params);
}

/* Turns row numbers into ids. */
static void name_rows(const split_job *job, sl_part_rows *rows) {
    for (size_t i = 0; job->ids && i < rows->count; i++)
        rows->numbers[i] = job->ids[rows->numbers[i]];
}

/* Reports a failure of build_part. The numbers in its message count a part's rows: a slice's are those of the base from
 * `first` on, and a neighbourhood's rows have been checked before. */
static int report_part(const split_job *job, const char *path, size_t first, sl_status status) {
    if (status == SL_ECANCELED)
        return report_failure("interrupted; %s holds no whole split, so give the same command again",
                              job->options->output);
    return job->options->kind == SL_SPLIT_SLICES ? report_rows(job->base_path, first, status)
                                                 : report_status(path, status);
}

/* Makes the file of a part. An empty part has no file, and an older one of its name goes. */
static int make_part(split_job *job, size_t part, sl_part_rows *rows) {
    char path[SL_SPLIT_PATH];
    sl_index *index = NULL;
    sl_split_part *entry = &job->split.parts[part];
    sl_status status = sl_split_part_path(job->options->output, part, path);
    if (status != SL_OK) return report_status(NULL, status);
    if (!rows->count) {
        (void)remove(path);
        return EXIT_DONE;
    }
    const size_t first = (size_t)rows->numbers[0];
    name_rows(job, rows);
    status = build_part(job, rows, &index);
    int result = status == SL_OK ? EXIT_DONE : report_part(job, path, first, status);
    if (status == SL_OK) {
        status = sl_index_save(index, path, NULL);
        if (status == SL_OK) status = sl_split_identify(path, entry);
        if (status != SL_OK) result = report_status(path, status);
    }
    sl_index_free(index);
    return result;
}

/* Gives every rank the entries of all parts: each rank has its own, and zeros in place of the others. */
static int share_entries(split_job *job) {
    uint64_t *words = (uint64_t *)(void *)job->split.parts;
    sl_status status =
        sl_comm_sum_counts(ranks(), words, job->split.facts.parts * sizeof *job->split.parts / sizeof *words);
    return status == SL_OK ? EXIT_DONE : ranks_report(status);
}

int split_build_parts(split_job *job) {
    const double start = now_seconds();
    int status = EXIT_DONE;
    for (size_t p = job->first; status == EXIT_DONE && p < job->end; p++) {
        sl_part_rows slice = {.rows = NULL}, *rows = job->rows ? &job->rows[p - job->first] : &slice;
        if (!job->rows) status = read_slice(job, p, &slice);
        if (status == EXIT_DONE) status = make_part(job, p, rows);
        sl_part_rows_free(rows);
    }
    job->build_s = now_seconds() - start;
    status = ranks_agree(status);
    return status == EXIT_DONE ? share_entries(job) : status;
}
