#include "cli/files/range_row.h"

#include "cli/common/report.h"
#include "cli/common/system.h"

#include <stdlib.h>

static int grow_row(range_row *row) {
    size_t room = row->room ? 2 * row->room : 64;
    uint64_t *ids = realloc(row->ids, room * sizeof *ids);
    if (ids) row->ids = ids;
    float *scores = ids ? realloc(row->scores, room * sizeof *scores) : NULL;
    if (!scores) return 0;
    row->scores = scores;
    row->room = room;
    return 1;
}

int range_row_take(void *rows, size_t query, uint64_t id, float score) {
    range_row *row = (range_row *)rows + query;
    if (row->count == row->room && !grow_row(row)) {
        row->full = 1;
        return 1;
    }
    row->ids[row->count] = id;
    row->scores[row->count++] = score;
    return 0;
}

typedef struct found {
    double far; /* larger means farther */
    uint64_t id;
    float score;
} found;

static int compare_found(const void *a, const void *b) {
    const found *x = a, *y = b;
    if (x->far != y->far) return x->far < y->far ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

int range_row_sort(range_row *row, sl_metric metric) {
    if (row->full)
        return report_failure("out of memory: cannot hold more than %zu results; free some memory", row->room);
    found *all = allocate(row->count, sizeof *all);
    if (!all) return EXIT_FAILED;
    for (size_t i = 0; i < row->count; i++) {
        double score = (double)row->scores[i];
        all[i] = (found){metric == SL_METRIC_L2 ? score : -score, row->ids[i], row->scores[i]};
    }
    qsort(all, row->count, sizeof *all, compare_found);
    for (size_t i = 0; i < row->count; i++) {
        row->ids[i] = all[i].id;
        row->scores[i] = all[i].score;
    }
    free(all);
    return EXIT_DONE;
}

void range_row_clear(range_row *row) {
    row->count = 0;
    row->full = 0;
}

void range_row_free(range_row *row) {
    free(row->ids);
    free(row->scores);
    *row = (range_row){0};
}
