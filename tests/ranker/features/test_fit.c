/* Fitting in blocks, labels, and fitted features as bytes: read whole, cut, changed, and without memory. */
#include "base/random.h"
#include "ranker/features/encode.h"
#include "ranker/features/fit_collect.h"
#include "tests/support/check_main.h"
#include "tests/support/columns.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_KINDS                                                                                                      \
    "{'name': 'n', 'type': 'numeric', 'indicator': true}, {'name': 'l', 'type': 'numeric', 'column': 'n', 'log': "     \
    "true, "                                                                                                           \
    "'scale': 'minmax'}, {'name': 'b', 'type': 'bucket', 'column': 'n', 'quantiles': 5}, {'name': 'e', 'type': "       \
    "'bucket', 'column': 'n', 'boundaries': [1, 2]}, {'name': 'a', 'type': 'categorical', 'oov': 2}, {'name': 'h', "   \
    "'type': 'categorical', 'column': 'a', 'hash': 20}, {'name': 'v', 'type': 'categorical', 'column': 'a', "          \
    "'vocabulary': ['x', 'y']}, {'name': 'g', 'type': 'multi', 'side': 'item'}, {'name': 's', 'type': 'multi', "       \
    "'column': 'g', 'shared': 'a'}, {'name': 'x', 'type': 'cross', 'of': ['a', 'g'], 'hash': 30}, {'name': 'w', "      \
    "'type': 'vector', 'dim': 2}, {'name': 'r', 'type': 'score', 'column': 'n'}"

static columns c;

static void set_up(void) {
    columns_start(&c);
    columns_text(&c, "n", "1 2.5 - 4 -7 2.5 3e1 0 1 1 8 9 10 - 3 3 4 5 6");
    columns_text(&c, "a", "x y 5 y z - 5 y q x x y z 12 12 p - y x");
    columns_text(&c, "g", "u|v v - u|u|w w v|x y - u v w u|y - - u v x|y 5 w");
    static float vectors[2 * COLUMN_ROWS];
    for (size_t i = 0; i < 2 * COLUMN_ROWS; i++)
        vectors[i] = (float)i;
    columns_values(&c, "w", SL_COLUMN_VECTOR, vectors, c.table.rows);
    c.list[3].dim = 2;
}

static void *bytes_of(const sl_features *features, size_t *size) {
    sl_allocator allocator = sl_allocator_of(NULL);
    void *data;
    ck_ok(sl_features_write(features, &allocator, &data, size));
    return data;
}

static void check_same(const sl_rows_buffer *a, const sl_rows_buffer *b, const sl_features *features) {
    ck_assert_uint_eq(a->rows, b->rows);
    size_t rows = a->rows, starts = rows * features->bag_count;
    ck_assert_mem_eq(a->dense, b->dense, rows * features->dense_width * sizeof(float));
    ck_assert_mem_eq(a->ids, b->ids, rows * features->id_count * sizeof(uint32_t));
    ck_assert_mem_eq(a->bag_start, b->bag_start, (starts + 1) * sizeof(uint32_t));
    ck_assert_mem_eq(a->bag_ids, b->bag_ids, a->bag_start[starts] * sizeof(uint32_t));
}

