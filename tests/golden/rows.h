/* The rows of the golden model and item table: make.c trains and saves, test_golden.c opens and predicts. */
#ifndef SL_TESTS_GOLDEN_ROWS_H
#define SL_TESTS_GOLDEN_ROWS_H

#include <shortlist_rank.h>
#include <string.h>

enum { GOLDEN_ROWS = 300, GOLDEN_SCORES = 10, GOLDEN_COLUMNS = 5, GOLDEN_TAG = 3 };

static const char golden_spec[] =
    "{\"label\": {\"column\": \"click\"}, \"features\": ["
    " {\"name\": \"x\", \"type\": \"numeric\", \"indicator\": true},"
    " {\"name\": \"x_range\", \"type\": \"bucket\", \"column\": \"x\", \"quantiles\": 4},"
    " {\"name\": \"a\", \"type\": \"categorical\", \"dim\": 4},"
    " {\"name\": \"tags\", \"type\": \"multi\", \"hash\": 8, \"dim\": 4, \"side\": \"item\"},"
    " {\"name\": \"both\", \"type\": \"cross\", \"of\": [\"x_range\", \"a\"], \"hash\": 20}],"
    " \"deep\": {\"hidden\": [8, 4]}, \"train\": {\"epochs\": 2, \"batch\": 32}}";

/* Two tags a row, "t1|t4". */
typedef struct golden_rows {
    int64_t id[GOLDEN_ROWS];
    float x[GOLDEN_ROWS], click[GOLDEN_ROWS];
    int32_t a[GOLDEN_ROWS];
    char tags[GOLDEN_ROWS * 2 * GOLDEN_TAG];
    int64_t offsets[GOLDEN_ROWS + 1];
    sl_column columns[GOLDEN_COLUMNS];
    sl_table table; /* of all columns */
} golden_rows;

static inline void golden_rows_make(golden_rows *rows) {
    memset(rows, 0, sizeof *rows);
    for (int r = 0; r < GOLDEN_ROWS; r++) {
        char *tags = rows->tags + rows->offsets[r];
        rows->id[r] = 10 * r + 5;
        rows->x[r] = (float)(r * 37 % 101) / 50 - 1;
        rows->a[r] = r * 13 % 7;
        rows->click[r] = (float)((r * 37 % 101 > 50) != (r * 13 % 7 > 3));
        memcpy(tags, "t0|t0", 2 * GOLDEN_TAG - 1);
        tags[1] = (char)('0' + r % 5);
        tags[4] = (char)('0' + r % 9);
        rows->offsets[r + 1] = rows->offsets[r] + 2 * GOLDEN_TAG - 1;
    }
    const sl_column columns[GOLDEN_COLUMNS] = {
        {.name = "id", .type = SL_COLUMN_I64, .values = rows->id},
        {.name = "x", .type = SL_COLUMN_F32, .values = rows->x},
        {.name = "a", .type = SL_COLUMN_I32, .values = rows->a},
        {.name = "tags", .type = SL_COLUMN_TEXT, .values = rows->tags, .offsets = rows->offsets},
        {.name = "click", .type = SL_COLUMN_F32, .values = rows->click}};
    memcpy(rows->columns, columns, sizeof columns);
    rows->table = (sl_table){.struct_size = sizeof rows->table,
                             .rows = GOLDEN_ROWS,
                             .column_count = GOLDEN_COLUMNS,
                             .columns = rows->columns};
}

#endif
