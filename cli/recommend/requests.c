#include "cli/recommend/requests.h"

#include "cli/common/report.h"
#include "cli/common/system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Requests read, answered and written at a time. */
#define BLOCK_ROWS 2048

int requests_open(requests *requests, const char *path, const char *vectors_path, const sl_index_stats *stats,
                  const char *index_path) {
    *requests = (struct requests){.dim = stats->dim};
    int floating = stats->dtype == SL_F32 || stats->dtype == SL_F16 || stats->dtype == SL_BF16;
    requests->type = floating ? ELEMENT_F32 : element_of_dtype(stats->dtype);
    int status = csv_open(&requests->file, path, NULL, NULL);
    if (status == EXIT_DONE && vectors_path) status = vectors_open(vectors_path, VECTORS_QUERIES, &requests->vectors);
    if (status == EXIT_DONE && vectors_path) status = vectors_check_metric(requests->vectors, stats->metric);
    if (status == EXIT_DONE && vectors_path) status = vectors_match_dim(requests->vectors, stats->dim, index_path);
    if (status == EXIT_DONE && vectors_path)
        status = vectors_match_type(requests->vectors, stats->dtype, index_path, &requests->type);
    if (status != EXIT_DONE) return status;
    requests->numbers = allocate(stats->dim, sizeof *requests->numbers);
    requests->matrix = allocate(BLOCK_ROWS, stats->dim * element_size(requests->type));
    requests->requests = allocate(BLOCK_ROWS, sizeof *requests->requests);
    return requests->numbers && requests->matrix && requests->requests ? EXIT_DONE : EXIT_FAILED;
}

void requests_close(requests *requests) {
    csv_close(&requests->file);
    vectors_close(requests->vectors);
    free(requests->numbers);
    free(requests->matrix);
    free(requests->requests);
    id_lists_free(&requests->exclude);
    id_lists_free(&requests->relevant);
    *requests = (struct requests){0};
}

typedef struct place {
    char text[512];
} place;

/* The place for messages: "requests.csv, line 12, column exclude". */
static place place_of(const requests *requests, size_t row, const char *column) {
    const sl_table *table = &requests->table;
    place place;
    if (table->lines)
        snprintf(place.text, sizeof place.text, "%s, line %" PRIu64 ", column %s", requests->file.path,
                 table->lines[row], column);
    else
        snprintf(place.text, sizeof place.text, "%s, row %zu, column %s", requests->file.path, requests->first + row,
                 column);
    return place;
}

static int read_lists(const requests *requests, const char *name, id_lists *lists, int *present) {
    const sl_column *column = find_column(&requests->table, name);
    int status = EXIT_DONE;
    *present = column != NULL;
    id_lists_clear(lists);
    for (size_t row = 0; column && status == EXIT_DONE && row < requests->table.rows; row++)
        status = id_lists_append(lists, column_cell(column, row), place_of(requests, row, name).text);
    return status;
}

/* Reads the block's vectors from the column, in the index's type. */
static int parse_vectors(requests *requests) {
    const sl_column *column = find_column(&requests->table, "vector");
    size_t pitch = requests->dim * element_size(requests->type);
    if (!column)
        return report_failure("%s: has no column 'vector'; add one of numbers with blanks between them, or name a file "
                              "of vectors with --vectors",
                              requests->file.path);
    for (size_t row = 0; row < requests->table.rows; row++) {
        place place = place_of(requests, row, "vector");
        int status = cell_numbers(column_cell(column, row), requests->numbers, requests->dim, place.text);
        if (status != EXIT_DONE) return status;
        if (elements_convert(requests->numbers, ELEMENT_F32, requests->matrix + row * pitch, requests->type,
                             requests->dim, 0) < requests->dim)
            return report_failure("%s: a number does not fit %s, the type of the index's vectors", place.text,
                                  element_name(requests->type));
    }
    return EXIT_DONE;
}

/* Reads the block's vectors from the file of vectors, which has one row per request. */
static int read_vectors(requests *requests) {
    size_t rows = requests->table.rows, held = requests->vectors->n, end = requests->first + rows;
    if (end > held || (rows == 0 && end < held))
        return report_failure("%s: holds %zu vectors, but %s has %s%zu requests; give one a request",
                              requests->vectors->path, held, requests->file.path, rows ? "at least " : "", end);
    if (rows == 0) return EXIT_DONE;
    return vectors_read(requests->vectors, requests->first, rows, requests->type, 0, requests->matrix);
}

static void fill_requests(requests *requests, int excludes) {
    size_t pitch = requests->dim * element_size(requests->type);
    for (size_t row = 0; row < requests->count; row++) {
        sl_request *request = &requests->requests[row];
        *request = (sl_request){.struct_size = sizeof *request,
                                .vector = requests->matrix + row * pitch,
                                .dtype = element_dtype(requests->type),
                                .user = &requests->table,
                                .user_row = row};
        if (!excludes) continue;
        const size_t *start = &requests->exclude.start[row];
        request->exclude = start[1] > start[0] ? requests->exclude.ids + start[0] : NULL;
        request->exclude_count = start[1] - start[0];
    }
}

int requests_next(requests *requests) {
    int excludes = 0;
    requests->first += requests->count;
    requests->count = 0;
    int status = csv_next(&requests->file, BLOCK_ROWS, &requests->table);
    if (status == EXIT_DONE && requests->vectors) status = read_vectors(requests);
    if (status != EXIT_DONE || !requests->table.rows) return status;
    if (!requests->vectors) status = parse_vectors(requests);
    if (status == EXIT_DONE) status = read_lists(requests, "exclude", &requests->exclude, &excludes);
    if (status == EXIT_DONE) status = read_lists(requests, "relevant", &requests->relevant, &requests->judged);
    if (status != EXIT_DONE) return status;
    requests->count = requests->table.rows;
    fill_requests(requests, excludes);
    return EXIT_DONE;
}
