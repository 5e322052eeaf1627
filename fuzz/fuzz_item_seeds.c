/* Writes small valid item tables into a folder: fuzz_items starts from them. */
#include <shortlist_rank.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { ROWS = 3, DIM = 2 };

static const int64_t ids[] = {5, 0, 1000000007};
static const int32_t integers[] = {-1, 2, 3};
static const float floats[] = {0.5f, 1.5f, 2.5f};
static const double doubles[] = {1, 2, 3};
static const float vectors[ROWS * DIM] = {1, 2, 3, 4, 5, 6};
static const int64_t offsets[] = {0, 1, 1, 4};
static const int64_t lists[] = {0, 2, 2, 3};
static const uint8_t some[] = {5};

/* A table of every type of column, and one of ids that are texts. The first comes with deleted ids too. */
static const sl_column every[] = {
    {.name = "id", .type = SL_COLUMN_I64, .values = ids},
    {.name = "text", .type = SL_COLUMN_TEXT, .values = "abcd", .offsets = offsets},
    {.name = "list", .type = SL_COLUMN_TEXTS, .values = "efgh", .offsets = offsets, .lists = lists, .valid = some},
    {.name = "int", .type = SL_COLUMN_I32, .values = integers, .valid = some},
    {.name = "float", .type = SL_COLUMN_F32, .values = floats},
    {.name = "double", .type = SL_COLUMN_F64, .values = doubles},
    {.name = "vector", .type = SL_COLUMN_VECTOR, .dim = DIM, .values = vectors},
};
static const int64_t digit_offsets[] = {0, 1, 2, 4};
static const sl_column digits[] = {{.name = "id", .type = SL_COLUMN_TEXT, .values = "1234", .offsets = digit_offsets}};

static const uint64_t deleted[] = {5, 1000000007};

static sl_status write_seed(const char *folder, int number, const sl_table *table) {
    char path[4096];
    sl_rows rows = {.struct_size = sizeof rows};
    sl_items *items = NULL;
    int length = snprintf(path, sizeof path, "%s/kind-%d.sli", folder, number);
    if (length < 0 || (size_t)length >= sizeof path) return SL_EINVAL;
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(table->column_count));
    sl_status status = cursor ? sl_table_rows(table, cursor, &rows) : SL_ENOMEM;
    if (status == SL_OK) status = sl_items_create(&rows, NULL, &items);
    /* The last kind has a list of deleted ids. */
    if (status == SL_OK && number == 2) status = sl_items_delete(items, deleted, 2);
    if (status == SL_OK) status = sl_items_save(items, path, NULL);
    sl_items_free(items);
    free(cursor);
    return status;
}

int main(int argc, char **argv) {
    const sl_table tables[] = {
        {.struct_size = sizeof(sl_table), .rows = ROWS, .column_count = 7, .columns = every},
        {.struct_size = sizeof(sl_table), .rows = ROWS, .column_count = 1, .columns = digits},
        {.struct_size = sizeof(sl_table), .rows = ROWS, .column_count = 7, .columns = every},
    };
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_item_seeds FOLDER\n");
        return 2;
    }
    if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) {
        perror(argv[1]);
        return 1;
    }
    for (int i = 0; i < 3; i++)
        if (write_seed(argv[1], i, &tables[i]) != SL_OK) {
            fprintf(stderr, "%s: seed %d: %s\n", argv[1], i, sl_last_error());
            return 1;
        }
    return 0;
}