START_TEST(blocks_change_nothing) {
    static const size_t blocks[] = {1, 3, 8, 100};
    size_t size, other_size;
    sl_features *whole = columns_fit(ALL_KINDS, &c, 4096);
    void *bytes = bytes_of(whole, &size);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        sl_features *features = columns_fit(ALL_KINDS, &c, blocks[i]);
        void *others = bytes_of(features, &other_size);
        ck_assert_uint_eq(size, other_size);
        ck_assert_mem_eq(bytes, others, size);
        sl_allocator allocator = sl_allocator_of(NULL);
        sl_mem_free(&allocator, others, other_size);
        sl_features_free(features);
    }
    /* Encoding in pieces gives the same as encoding all at once. */
    sl_rows_buffer all, rows = {.allocator = sl_allocator_of(NULL)};
    columns_encode(whole, &c, &all);
    sl_encoder *encoder;
    ck_ok(sl_encoder_create(whole, SL_ALL_SIDES, 0, NULL, NULL, NULL, &encoder));
    for (size_t at = 0, step = 1; at < c.table.rows; at += step, step = 1 + step % 3)
        ck_ok(sl_encoder_append(encoder, &c.table, at, step < c.table.rows - at ? step : c.table.rows - at, &rows));
    check_same(&all, &rows, whole);
    sl_encoded view;
    sl_rows_buffer_view(&rows, &view);
    ck_assert(view.rows == c.table.rows && view.dense == rows.dense && view.bag_ids == rows.bag_ids);
    sl_rows_buffer_free(&all);
    sl_rows_buffer_free(&rows);
    sl_encoder_free(encoder);
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_mem_free(&allocator, bytes, size);
    sl_features_free(whole);
}
END_TEST

START_TEST(bytes_and_back) {
    size_t size;
    sl_features *features = columns_fit(ALL_KINDS, &c, 4096), *back;
    void *bytes = bytes_of(features, &size);
    ck_ok(sl_features_read(columns_spec(ALL_KINDS, NULL), bytes, size, &back));
    sl_rows_buffer a, b;
    columns_encode(features, &c, &a);
    columns_encode(back, &c, &b);
    check_same(&a, &b, features);
    ck_assert_uint_eq(back->deep_inputs, features->deep_inputs);
    ck_assert_uint_eq(back->wide_size, features->wide_size);
    ck_assert_str_eq(back->classes[0], "1");
    sl_rows_buffer_free(&a);
    sl_rows_buffer_free(&b);
    sl_features_free(back);
    /* Bytes of another spec are refused. */
    ck_fails(sl_features_read(columns_spec("{'name': 'n', 'type': 'numeric'}", NULL), bytes, size, &back), SL_ECORRUPT,
             "do not belong to the spec");
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_mem_free(&allocator, bytes, size);
    sl_features_free(features);
}
END_TEST

/* Reads arbitrary bytes: they are refused, or usable. */
static void read_hostile(const unsigned char *bytes, size_t size) {
    unsigned char *exact = malloc(size ? size : 1);
    memcpy(exact, bytes, size);
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_features *features;
    sl_status status = sl_features_read(columns_spec(ALL_KINDS, &faults.allocator), exact, size, &features);
    ck_assert_msg(status == SL_OK || status == SL_ECORRUPT, "%s", sl_last_error());
    free(exact);
    if (status == SL_OK) {
        sl_encoder *encoder;
        sl_rows_buffer rows = {.allocator = faults.allocator};
        ck_ok(sl_encoder_create(features, SL_ALL_SIDES, 0, NULL, NULL, &faults.allocator, &encoder));
        status = sl_encoder_append(encoder, &c.table, 0, c.table.rows, &rows);
        ck_assert_msg(status == SL_OK || status == SL_EVALUE, "%s", sl_last_error());
        for (size_t i = 0; i < rows.rows; i++)
            for (size_t f = 0; f < features->count; f++)
                if (features->features[f].form == SL_FORM_ID)
                    ck_assert_uint_lt(rows.ids[i * features->id_count + features->features[f].at],
                                      features->features[f].size);
        sl_encoder_free(encoder);
        sl_rows_buffer_free(&rows);
    }
    sl_features_free(features);
    ck_assert_uint_eq(faults.live_blocks, 0);
}

