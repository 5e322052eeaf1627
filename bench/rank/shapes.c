#define _POSIX_C_SOURCE 200809L
#include "shapes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

static const shape shapes[] = {
    {"criteo", 13, 26, 1000, 32, "1024, 512, 256"},
    {"small", 5, 8, 1000, 16, "128, 64, 32"},
    {"first", 13, 26, 1000, 32, "1024"},
};

void must(sl_status status, const char *what) {
    if (status == SL_OK) return;
    fprintf(stderr, "bench_rank: %s: %s\n", what, sl_last_error());
    exit(1);
}

void *must_alloc(size_t count, size_t size) {
    void *block = calloc(count ? count : 1, size);
    if (block) return block;
    fprintf(stderr, "bench_rank: out of memory\n");
    exit(1);
}

const shape *shape_named(const char *name) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}

static int is_user(size_t column, size_t columns) {
    return column < columns / 2;
}

char *shape_spec(const shape *of) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) must(SL_ENOMEM, "spec");
    fprintf(out, "{\"label\": {\"column\": \"label\"}, \"features\": [");
    for (size_t i = 0; i < of->numbers; i++)
        fprintf(out, "{\"name\": \"I%zu\", \"type\": \"numeric\", \"scale\": \"minmax\", \"side\": \"%s\"},", i + 1,
                is_user(i, of->numbers) ? "user" : "item");
    for (size_t i = 0; i < of->categories; i++)
        fprintf(out, "%s{\"name\": \"C%zu\", \"type\": \"categorical\", \"hash\": %zu, \"dim\": %zu, \"side\": \"%s\"}",
                i ? "," : "", i + 1, of->buckets, of->dim, is_user(i, of->categories) ? "user" : "item");
    fprintf(out, "], \"wide\": {\"features\": [");
    for (size_t i = 0; i < of->categories; i++)
        fprintf(out, "%s\"C%zu\"", i ? ", " : "", i + 1);
    fprintf(out, "]}, \"deep\": {\"hidden\": [%s]}}", of->hidden);
    if (fclose(out) != 0) must(SL_ENOMEM, "spec");
    return text;
}

static sl_column *next_column(rows *made, const char *format, size_t number, sl_column_type type, void *values) {
    snprintf(made->names[made->count], sizeof *made->names, format, number);
    sl_column *column = &made->columns[made->count];
    *column = (sl_column){.name = made->names[made->count], .type = type, .values = values};
    made->count++;
    return column;
}

static rows *rows_empty(size_t n, size_t columns) {
    rows *made = must_alloc(1, sizeof *made);
    made->columns = must_alloc(columns, sizeof *made->columns);
    made->names = must_alloc(columns, sizeof *made->names);
    made->table = (sl_table){.struct_size = sizeof made->table, .rows = n, .columns = made->columns};
    return made;
}

/* Values of columns, drawn by column and row: users and items have the same in common as two samples of one log. */
static float number_at(uint64_t seed, size_t column, size_t row) {
    return (float)-log(sl_random_unit(seed + column, row));
}

static int64_t category_at(uint64_t seed, size_t column, size_t row) {
    double unit = sl_random_unit(seed + 1000 + column, row);
    return (int64_t)(1e5 * unit * unit * unit);
}

rows *rows_make(const shape *of, size_t n, unsigned which, uint64_t seed) {
    rows *made = rows_empty(n, of->numbers + of->categories + 2);
    for (size_t i = 0; i < of->numbers; i++) {
        if (!(which & (is_user(i, of->numbers) ? ROWS_USER : ROWS_ITEM))) continue;
        float *values = must_alloc(n, sizeof *values);
        for (size_t r = 0; r < n; r++)
            values[r] = number_at(seed, i, r);
        next_column(made, "I%zu", i + 1, SL_COLUMN_F32, values);
    }
    for (size_t i = 0; i < of->categories; i++) {
        if (!(which & (is_user(i, of->categories) ? ROWS_USER : ROWS_ITEM))) continue;
        int64_t *values = must_alloc(n, sizeof *values);
        for (size_t r = 0; r < n; r++)
            values[r] = category_at(seed, i, r);
        next_column(made, "C%zu", i + 1, SL_COLUMN_I64, values);
    }
    int64_t *last = must_alloc(n, sizeof *last);
    for (size_t r = 0; r < n; r++)
        last[r] = which & ROWS_ID ? (int64_t)r : (int64_t)(sl_random_at(seed + 5000, r) & 1);
    next_column(made, which & ROWS_ID ? "id" : "label", 0, SL_COLUMN_I64, last);
    made->table.column_count = made->count;
    return made;
}

