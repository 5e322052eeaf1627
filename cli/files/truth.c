#include "cli/files/truth.h"

#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/ids.h"

#include <inttypes.h>
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

/* Returns whether an entry of a row means "no id". Widening a narrower file keeps the sign of -1. */
static int is_missing(const vectors *file, uint64_t id) {
    return id == SL_NO_ID || (file->type != ELEMENT_U64 && id > INT64_MAX);
}

int truth_allows(const truth_filter *filter, uint64_t id) {
    return bsearch(&id, filter->ids, filter->n, sizeof id, compare_ids) != NULL;
}

static int report_short(const vectors *file, size_t q, size_t found, size_t k, const truth_filter *filter) {
    if (filter && !filter->path)
        return report_failure("%s, row %zu: %zu of its neighbours are allowed, %zu are needed; make the truth with "
                              "'shortlist truth' and the same masks and keys",
                              file->path, q, found, k);
    if (filter)
        return report_failure("%s, row %zu: %zu of its neighbours are in %s, %zu are needed; make the truth with "
                              "'shortlist truth --filter %s'",
                              file->path, q, found, filter->path, k, filter->path);
    return report_failure("%s, row %zu: only %zu neighbours, -k is %zu; make the truth for this -k again, or ask for "
                          "fewer",
                          file->path, q, found, k);
}

static int copy_rows(const vectors *file, const uint64_t *rows, size_t k, const truth_filter *filter, uint64_t *out) {
    for (size_t q = 0; q < file->n; q++) {
        const uint64_t *row = rows + q * file->dim;
        size_t found = 0;
        for (size_t i = 0; i < file->dim && found < k && !is_missing(file, row[i]); i++)
            if (!filter || truth_allows(filter, row[i])) out[q * k + found++] = row[i];
        if (found < k) return report_short(file, q, found, k, filter);
    }
    return EXIT_DONE;
}

int truth_load(const char *path, const vectors *queries, size_t k, const truth_filter *filter, uint64_t **out) {
    vectors *file;
    uint64_t *rows = NULL, *ids = NULL;
    *out = NULL;
    int status = vectors_open(path, VECTORS_TRUTH, &file);
    if (status != EXIT_DONE) return status;
    status = check_shape(file, queries, k);
    if (status == EXIT_DONE) {
        rows = vectors_read_all(file, file->type == ELEMENT_U64 ? ELEMENT_U64 : ELEMENT_I64);
        ids = rows ? allocate(file->n, k * sizeof *ids) : NULL;
        status = ids ? copy_rows(file, rows, k, filter, ids) : EXIT_FAILED;
    }
    free(rows);
    vectors_close(file);
    if (status == EXIT_DONE)
        *out = ids;
    else
        free(ids);
    return status;
}

/* The likely reason why a truth has an id that the index lacks: row numbers are all below the number of vectors. */
static const char *wrong_id_remedy(const sl_index_stats *stats, const uint64_t *ids, size_t count) {
    uint64_t largest = 0;
    for (size_t i = 0; i < count; i++)
        if (ids[i] > largest) largest = ids[i];
    if (largest >= stats->n + stats->deleted) return "make the truth of the vectors that the index holds, with --ids";
    return "these look like row numbers of the base, and the index has ids of its own: make the truth with 'shortlist "
           "truth --ids', or anew where vectors were deleted";
}

int truth_check_ids(const char *path, const char *index_path, sl_index *index, const uint64_t *ids, size_t nq,
                    size_t k) {
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_status status = sl_index_get_stats(index, &stats);
    for (size_t i = 0; status == SL_OK && i < nq * k; i++) {
        int found;
        status = sl_index_contains(index, ids[i], &found);
        if (status == SL_OK && !found)
            return report_failure("%s, row %zu: id %" PRIu64 " is not in %s; %s", path, i / k, ids[i], index_path,
                                  wrong_id_remedy(&stats, ids, nq * k));
    }
    return status == SL_OK ? EXIT_DONE : report_status(index_path, status);
}

/* Random results contain almost none of k vectors among many more. hnsw/tune/truth.c has the same rule for tune. */
int truth_is_strange(double best_recall, size_t k, size_t n) {
    return n / k >= 40 && best_recall < 0.05;
}