START_TEST(hostile_bytes) {
    size_t size;
    sl_features *features = columns_fit(ALL_KINDS, &c, 4096);
    unsigned char *bytes = bytes_of(features, &size);
    sl_features *back;
    for (size_t cut = 0; cut < size; cut++) {
        read_hostile(bytes, cut);
        ck_fails(sl_features_read(columns_spec(ALL_KINDS, NULL), bytes, cut, &back), SL_ECORRUPT, "damaged");
    }
    for (size_t at = 0; at < size; at++) {
        static const unsigned char masks[] = {1, 0x80, 0xff, 0x10};
        for (size_t m = 0; m < sizeof masks; m++) {
            bytes[at] ^= masks[m];
            read_hostile(bytes, size);
            bytes[at] ^= masks[m];
        }
    }
    unsigned char *longer = calloc(size + 1, 1);
    memcpy(longer, bytes, size);
    ck_fails(sl_features_read(columns_spec(ALL_KINDS, NULL), longer, size + 1, &back), SL_ECORRUPT,
             "something follows");
    free(longer);
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_mem_free(&allocator, bytes, size);
    sl_features_free(features);
}
END_TEST

/* ---- Labels ---- */

/* Fits to the table with this label object, and encodes labels and weights. The table's label is "y". */
static sl_status labels_of(const char *label, const char *more, sl_rows_buffer *rows, sl_features **features) {
    char text[1024];
    snprintf(text, sizeof text, "{'label': {'column': 'y'%s}, %s 'features': [{'name': 'n', 'type': 'numeric'}]}",
             label, more);
    for (char *at = text; *at; at++)
        if (*at == '\'') *at = '"';
    sl_spec *spec;
    sl_rows source;
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(c.table.column_count));
    *features = NULL;
    *rows = (sl_rows_buffer){.allocator = sl_allocator_of(NULL)};
    ck_ok(sl_table_rows(&c.table, cursor, &source));
    ck_ok(sl_spec_read(text, NULL, &spec));
    sl_status status = sl_features_fit(spec, &source, &(sl_fit_source){.lookup = NULL}, features);
    free(cursor);
    if (status != SL_OK) return status;
    sl_encoder *encoder;
    ck_ok(sl_encoder_create(*features, 0, 1, NULL, NULL, NULL, &encoder));
    status = sl_encoder_append(encoder, &c.table, 0, c.table.rows, rows);
    sl_encoder_free(encoder);
    return status;
}