void rows_free(rows *made) {
    for (size_t i = 0; i < made->count; i++)
        free((void *)made->columns[i].values);
    free(made->columns);
    free(made->names);
    free(made);
}

static size_t width(const sl_column *column) {
    return column->type == SL_COLUMN_F32 ? sizeof(float) : sizeof(int64_t);
}

static void append(rows *to, const rows *from, const uint64_t *ids, size_t one, size_t n) {
    for (size_t c = 0; c < from->count; c++) {
        const sl_column *column = &from->columns[c];
        if (column->name[0] != 'I' && column->name[0] != 'C') continue;
        size_t bytes = width(column);
        char *values = must_alloc(n, bytes);
        for (size_t r = 0; r < n; r++)
            memcpy(values + r * bytes, (const char *)column->values + (ids ? ids[r] : one) * bytes, bytes);
        next_column(to, "", 0, column->type, values)->name = column->name;
    }
}

rows *rows_join(const rows *users, size_t user, const rows *items, const uint64_t *ids, size_t n) {
    rows *made = rows_empty(n, users->count + items->count);
    append(made, users, NULL, user, n);
    append(made, items, ids, 0, n);
    made->table.column_count = made->count;
    return made;
}

/* Uniform, of a size that keeps the sums of each layer near one. */
static void randomise(sl_tensor *tensor, float *values, uint64_t seed) {
    int is_weight = strncmp(tensor->name, "dense.", 6) == 0 && tensor->rows > 1;
    double range = is_weight ? sqrt(6.0 / (double)tensor->rows) : 0.2;
    for (size_t i = 0; i < tensor->rows * tensor->columns; i++)
        values[i] = (float)((2 * sl_random_unit(seed, i) - 1) * range);
    tensor->data = values;
}

/* Gives the rows as a source; the cursor is to be freed. */
static sl_table_cursor *source_of(const rows *from, sl_rows *source) {
    sl_table_cursor *cursor = must_alloc(1, sl_table_cursor_size(from->count));
    *source = (sl_rows){.struct_size = sizeof *source};
    must(sl_table_rows(&from->table, cursor, source), "rows");
    return cursor;
}

sl_ranker *shape_ranker(const shape *of, uint64_t seed) {
    rows *sample = rows_make(of, 10000, ROWS_USER | ROWS_ITEM, seed);
    sl_rows source;
    sl_table_cursor *cursor = source_of(sample, &source);
    char *spec = shape_spec(of);
    sl_ranker *base, *made;
    must(sl_ranker_create(spec, &source, NULL, &base), "ranker");
    size_t count = sl_ranker_tensor_count(base);
    sl_tensor *tensors = must_alloc(count, sizeof *tensors);
    for (size_t i = 0; i < count; i++) {
        must(sl_ranker_get_tensor(base, i, &tensors[i]), "tensor");
        randomise(&tensors[i], must_alloc(tensors[i].rows * tensors[i].columns, sizeof(float)), seed + i);
    }
    must(sl_ranker_with_tensors(base, tensors, count, &made), "weights");
    for (size_t i = 0; i < count; i++)
        free((void *)tensors[i].data);
    free(tensors);
    sl_ranker_free(base);
    free(spec);
    free(cursor);
    rows_free(sample);
    return made;
}

sl_ranker *shape_quantized(const shape *of, const sl_ranker *ranker, uint64_t seed) {
    rows *sample = rows_make(of, 10000, ROWS_USER | ROWS_ITEM, seed);
    sl_rows source;
    sl_table_cursor *cursor = source_of(sample, &source);
    sl_ranker *made;
    must(sl_ranker_quantize(ranker, &source, NULL, &made), "quantised");
    free(cursor);
    rows_free(sample);
    return made;
}

sl_items *shape_items(const rows *from) {
    sl_rows source;
    sl_table_cursor *cursor = source_of(from, &source);
    sl_items *items;
    must(sl_items_create(&source, NULL, &items), "items");
    free(cursor);
    return items;
}

sl_index *shape_index(void) {
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = 4;
    const float vectors[8] = {1, 2, 3, 4, 4, 3, 2, 1};
    sl_index *index;
    must(sl_index_create(&params, &index), "index");
    must(sl_index_add(index, vectors, SL_F32, 2, 0, NULL, NULL), "index");
    return index;
}
