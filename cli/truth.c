#include "cli/truth.h"

#include "cli/report.h"
#include "cli/system.h"

#include <stdlib.h>
#include <string.h>

static int check_shape(const vectors *file, const vectors *queries, size_t k) {
    if (element_is_float(file->type))
        return report_failure("%s: holds %s, but ground truth is ids; make it with 'shortlist truth'", file->path,
                              element_name(file->type));
    if (file->n != queries->n)
        return report_failure("%s: holds %zu rows for the %zu queries of %s; make the truth of these queries",
                              file->path, file->n, queries->n, queries->path);
    if (file->dim < k)
        return report_failure("%s: holds %zu neighbours a query, -k is %zu; make it again with -k %zu, or ask for "
                              "fewer",
                              file->path, file->dim, k, k);
    return EXIT_DONE;
}

static int take_rows(const vectors *file, const uint64_t *rows, size_t k, uint64_t *out) {
    for (size_t q = 0; q < file->n; q++) {
        uint64_t *row = out + q * k;
        memcpy(row, rows + q * file->dim, k * sizeof *row);
        for (size_t i = 0; i < k; i++)
            /* -1 marks a missing neighbour; a narrower file's was widened with its sign. */
            if (row[i] == SL_NO_ID || (file->type != ELEMENT_U64 && row[i] > INT64_MAX))
                return report_failure("%s, row %zu: only %zu neighbours, -k is %zu; make the truth for this -k again, "
                                      "or ask for fewer",
                                      file->path, q, i, k);
    }
    return EXIT_DONE;
}

int truth_load(const char *path, const vectors *queries, size_t k, uint64_t **out) {
    vectors *file;
    uint64_t *rows = NULL, *ids = NULL;
    *out = NULL;
    int status = vectors_open(path, VECTORS_TRUTH, &file);
    if (status != EXIT_DONE) return status;
    status = check_shape(file, queries, k);
    if (status == EXIT_DONE) {
        rows = vectors_read_all(file, file->type == ELEMENT_U64 ? ELEMENT_U64 : ELEMENT_I64);
        ids = rows ? allocate(file->n, k * sizeof *ids) : NULL;
        status = ids ? take_rows(file, rows, k, ids) : EXIT_FAILED;
    }
    free(rows);
    vectors_close(file);
    if (status == EXIT_DONE)
        *out = ids;
    else
        free(ids);
    return status;
}