static void check_labels(const char *values, const char *label, const char *wanted) {
    sl_rows_buffer rows;
    sl_features *features;
    char got[256] = "";
    columns_start(&c);
    columns_text(&c, "y", values);
    columns_values(&c, "n", SL_COLUMN_I32, (const int32_t[COLUMN_ROWS]){0}, c.table.rows);
    ck_ok(labels_of(label, "", &rows, &features));
    for (size_t i = 0; i < rows.rows; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%g ", (double)rows.labels[i]);
    for (size_t i = 0; i < features->class_count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "[%s]", features->classes[i]);
    ck_assert_str_eq(got, wanted);
    ck_assert_uint_eq(features->class_count, features->outputs);
    for (size_t i = 0; i < rows.rows; i++)
        ck_assert_float_eq(rows.weights[i], 1);
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}

static void check_label_refused(const char *values, const char *label, const char *message) {
    sl_rows_buffer rows;
    sl_features *features;
    columns_start(&c);
    columns_text(&c, "y", values);
    columns_values(&c, "n", SL_COLUMN_I32, (const int32_t[COLUMN_ROWS]){0}, c.table.rows);
    ck_fails(labels_of(label, "", &rows, &features), SL_EVALUE, message);
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}

START_TEST(labels) {
    check_labels("0 1 1.0 true False", "", "0 1 1 1 0 [1]");
    check_labels("a b a -1", ", 'positive': 'a'", "1 0 1 0 [a]");
    check_labels("3 4 5.5", ", 'at_least': 4", "0 1 1 [>=4]");
    check_labels("3 4 5.5", ", 'loss': 'squared'", "3 4 5.5 []");
    check_labels("10 9 10 2", ", 'loss': 'multiclass'", "2 1 2 0 [2][9][10]");
    check_labels("b 10 9 b", ", 'loss': 'multiclass'", "2 0 1 2 [10][9][b]");
    check_labels("b a", ", 'loss': 'multiclass', 'classes': ['c', 'b', 'a']", "1 2 [c][b][a]");
    check_label_refused("0 2", "", "rows.csv: row 1: column 'y': the label '2' is neither 0 nor 1");
    check_label_refused("0 -", "", "row 1: column 'y': the label is missing");
    check_label_refused("a -", ", 'positive': 'a'", "the label is missing");
    check_label_refused("1 -", ", 'loss': 'squared'", "the label is missing");
    check_label_refused("1 nan", ", 'at_least': 3", "the label is missing");
    check_label_refused("1 x", ", 'loss': 'squared'", "'x' is no finite number");
    check_label_refused("1 1e300", ", 'loss': 'squared'", "too large");
    check_label_refused("1 -", ", 'loss': 'multiclass'", "row 1: column 'y': the label is missing");
    check_label_refused("1 1", ", 'loss': 'multiclass'", "one class only");
    check_label_refused("1 3", ", 'loss': 'multiclass', 'classes': [1, 2]", "'3' is none of the model's classes");
    sl_rows_buffer none;
    sl_features *features;
    ck_fails(labels_of(", 'loss': 'multiclass', 'classes': [1, 3, 1]", "", &none, &features), SL_EINVAL,
             "label.classes: '1' is listed twice");
}
END_TEST

START_TEST(integer_labels) {
    static const int64_t values[] = {3, 5, 3};
    sl_rows_buffer rows;
    sl_features *features;
    columns_start(&c);
    columns_values(&c, "y", SL_COLUMN_I64, values, 3);
    columns_values(&c, "n", SL_COLUMN_I64, values, 3);
    ck_ok(labels_of(", 'positive': 3", "", &rows, &features));
    ck_assert(rows.labels[0] == 1 && rows.labels[1] == 0 && rows.labels[2] == 1);
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
    ck_ok(labels_of(", 'loss': 'multiclass'", "", &rows, &features));
    ck_assert(rows.labels[0] == 0 && rows.labels[1] == 1 && features->outputs == 2);
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
    ck_fails(labels_of("", "", &rows, &features), SL_EVALUE, "the label '3' is neither");
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}
END_TEST

START_TEST(weights) {
    static const char *const wrong[] = {"-1", "nan", "", "1e39"};
    sl_rows_buffer rows;
    sl_features *features;
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        char text[32];
        columns_start(&c);
        snprintf(text, sizeof text, "0.5 %s", i ? *wrong[i - 1] ? wrong[i - 1] : "-" : "0");
        columns_text(&c, "y", "0 1");
        columns_text(&c, "n", "0 1");
        columns_text(&c, "w", text);
        sl_status status = labels_of("", "'weight': 'w',", &rows, &features);
        if (i == 0) {
            ck_ok(status);
            ck_assert(rows.weights[0] == 0.5f && rows.weights[1] == 0);
        } else {
            ck_fails(status, SL_EVALUE, "row 1: column 'w': a weight is a number of at least 0");
        }
        sl_rows_buffer_free(&rows);
        sl_features_free(features);
    }
}
END_TEST

/* ---- What fitting refuses ---- */

static void check_fit_refused(const char *given, sl_status wanted, const char *message) {
    sl_rows source;
    sl_features *features;
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(c.table.column_count));
    ck_ok(sl_table_rows(&c.table, cursor, &source));
    ck_fails(sl_features_fit(columns_spec(given, NULL), &source, &(sl_fit_source){.lookup = NULL}, &features), wanted,
             message);
    ck_assert_ptr_null(features);
    free(cursor);
}

/* The message of a missing column lists the table's columns, or as many as fit. */
static void check_names(void) {
    sl_names few = {.used = 0}, many = {.used = 0}, long_one = {.used = 0};
    ck_assert_str_eq(sl_names_text(&few), "none");
    sl_names_add(&few, "age");
    sl_names_add(&few, "city");
    ck_assert_str_eq(sl_names_text(&few), "age, city");
    char name[300];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "column%d", i);
        sl_names_add(&many, name);
    }
    ck_assert_ptr_nonnull(strstr(sl_names_text(&many), "column0, column1, "));
    ck_assert_ptr_nonnull(strstr(sl_names_text(&many), " and 987 more"));
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    sl_names_add(&long_one, name);
    ck_assert_str_eq(sl_names_text(&long_one), "1 more");
}

