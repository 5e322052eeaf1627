#include "cli/files/results.h"

#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct results {
    const char *ids_path;
    vectors_writer *ids, *scores;
    int narrow; /* ids go into the file as i32 */
    int32_t *row;
    size_t k, done;
};

int results_check(const char *ids_path, const char *scores_path, const char *const *inputs) {
    element type;
    int status = vectors_writer_type(ids_path, ELEMENT_U64, &type);
    if (status == EXIT_DONE && type != ELEMENT_U64 && type != ELEMENT_I32)
        status =
            report_failure("%s: holds %s, not ids; name a .ibin, .ivecs or .npy file", ids_path, element_name(type));
    if (status == EXIT_DONE) status = output_check(ids_path, inputs);
    if (status != EXIT_DONE || !scores_path) return status;
    if (strcmp(ids_path, scores_path) == 0)
        return report_failure("%s: named for the ids and for the scores; name another file for one", ids_path);
    status = vectors_writer_type(scores_path, ELEMENT_F32, &type);
    if (status == EXIT_DONE && type != ELEMENT_F32)
        status = report_failure("%s: holds %s, not scores; name a .fbin, .fvecs or .npy file", scores_path,
                                element_name(type));
    return status == EXIT_DONE ? output_check(scores_path, inputs) : status;
}

static int fits_narrow(uint64_t id) {
    return id == SL_NO_ID || id <= INT32_MAX;
}

int results_check_ids(const char *ids_path, const uint64_t *ids, size_t n) {
    element type;
    int status = vectors_writer_type(ids_path, ELEMENT_U64, &type);
    for (size_t i = 0; status == EXIT_DONE && type == ELEMENT_I32 && i < n; i++)
        if (!fits_narrow(ids[i]))
            status = report_failure("%s: id %" PRIu64 " of row %zu does not fit its 32 bits; name a .npy file",
                                    ids_path, ids[i], i);
    return status;
}

int results_create(const char *ids_path, const char *scores_path, size_t nq, size_t k, results **out) {
    *out = NULL;
    element type;
    int status = results_check(ids_path, scores_path, (const char *const[]){NULL});
    if (status == EXIT_DONE) status = vectors_writer_type(ids_path, ELEMENT_U64, &type);
    if (status != EXIT_DONE) return status;
    results *results = allocate(1, sizeof *results);
    if (!results) return EXIT_FAILED;
    *results = (struct results){.ids_path = ids_path, .k = k, .narrow = type == ELEMENT_I32};
    results->row = allocate(k, sizeof *results->row);
    status = results->row ? vectors_create(ids_path, nq, k, ELEMENT_U64, &results->ids) : EXIT_FAILED;
    if (status == EXIT_DONE && scores_path) status = vectors_create(scores_path, nq, k, ELEMENT_F32, &results->scores);
    if (status == EXIT_DONE)
        *out = results;
    else
        results_discard(results);
    return status;
}

static int append_narrow(results *results, const uint64_t *ids, size_t row) {
    for (size_t i = 0; i < results->k; i++) {
        if (!fits_narrow(ids[i]))
            return report_failure("%s, row %zu: id %" PRIu64 " does not fit 32 bits; name a .npy file",
                                  results->ids_path, row, ids[i]);
        results->row[i] = ids[i] == SL_NO_ID ? -1 : (int32_t)ids[i];
    }
    return vectors_append(results->ids, results->row, ELEMENT_I32, 1, 0, results->ids_path, row);
}

int results_append(results *results, const uint64_t *ids, const float *scores, size_t count) {
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && results->narrow && i < count; i++)
        status = append_narrow(results, ids + i * results->k, results->done + i);
    if (!results->narrow)
        status = vectors_append(results->ids, ids, ELEMENT_U64, count, 0, results->ids_path, results->done);
    if (status == EXIT_DONE && results->scores)
        status = vectors_append(results->scores, scores, ELEMENT_F32, count, 0, results->ids_path, results->done);
    results->done += count;
    return status;
}

int results_commit(results *results) {
    int status = EXIT_DONE;
    if (results->scores) status = vectors_commit(results->scores);
    results->scores = NULL;
    if (status == EXIT_DONE) {
        status = vectors_commit(results->ids);
        results->ids = NULL;
    }
    results_discard(results);
    return status;
}

void results_discard(results *results) {
    if (!results) return;
    vectors_discard(results->ids);
    vectors_discard(results->scores);
    free(results->row);
    free(results);
}
