#include "cli/ids.h"

#include "cli/report.h"
#include "cli/system.h"
#include "cli/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int compare_ids(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int ids_check_distinct(const char *path, const uint64_t *ids, size_t n) {
    uint64_t *sorted = allocate(n, sizeof *sorted);
    if (!sorted) return EXIT_FAILED;
    memcpy(sorted, ids, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_ids);
    int status = EXIT_DONE;
    for (size_t i = 1; status == EXIT_DONE && i < n; i++)
        if (sorted[i] == sorted[i - 1])
            status = report_failure("%s: id %" PRIu64 " comes twice; ids must differ", path, sorted[i]);
    if (status == EXIT_DONE && n && sorted[n - 1] == SL_NO_ID)
        status = report_failure("%s: id 2^64 - 1 is reserved; choose another", path);
    free(sorted);
    return status;
}

int id_filter_read(const char *path, sl_index *index, sl_filter **out) {
    sl_filter_params params;
    uint64_t *ids = NULL;
    sl_filter_params_init(&params);
    int status = vectors_read_ids(path, NULL, &params.allow_count, &ids);
    params.allow = ids;
    if (status == EXIT_DONE) {
        sl_status made = sl_filter_create(index, &params, out);
        if (made != SL_OK) status = report_status(path, made);
    }
    free(ids);
    return status;
}