START_TEST(refused) {
    check_fit_refused("{'name': 'z', 'type': 'numeric'}", SL_ENOTFOUND, "rows.csv has no column 'z'");
    check_fit_refused("{'name': 'n', 'type': 'numeric'}", SL_ENOTFOUND, "no column 'y'");
    check_fit_refused("{'name': 'a', 'type': 'numeric'}", SL_EVALUE, "rows.csv: row 0: column 'a': 'x' is no finite");
    check_fit_refused("{'name': 'w', 'type': 'numeric'}", SL_ETYPE, "column 'w' is of type vector");
    check_fit_refused("{'name': 'w', 'type': 'vector', 'dim': 3}", SL_EDIM, "dim 2");
    check_fit_refused("{'name': 'a', 'type': 'categorical', 'limit': 3}", SL_ELIMIT,
                      "row 4: column 'a': more than 3 distinct values");
    check_fit_refused("{'name': 'g', 'type': 'multi', 'limit': 3}", SL_ELIMIT, "row 5: column 'g'");
    check_names();
    columns_text(&c, "y", "0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0");
    check_fit_refused("{'name': 'a', 'type': 'categorical', 'vocabulary': ['x', 'y', 'x']}", SL_EINVAL,
                      "features[0].vocabulary: 'x' is listed twice");
    c.list[0].name = "i";
    c.list[0].type = SL_COLUMN_I64;
    check_fit_refused("{'name': 'i', 'type': 'vector', 'dim': 2, 'source': 'index'}", SL_EINVAL, "give `lookup`");
    c.table.rows = 0;
    check_fit_refused("{'name': 'a', 'type': 'categorical'}", SL_EVALUE, "no rows");
}
END_TEST

START_TEST(lines_are_named) {
    static const uint64_t lines[] = {2, 7};
    sl_rows_buffer rows;
    sl_features *features;
    columns_start(&c);
    columns_text(&c, "y", "0 5");
    columns_text(&c, "n", "0 1");
    c.table.lines = lines;
    ck_fails(labels_of("", "", &rows, &features), SL_EVALUE, "rows.csv: line 7: column 'y': the label '5'");
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
    c.table.lines = NULL;
    c.table.first_row = 100;
    ck_fails(labels_of("", "", &rows, &features), SL_EVALUE, "rows.csv: row 101: column 'y'");
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}
END_TEST

/* With more values than the sample keeps, boundaries are near the true ones. */
START_TEST(quantiles_of_many_values) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_collector collector = {.allocator = &allocator};
    const size_t count = 3 * SL_QUANTILE_SAMPLE;
    for (size_t i = 0; i < count; i++)
        ck_ok(sl_collect_quantile(&collector, 1, i, (double)i / (double)count));
    ck_assert_uint_le(collector.sample_count, 2 * SL_QUANTILE_SAMPLE);
    double *boundaries;
    size_t found;
    ck_ok(sl_collector_boundaries(&collector, 10, &boundaries, &found));
    ck_assert_uint_eq(found, 9);
    for (size_t i = 0; i < found; i++)
        ck_assert_double_eq_tol(boundaries[i], (double)(i + 1) / 10, 0.003);
    sl_mem_free(&allocator, boundaries, found * sizeof *boundaries);
    sl_collector_free(&collector);
}
END_TEST

/* ---- Memory ---- */

static sl_status whole_way(const sl_allocator *allocator, const sl_table *table, sl_table_cursor *cursor) {
    sl_rows source;
    sl_features *features = NULL, *back = NULL;
    sl_encoder *encoder = NULL;
    sl_rows_buffer rows = {.allocator = *allocator};
    void *bytes = NULL;
    size_t size = 0;
    sl_spec *spec;
    sl_status status;
    ck_ok(sl_table_rows(table, cursor, &source));
    const char *text =
        "{\"label\": {\"column\": \"a\", \"loss\": \"multiclass\"}, \"features\": ["
        "{\"name\": \"g\", \"type\": \"multi\"}, {\"name\": \"n\", \"type\": \"bucket\", \"quantiles\": 3}]}";
    SL_TRY_GOTO(sl_spec_read(text, allocator, &spec), done);
    SL_TRY_GOTO(sl_features_fit(spec, &source, &(sl_fit_source){.lookup = NULL}, &features), done);
    SL_TRY_GOTO(sl_features_write(features, allocator, &bytes, &size), done);
    SL_TRY_GOTO(sl_spec_read(text, allocator, &spec), done);
    SL_TRY_GOTO(sl_features_read(spec, bytes, size, &back), done);
    SL_TRY_GOTO(sl_encoder_create(back, SL_ALL_SIDES, 1, NULL, NULL, allocator, &encoder), done);
    SL_TRY_GOTO(sl_encoder_append(encoder, table, 0, table->rows, &rows), done);
    SL_TRY_GOTO(sl_encoder_append_missing(encoder, 3, &rows), done);
done:
    sl_encoder_free(encoder);
    sl_rows_buffer_free(&rows);
    sl_mem_free(allocator, bytes, size);
    sl_features_free(features);
    sl_features_free(back);
    return status;
}

START_TEST(memory_may_run_out) {
    sl_status status = SL_ENOMEM;
    columns_start(&c);
    columns_text(&c, "n", "1 2 3 4");
    columns_text(&c, "a", "x y x y");
    columns_text(&c, "g", "u|v v - u|u|w");
    columns_text(&c, "y", "0 1 0 1");
    columns_values(&c, "w", SL_COLUMN_VECTOR, (const float[8]){0}, 4);
    c.list[4].dim = 2;
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(c.table.column_count));
    for (size_t at = 1; status == SL_ENOMEM; at++) {
        fault_allocator faults;
        fault_allocator_init(&faults, at);
        status = whole_way(&faults.allocator, &c.table, cursor);
        ck_assert_msg(status == SL_OK || status == SL_ENOMEM, "%s", sl_last_error());
        ck_assert_uint_eq(faults.live_blocks, 0);
        if (status == SL_OK) ck_assert_uint_gt(at, 40);
    }
    free(cursor);
}
END_TEST

/* A warm encoder allocates nothing. */
START_TEST(warm_calls_allocate_nothing) {
    sl_features *features = columns_fit(ALL_KINDS, &c, 4096);
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_encoder *encoder;
    sl_rows_buffer rows = {.allocator = faults.allocator};
    ck_ok(sl_encoder_create(features, SL_ALL_SIDES, 0, NULL, NULL, &faults.allocator, &encoder));
    ck_ok(sl_encoder_append(encoder, &c.table, 0, c.table.rows, &rows));
    size_t calls = faults.calls;
    for (int i = 0; i < 3; i++) {
        rows.rows = 0;
        ck_ok(sl_encoder_append(encoder, &c.table, 0, c.table.rows, &rows));
    }
    ck_assert_uint_eq(faults.calls, calls);
    sl_encoder_free(encoder);
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("fit")};
    tcase_add_checked_fixture(cases[0], set_up, NULL);
    tcase_add_test(cases[0], blocks_change_nothing);
    tcase_add_test(cases[0], bytes_and_back);
    tcase_add_test(cases[0], hostile_bytes);
    tcase_add_test(cases[0], labels);
    tcase_add_test(cases[0], integer_labels);
    tcase_add_test(cases[0], weights);
    tcase_add_test(cases[0], refused);
    tcase_add_test(cases[0], lines_are_named);
    tcase_add_test(cases[0], quantiles_of_many_values);
    tcase_add_test(cases[0], memory_may_run_out);
    tcase_add_test(cases[0], warm_calls_allocate_nothing);
    return check_main("fit", cases, 1);
}
