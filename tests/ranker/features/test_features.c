/* Features: fitting columns and encoding rows. */
#include "ranker/features/encode.h"
#include "ranker/features/table.h"
#include "ranker/features/vocabulary.h"
#include "tests/support/check_main.h"
#include "tests/support/columns.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static columns c;

static void set_up(void) {
    columns_start(&c);
}

static void check_floats(const char *features, const float *wanted, size_t count) {
    float got[4 * COLUMN_ROWS];
    columns_floats(features, &c, got);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(fabsf(got[i] - wanted[i]) <= 1e-6f * (1 + fabsf(wanted[i])), "%s: value %zu is %.9g, not %.9g",
                      features, i, (double)got[i], (double)wanted[i]);
}
#define FLOATS(features, ...)                                                                                          \
    check_floats(features, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

static void check_ids(const char *features, const uint32_t *wanted, size_t count) {
    uint32_t got[COLUMN_ROWS];
    columns_ids(features, &c, got);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(got[i] == wanted[i], "%s: id of row %zu is %u, not %u", features, i, got[i], wanted[i]);
}
#define IDS(features, ...)                                                                                             \
    check_ids(features, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* ---- Numbers ---- */

START_TEST(numeric) {
    columns_text(&c, "a", "1 3 - 5 nan 3");
    float unit = sqrtf(2.0f);
    FLOATS("{'name': 'a', 'type': 'numeric'}", -2 / unit, 0, 0, 2 / unit, 0, 0);
    FLOATS("{'name': 'a', 'type': 'numeric', 'missing': 7}", -2 / unit, 0, 4 / unit, 2 / unit, 4 / unit, 0);
    FLOATS("{'name': 'a', 'type': 'numeric', 'indicator': true}", -2 / unit, 0, 0, 0, 0, 1, 2 / unit, 0, 0, 1, 0, 0);
    FLOATS("{'name': 'a', 'type': 'numeric', 'scale': 'none'}", 1, 3, 3, 5, 3, 3);
    FLOATS("{'name': 'a', 'type': 'numeric', 'scale': 'none', 'missing': -1}", 1, 3, -1, 5, -1, 3);
    FLOATS("{'name': 'a', 'type': 'numeric', 'scale': 'minmax'}", 0, 0.5f, 0.5f, 1, 0.5f, 0.5f);
    FLOATS("{'name': 's', 'type': 'score', 'column': 'a', 'scale': 'minmax', 'missing': 9}", 0, 0.5f, 2, 1, 2, 0.5f);
}
END_TEST

START_TEST(logarithms) {
    columns_text(&c, "a", "0 1 -1 99");
    FLOATS("{'name': 'a', 'type': 'numeric', 'scale': 'none', 'log': true}", 0, logf(2), -logf(2), logf(100));
    FLOATS("{'name': 'a', 'type': 'numeric', 'scale': 'none', 'log': true, 'missing': 1}", 0, logf(2));
    FLOATS("{'name': 'a', 'type': 'numeric', 'scale': 'minmax', 'log': true}", logf(2) / logf(200),
           2 * logf(2) / logf(200), 0, 1);
}
END_TEST

/* One value, or none, divides nothing by 0. Values whose squares overflow are refused. */
START_TEST(columns_without_spread) {
    columns_text(&c, "a", "5 5 5");
    columns_text(&c, "b", "- - -");
    columns_text(&c, "c", "2 1e300 3");
    FLOATS("{'name': 'a', 'type': 'numeric'}", 0, 0, 0);
    FLOATS("{'name': 'a', 'type': 'numeric', 'scale': 'minmax'}", 0, 0, 0);
    FLOATS("{'name': 'b', 'type': 'numeric'}", 0, 0, 0);
    /* The value for a missing number may be any number. A row with a value that is too large is named. */
    sl_rows source;
    sl_features *features;
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(c.table.column_count + 1));
    columns_text(&c, "y", "0 1 0");
    for (int minmax = 0; minmax < 2; minmax++) {
        ck_ok(sl_table_rows(&c.table, cursor, &source));
        sl_spec *large = columns_spec(
            minmax ? "{'name': 'c', 'type': 'numeric', 'scale': 'minmax'}" : "{'name': 'c', 'type': 'numeric'}", NULL);
        ck_fails(sl_features_fit(large, &source, &(sl_fit_source){.lookup = NULL}, &features), SL_EVALUE,
                 "rows.csv: row 1: column 'c': 1e+300 is too large to be scaled");
    }
    ck_ok(sl_table_rows(&c.table, cursor, &source));
    sl_spec *spec = columns_spec("{'name': 'a', 'type': 'numeric', 'scale': 'none', 'missing': 1e300}", NULL);
    ck_fails(sl_features_fit(spec, &source, &(sl_fit_source){.lookup = NULL}, &features), SL_EVALUE,
             "feature 'a': missing, 1e+300");
    free(cursor);
}
END_TEST

START_TEST(buckets) {
    columns_text(&c, "a", "1 2 2.5 9 10 11 - nan -5");
    IDS("{'name': 'a', 'type': 'bucket', 'boundaries': [2, 9, 10]}", 0, 1, 1, 2, 3, 3, 4, 4, 0);
    columns_start(&c);
    columns_text(&c, "a", "4 1 3 2 8 7 6 5 -");
    IDS("{'name': 'a', 'type': 'bucket', 'quantiles': 4}", 1, 0, 1, 0, 3, 3, 2, 2, 4);
    columns_start(&c);
    columns_text(&c, "a", "1 1 1 1 1 9");
    IDS("{'name': 'a', 'type': 'bucket', 'quantiles': 3}", 0, 0, 0, 0, 0, 0);
    IDS("{'name': 'a', 'type': 'bucket', 'quantiles': 6}", 0, 0, 0, 0, 0, 1);
    columns_start(&c);
    columns_text(&c, "a", "- -");
    IDS("{'name': 'a', 'type': 'bucket', 'quantiles': 3}", 1, 1);
}
END_TEST

/* ---- Categories ---- */

START_TEST(fitted_vocabularies) {
    columns_text(&c, "a", "x y y z y z - w");
    /* The most frequent first; equal counts by their bytes. */
    IDS("{'name': 'a', 'type': 'categorical'}", 5, 2, 2, 3, 2, 3, 0, 4);
    IDS("{'name': 'a', 'type': 'categorical', 'oov': 0}", 4, 1, 1, 2, 1, 2, 0, 3);
    IDS("{'name': 'a', 'type': 'categorical', 'min_count': 2}", 1, 2, 2, 3, 2, 3, 0, 1);
    IDS("{'name': 'a', 'type': 'categorical', 'keep': 1}", 1, 2, 2, 1, 2, 1, 0, 1);
    IDS("{'name': 'a', 'type': 'categorical', 'keep': 1, 'oov': 0}", 0, 1, 1, 0, 1, 0, 0, 0);
    uint32_t z = 1 + (uint32_t)(sl_text_hash("z", 1) % 100);
    IDS("{'name': 'a', 'type': 'categorical', 'keep': 1, 'oov': 100}", 1 + (uint32_t)(sl_text_hash("x", 1) % 100), 101,
        101, z, 101, z, 0);
    IDS("{'name': 'a', 'type': 'categorical', 'vocabulary': ['z', 'y'], 'oov': 2}",
        1 + (uint32_t)(sl_text_hash("x", 1) % 2), 4, 4, 3, 4, 3, 0, 1 + (uint32_t)(sl_text_hash("w", 1) % 2));
    IDS("{'name': 'a', 'type': 'categorical', 'hash': 7}", 1 + (uint32_t)(sl_text_hash("x", 1) % 7),
        1 + (uint32_t)(sl_text_hash("y", 1) % 7));
}
END_TEST

START_TEST(identities) {
    columns_text(&c, "a", "0 9 3 -");
    IDS("{'name': 'a', 'type': 'categorical', 'identity': 10}", 1, 10, 4, 0);
    static const char *const wrong[] = {"10", "-1", "1.5", "x", "1e0", "99999999999999999999"};
    sl_features *features = columns_fit("{'name': 'a', 'type': 'categorical', 'identity': 10}", &c, 10);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        columns_start(&c);
        columns_text(&c, "a", wrong[i]);
        sl_encoder *encoder;
        sl_rows_buffer rows = {.allocator = sl_allocator_of(NULL)};
        ck_ok(sl_encoder_create(features, SL_ALL_SIDES, 0, NULL, NULL, NULL, &encoder));
        ck_fails(sl_encoder_append(encoder, &c.table, 0, 1, &rows), SL_EVALUE, "is no whole number from 0 to 9");
        sl_rows_buffer_free(&rows);
        sl_encoder_free(encoder);
    }
    sl_features_free(features);
}
END_TEST

/* Integers, floats of integer value, and their texts are the same categories, whichever of them the fit saw. */
START_TEST(types_of_columns_agree) {
    static const int32_t i32[] = {7, -3, 7, 0, 12};
    static const int64_t i64[] = {7, -3, 7, 0, 12};
    static const float f32[] = {7, -3, 7, -0.0f, 12};
    static const double f64[] = {7, -3, 7, 0, 12};
    static const char *const specs[] = {"{'name': 'a', 'type': 'categorical'}",
                                        "{'name': 'a', 'type': 'categorical', 'hash': 1000}",
                                        "{'name': 'a', 'type': 'categorical', 'keep': 1, 'oov': 1000}",
                                        "{'name': 'a', 'type': 'categorical', 'vocabulary': [12, '-3'], 'oov': 50}"};
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        columns made[5];
        for (size_t i = 0; i < 5; i++)
            columns_start(&made[i]);
        columns_values(&made[0], "a", SL_COLUMN_I32, i32, 5);
        columns_values(&made[1], "a", SL_COLUMN_I64, i64, 5);
        columns_values(&made[2], "a", SL_COLUMN_F32, f32, 5);
        columns_values(&made[3], "a", SL_COLUMN_F64, f64, 5);
        columns_text(&made[4], "a", "7 -3 7 0 12");
        for (size_t fitted = 0; fitted < 5; fitted++) {
            sl_features *features = columns_fit(specs[s], &made[fitted], 2);
            uint32_t wanted[5];
            columns_ids(specs[s], &made[4], wanted);
            for (size_t i = 0; i < 5; i++) {
                sl_rows_buffer rows;
                columns_encode(features, &made[i], &rows);
                ck_assert_mem_eq(rows.ids, wanted, sizeof wanted);
                sl_rows_buffer_free(&rows);
            }
            sl_features_free(features);
        }
    }
    static const float halves[] = {0.1f, 2.5f, NAN};
    static const double wide[] = {0.1, 2.5, NAN};
    uint32_t a[COLUMN_ROWS], b[COLUMN_ROWS], t[COLUMN_ROWS];
    columns made[3];
    for (size_t i = 0; i < 3; i++)
        columns_start(&made[i]);
    columns_values(&made[0], "a", SL_COLUMN_F32, halves, 3);
    columns_values(&made[1], "a", SL_COLUMN_F64, wide, 3);
    columns_text(&made[2], "a", "0.1 2.5 -");
    columns_ids(specs[1], &made[0], a);
    columns_ids(specs[1], &made[1], b);
    columns_ids(specs[1], &made[2], t);
    ck_assert(a[0] == t[0] && a[1] == t[1] && a[2] == 0 && t[2] == 0);
    ck_assert_mem_eq(a, b, 3 * sizeof *a);
}
END_TEST

/* Numbers of every type encode alike, whatever type the fit saw. */
START_TEST(numbers_of_all_types_agree) {
    static const int32_t i32[] = {7, -3, 0, 12};
    static const int64_t i64[] = {7, -3, 0, 12};
    static const float f32[] = {7, -3, 0, 12};
    static const double f64[] = {7, -3, 0, 12};
    float wanted[COLUMN_ROWS], got[COLUMN_ROWS];
    columns_text(&c, "n", "7 -3 0 12");
    columns_floats("{'name': 'n', 'type': 'numeric'}", &c, wanted);
    ck_assert_float_ne(wanted[0], wanted[1]);
    const struct {
        sl_column_type type;
        const void *values;
    } given[] = {{SL_COLUMN_I32, i32}, {SL_COLUMN_I64, i64}, {SL_COLUMN_F32, f32}, {SL_COLUMN_F64, f64}};
    for (size_t i = 0; i < 4; i++) {
        columns_start(&c);
        columns_values(&c, "n", given[i].type, given[i].values, 4);
        columns_floats("{'name': 'n', 'type': 'numeric'}", &c, got);
        ck_assert_mem_eq(got, wanted, 4 * sizeof *got);
    }
}
END_TEST

/* Rows without a value form one group. A number and its text form the same group. */
START_TEST(groups_of_rows) {
    static const double numbers[] = {12, NAN, -1.5, 12};
    uint64_t by_text[4], by_number[4];
    columns_text(&c, "t", "12 - -1.5 12");
    columns_values(&c, "d", SL_COLUMN_F64, numbers, 4);
    ck_ok(sl_table_groups(&c.table, 0, by_text));
    ck_ok(sl_table_groups(&c.table, 1, by_number));
    ck_assert_mem_eq(by_text, by_number, sizeof by_text);
    ck_assert(by_text[0] == by_text[3] && by_text[1] == 0 && by_text[0] && by_text[2] && by_text[0] != by_text[2]);
}
END_TEST

/* ---- Bags ---- */

static void check_bag(const sl_features *features, const sl_rows_buffer *rows, size_t row, size_t bag,
                      const char *wanted) {
    char got[256] = "";
    const uint32_t *start = rows->bag_start + row * features->bag_count + bag;
    for (uint32_t i = start[0]; i < start[1]; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%u ", rows->bag_ids[i]);
    ck_assert_str_eq(got, wanted);
}

START_TEST(multi) {
    static const char *const types[] = {"a|b|a b - |c| b|d", "a,b,a b - c b,d"};
    for (size_t i = 0; i < 2; i++) {
        columns_start(&c);
        if (i == 0)
            columns_text(&c, "g", types[0]);
        else
            columns_texts(&c, "g", types[1]);
        sl_features *features = columns_fit("{'name': 'g', 'type': 'multi'}", &c, 2);
        sl_rows_buffer rows;
        columns_encode(features, &c, &rows);
        ck_assert(features->bag_count == 1 && features->features->size == 6);
        check_bag(features, &rows, 0, 0, "3 2 3 ");
        check_bag(features, &rows, 1, 0, "2 ");
        check_bag(features, &rows, 2, 0, "");
        check_bag(features, &rows, 3, 0, "4 ");
        check_bag(features, &rows, 4, 0, "2 5 ");
        sl_rows_buffer_free(&rows);
        sl_features_free(features);
    }
    static const int32_t ids[] = {4, 9, 4};
    columns_start(&c);
    columns_values(&c, "g", SL_COLUMN_I32, ids, 3);
    sl_features *features = columns_fit("{'name': 'g', 'type': 'multi', 'identity': 10}", &c, 2);
    sl_rows_buffer rows;
    columns_encode(features, &c, &rows);
    check_bag(features, &rows, 1, 0, "10 ");
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}
END_TEST

/* Lists that fall would be read before the first text, or without end. */
START_TEST(lists_that_fall_are_refused) {
    static const int64_t lists[][3] = {{-1, 1, 2}, {0, 2, 1}};
    for (size_t i = 0; i < 2; i++) {
        columns_start(&c);
        columns_texts(&c, "g", "a,b c");
        sl_features *features = columns_fit("{'name': 'g', 'type': 'multi'}", &c, 2);
        sl_encoder *encoder;
        sl_rows_buffer rows = {.allocator = sl_allocator_of(NULL)};
        c.list[0].lists = lists[i];
        ck_ok(sl_encoder_create(features, SL_ALL_SIDES, 0, NULL, NULL, NULL, &encoder));
        ck_fails(sl_encoder_append(encoder, &c.table, 0, 2, &rows), SL_EINVAL, "lists fall from");
        sl_rows_buffer_free(&rows);
        sl_encoder_free(encoder);
        sl_features_free(features);
    }
}
END_TEST

#define CROSSES                                                                                                        \
    "{'name': 'a', 'type': 'categorical'}, {'name': 'n', 'type': 'bucket', 'boundaries': [5], 'side': 'item'},"        \
    "{'name': 'g', 'type': 'multi', 'side': 'item'}, {'name': 'x', 'type': 'cross', 'of': ['a', 'n'], 'hash': 1000},"  \
    "{'name': 'y', 'type': 'cross', 'of': ['g', 'x'], 'hash': 999},"                                                   \
    "{'name': 'z', 'type': 'cross', 'of': ['n', 'g'], 'hash': 500}"

START_TEST(crosses) {
    columns_text(&c, "a", "p q -");
    columns_text(&c, "n", "1 9 -");
    columns_text(&c, "g", "u|v v -");
    sl_features *features = columns_fit(CROSSES, &c, 2);
    const sl_feature *f = features->features;
    sl_rows_buffer rows;
    columns_encode(features, &c, &rows);
    /* Sides come in order, and within a side features in the spec's order: a | n | x, and g z | y. */
    ck_assert(features->id_count == 3 && features->bag_count == 3);
    ck_assert(f[0].at == 0 && f[1].at == 1 && f[3].at == 2 && f[2].at == 0 && f[5].at == 1 && f[4].at == 2);
    ck_assert(f[3].side == SL_SIDE_PAIR && f[4].side == SL_SIDE_PAIR && f[5].side == SL_SIDE_ITEM);
    for (size_t r = 0; r < 3; r++) {
        const uint32_t *ids = rows.ids + 3 * r, *start = rows.bag_start + 3 * r;
        ck_assert_uint_eq(ids[2], sl_cross_id(&f[3], (uint32_t[]){ids[0], ids[1]}, 2));
        ck_assert_uint_lt(ids[2], 1000);
        uint32_t size = start[1] - start[0];
        ck_assert_uint_eq(start[2] - start[1], size);
        ck_assert_uint_eq(start[3] - start[2], size);
        ck_assert_uint_eq(size, r == 0 ? 2 : r == 1 ? 1 : 0);
        for (uint32_t i = 0; i < size; i++) {
            uint32_t g = rows.bag_ids[start[0] + i];
            ck_assert_uint_eq(rows.bag_ids[start[1] + i], sl_cross_id(&f[5], (uint32_t[]){ids[1], g}, 2));
            ck_assert_uint_eq(rows.bag_ids[start[2] + i], sl_cross_id(&f[4], (uint32_t[]){g, ids[2]}, 2));
        }
    }
    /* A cross's name changes its ids, and so does the order of its parents. */
    ck_assert_uint_ne(sl_cross_id(&f[3], (uint32_t[]){1, 2}, 2), sl_cross_id(&f[3], (uint32_t[]){2, 1}, 2));
    /* docs/FORMAT.md: XXH3 over the name's XXH3 and the parents' ids, little-endian. */
    unsigned char bytes[16] = {[8] = 1, [12] = 2};
    uint64_t name = sl_text_hash("x", 1);
    memcpy(bytes, &name, sizeof name);
    ck_assert_uint_eq(sl_cross_id(&f[3], (uint32_t[]){1, 2}, 2), sl_text_hash((char *)bytes, 16) % 1000);
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}
END_TEST

/* ---- Vectors ---- */

static sl_status look_up(void *ctx, const char *feature, uint64_t id, float *out, size_t dim) {
    ck_assert_str_eq(feature, "v");
    if (id == 404) return sl_fail(SL_ENOTFOUND, "no such id");
    for (size_t i = 0; i < dim; i++)
        out[i] = (float)id + (float)i * *(const float *)ctx;
    return SL_OK;
}

static sl_status encode_with(const char *spec, sl_lookup_fn lookup, float *out) {
    static float factor = 0.5f;
    columns fitted;
    columns_start(&fitted);
    columns_text(&fitted, "v", "-");
    sl_features *features = columns_fit(spec, &fitted, 10);
    sl_encoder *encoder;
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_rows_buffer rows = {.allocator = faults.allocator};
    ck_ok(sl_encoder_create(features, SL_ALL_SIDES, 0, lookup, &factor, NULL, &encoder));
    sl_status status = sl_encoder_append(encoder, &c.table, 0, c.table.rows, &rows);
    if (status == SL_OK) memcpy(out, rows.dense, c.table.rows * 3 * sizeof *out);
    sl_rows_buffer_free(&rows);
    sl_encoder_free(encoder);
    sl_features_free(features);
    return status;
}

/* The look-up gets an id by its digits, from a number or a text. */
START_TEST(ids_of_64_bits_are_looked_up) {
    static const char index[] = "{'name': 'v', 'type': 'vector', 'dim': 3, 'source': 'index'}";
    float out[9];
    columns_start(&c);
    columns_text(&c, "v", "9223372036854775809 18446744073709551614 5");
    ck_ok(encode_with(index, look_up, out));
    ck_assert(out[0] == 0x1p63f && out[3] == 0x1p64f && out[6] == 5);
    static const char *const none[] = {"-2", "18446744073709551616", "5.0", "five"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        columns_start(&c);
        columns_text(&c, "v", none[i]);
        ck_fails(encode_with(index, look_up, out), SL_EVALUE, "is no id; ids are whole numbers from 0");
    }
    static const int64_t negative[] = {-2};
    columns_start(&c);
    columns_values(&c, "v", SL_COLUMN_I64, negative, 1);
    ck_fails(encode_with(index, look_up, out), SL_EVALUE, "'-2' is no id");
}
END_TEST

START_TEST(vectors) {
    static const char column[] = "{'name': 'v', 'type': 'vector', 'dim': 3}";
    static const char index[] = "{'name': 'v', 'type': 'vector', 'dim': 3, 'source': 'index'}";
    static const int64_t offsets[] = {0, 7, 7, 18}, short_offsets[] = {0, 3, 3, 3};
    static const char text[] = "1 2.5 3 -1  2e0 4  ";
    static const float nan_in[] = {1, 2, NAN};
    float out[9];
    c.list[0] = (sl_column){.name = "v", .type = SL_COLUMN_TEXT, .values = text, .offsets = offsets};
    c.table.column_count = 1;
    c.table.rows = 3;
    ck_ok(encode_with(column, NULL, out));
    ck_assert_mem_eq(out, ((float[]){1, 2.5f, 3, 0, 0, 0, -1, 2, 4}), sizeof out);
    c.list[0].offsets = short_offsets;
    ck_fails(encode_with(column, NULL, out), SL_EDIM, "rows.csv: row 0: column 'v': the vector has 2 numbers, not 3");
    /* More numbers than the vector has room for. */
    char many[2000];
    const int64_t one[] = {0, sizeof many};
    memset(many, ' ', sizeof many);
    for (size_t i = 0; i < sizeof many; i += 2)
        many[i] = '7';
    c.list[0] = (sl_column){.name = "v", .type = SL_COLUMN_TEXT, .values = many, .offsets = one};
    c.table.rows = 1;
    ck_fails(encode_with(column, NULL, out), SL_EDIM, "the vector has 1000 numbers, not 3");
    many[4] = 'x';
    ck_fails(encode_with(column, NULL, out), SL_EVALUE, "column 'v': 'x' is no finite number");
    columns_start(&c);
    columns_values(&c, "v", SL_COLUMN_VECTOR, nan_in, 1);
    c.list[0].dim = 3;
    ck_fails(encode_with(column, NULL, out), SL_EVALUE, "NaN or infinity");
    c.list[0].dim = 2;
    ck_fails(encode_with(column, NULL, out), SL_EDIM, "vectors of dim 2, feature 'v' of dim 3");
    c.list[0].dim = 3;
    c.list[0].values = text;
    static const float whole[] = {1, 2, 3};
    c.list[0].values = whole;
    ck_ok(encode_with(index, NULL, out));
    ck_assert_mem_eq(out, whole, sizeof whole);
    columns_start(&c);
    columns_text(&c, "v", "7 - 8");
    ck_ok(encode_with(index, look_up, out));
    ck_assert_mem_eq(out, ((float[]){7, 7.5f, 8, 0, 0, 0, 8, 8.5f, 9}), sizeof out);
    ck_fails(encode_with(index, NULL, out), SL_EINVAL, "give `lookup`");
    columns_start(&c);
    columns_text(&c, "v", "7 x7");
    ck_fails(encode_with(index, look_up, out), SL_EVALUE, "row 1: column 'v': 'x7' is no id");
    static const int64_t ids[] = {5, 404};
    columns_start(&c);
    columns_values(&c, "v", SL_COLUMN_I64, ids, 2);
    ck_fails(encode_with(index, look_up, out), SL_ENOTFOUND, "row 1: column 'v': id 404: no such id");
    ck_fails(encode_with(column, look_up, out), SL_ETYPE, "is of type i64, which feature 'v' cannot be made from");
}
END_TEST

/* ---- Places ---- */

START_TEST(layout) {
    columns_text(&c, "a", "p q");
    columns_text(&c, "n", "1 2");
    columns_text(&c, "g", "u v");
    sl_features *features = columns_fit(
        "{'name': 'n', 'type': 'numeric', 'indicator': true, 'side': 'item'}, {'name': 'a', 'type': 'categorical', "
        "'dim': 4},"
        "{'name': 's', 'type': 'score', 'column': 'n'}, {'name': 'g', 'type': 'multi', 'shared': 'a', 'side': 'item'},"
        "{'name': 'm', 'type': 'numeric', 'column': 'n'}, {'name': 'b', 'type': 'categorical', 'column': 'a'},"
        "{'name': 'x', 'type': 'cross', 'of': ['a', 'g'], 'hash': 9}",
        &c, 10);
    const sl_feature *f = features->features;
    ck_assert(features->dense_width == 4 && f[4].at == 0 && f[0].at == 1 && f[2].at == 3);
    ck_assert(features->dense_side[1] == 1 && features->dense_side[2] == 3 && features->dense_side[3] == 4);
    ck_assert(features->id_count == 2 && features->id_side[1] == 2 && features->id_side[3] == 2);
    ck_assert(features->bag_count == 2 && f[3].at == 0 && f[6].at == 1 && features->bag_side[2] == 1);
    /* a: missing, unseen, p, q. g shares a's table, and a's dim. */
    ck_assert(f[1].size == 4 && f[3].size == 4 && f[3].dim == 4 && f[3].tensor == f[1].tensor);
    ck_assert(f[5].dim == 3 && f[5].tensor != f[1].tensor && features->table_count == 2);
    ck_assert(features->tables[f[1].tensor].feature == 1 && features->tables[f[1].tensor].dim == 4);
    /* Deep: a 4, m 1, b 3 | n 2, g 4 | s 1; no cross. Wide: a, m, b | n, g | x; no score. */
    ck_assert(f[1].deep_at == 0 && f[4].deep_at == 4 && f[5].deep_at == 5 && f[0].deep_at == 8 && f[3].deep_at == 10);
    ck_assert(f[2].deep_at == 14 && f[6].deep_at == SIZE_MAX && features->deep_inputs == 15);
    ck_assert(features->deep_side[1] == 8 && features->deep_side[2] == 14 && features->deep_side[3] == 15);
    ck_assert(f[1].wide_at == 0 && f[4].wide_at == 4 && f[5].wide_at == 5 && f[0].wide_at == 9 && f[3].wide_at == 11);
    ck_assert(f[6].wide_at == 15 && f[2].wide_at == SIZE_MAX && features->wide_size == 24);
    ck_assert_uint_eq(features->outputs, 1);
    sl_features_free(features);
}
END_TEST

/* One side alone gives its columns of the whole row; the rest is zeros. */
START_TEST(sides) {
    columns_text(&c, "a", "p q -");
    columns_text(&c, "n", "1 9 -");
    columns_text(&c, "g", "u|v v -");
    sl_features *features = columns_fit(CROSSES, &c, 2);
    sl_rows_buffer all, rows = {.allocator = sl_allocator_of(NULL)};
    columns_encode(features, &c, &all);
    for (unsigned sides = 0; sides <= SL_ALL_SIDES; sides++) {
        sl_encoder *encoder;
        ck_ok(sl_encoder_create(features, sides, 0, NULL, NULL, NULL, &encoder));
        rows.rows = 0;
        ck_ok(sl_encoder_append(encoder, &c.table, 0, 3, &rows));
        unsigned both = (sides & 3) == 3;
        const unsigned wanted[] = {sides & 1, sides >> 1 & 1, both};
        const unsigned bags[] = {sides >> 1 & 1, sides >> 1 & 1, both};
        for (size_t r = 0; r < 3; r++)
            for (size_t i = 0; i < 3; i++) {
                ck_assert_uint_eq(rows.ids[3 * r + i], wanted[i] ? all.ids[3 * r + i] : 0);
                size_t at = 3 * r + i, size = rows.bag_start[at + 1] - rows.bag_start[at];
                ck_assert_uint_eq(size, bags[i] ? all.bag_start[at + 1] - all.bag_start[at] : 0);
                if (size)
                    ck_assert_mem_eq(rows.bag_ids + rows.bag_start[at], all.bag_ids + all.bag_start[at], 4 * size);
            }
        sl_encoder_free(encoder);
    }
    sl_rows_buffer_free(&rows);
    sl_rows_buffer_free(&all);
    sl_features_free(features);
}
END_TEST

START_TEST(the_missing_row) {
    columns_text(&c, "a", "p q -");
    columns_text(&c, "n", "1 9 -");
    columns_text(&c, "g", "u|v v -");
    const char *spec = CROSSES ", {'name': 'k', 'type': 'numeric', 'column': 'n', 'missing': 3, 'indicator': true},"
                               "{'name': 'v', 'type': 'vector', 'dim': 2, 'column': 'missing'}";
    columns_text(&c, "missing", "- - -");
    sl_features *features = columns_fit(spec, &c, 2);
    sl_rows_buffer all, rows = {.allocator = sl_allocator_of(NULL)};
    columns_encode(features, &c, &all);
    sl_encoder *encoder;
    ck_ok(sl_encoder_create(features, SL_ALL_SIDES, 0, NULL, NULL, NULL, &encoder));
    ck_ok(sl_encoder_append(encoder, &c.table, 0, 1, &rows));
    ck_ok(sl_encoder_append_missing(encoder, 2, &rows));
    ck_ok(sl_encoder_append(encoder, &c.table, 1, 1, &rows));
    ck_assert_uint_eq(rows.rows, 4);
    size_t dense = features->dense_width, ids = features->id_count;
    for (size_t i = 1; i < 3; i++) {
        ck_assert_mem_eq(rows.dense + i * dense, all.dense + 2 * dense, dense * sizeof(float));
        ck_assert_mem_eq(rows.ids + i * ids, all.ids + 2 * ids, ids * sizeof(uint32_t));
        ck_assert_uint_eq(rows.bag_start[i * 3], rows.bag_start[i * 3 + 3]);
    }
    ck_assert_mem_eq(rows.ids + 3 * ids, all.ids + ids, ids * sizeof(uint32_t));
    sl_encoder_free(encoder);
    sl_rows_buffer_free(&rows);
    sl_rows_buffer_free(&all);
    sl_features_free(features);
}
END_TEST

/* ---- Columns ---- */

START_TEST(columns_are_found_anew) {
    static const int32_t a[] = {1, 2}, b[] = {3, 4};
    columns_values(&c, "a", SL_COLUMN_I32, a, 2);
    columns_values(&c, "b", SL_COLUMN_I32, b, 2);
    sl_features *features = columns_fit("{'name': 'b', 'type': 'categorical', 'identity': 9}", &c, 2);
    sl_encoder *encoder;
    sl_rows_buffer rows = {.allocator = sl_allocator_of(NULL)};
    ck_ok(sl_encoder_create(features, SL_ALL_SIDES, 0, NULL, NULL, NULL, &encoder));
    ck_ok(sl_encoder_append(encoder, &c.table, 0, 1, &rows));
    /* The same array with its columns permuted. */
    sl_column kept = c.list[0];
    c.list[0] = c.list[1];
    c.list[1] = kept;
    ck_ok(sl_encoder_append(encoder, &c.table, 1, 1, &rows));
    c.table.column_count = 1;
    ck_ok(sl_encoder_append(encoder, &c.table, 1, 1, &rows));
    ck_assert(rows.ids[0] == 4 && rows.ids[1] == 5 && rows.ids[2] == 5);
    c.list[0].name = "z";
    ck_fails(sl_encoder_append(encoder, &c.table, 1, 1, &rows), SL_ENOTFOUND,
             "rows.csv has no column 'b'; its columns are ");
    c.list[0].name = "b";
    c.list[0].type = SL_COLUMN_TEXTS;
    ck_fails(sl_encoder_append(encoder, &c.table, 1, 1, &rows), SL_EINVAL, "column 'b' has no offsets");
    c.list[0].offsets = c.list[0].lists = (const int64_t[]){0, 0, 0};
    ck_fails(sl_encoder_append(encoder, &c.table, 1, 1, &rows), SL_ETYPE, "feature 'b'");
    c.list[0].type = SL_COLUMN_TEXT;
    c.list[0].offsets = (const int64_t[]){0, 5, 2};
    ck_fails(sl_encoder_append(encoder, &c.table, 1, 1, &rows), SL_EINVAL, "row 1: column 'b': offsets fall");
    ck_fails(sl_encoder_append(encoder, &c.table, 1, 2, &rows), SL_EINVAL, "rows 1 to 3 of a table of 2");
    ck_assert_uint_eq(rows.rows, 3);
    sl_encoder_free(encoder);
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}
END_TEST

START_TEST(validity) {
    static const int32_t a[] = {1, 2, 3};
    columns_values(&c, "a", SL_COLUMN_I32, a, 3);
    c.list[0].valid = (const uint8_t[]){5};
    IDS("{'name': 'a', 'type': 'categorical', 'identity': 9}", 2, 0, 4);
    FLOATS("{'name': 'a', 'type': 'numeric', 'scale': 'none', 'missing': 9}", 1, 9, 3);
}
END_TEST

/* Each cross has the two crosses before it as parents. Followed back to single features, the paths are too many to
 * count. */
START_TEST(crosses_of_crosses) {
    enum { FEATURES = 60 };
    char spec[FEATURES * 64];
    size_t used = (size_t)sprintf(spec, "{'name': 'c0', 'type': 'categorical', 'column': 'a'},"
                                        "{'name': 'c1', 'type': 'categorical', 'column': 'a', 'side': 'item'}");
    for (int i = 2; i < FEATURES; i++)
        used +=
            (size_t)sprintf(spec + used, ",{'name':'c%d','type':'cross','of':['c%d','c%d'],'hash':9}", i, i - 2, i - 1);
    columns_text(&c, "a", "x y");
    sl_features *features = columns_fit(spec, &c, 4096);
    sl_rows_buffer rows;
    columns_encode(features, &c, &rows);
    ck_assert_uint_eq(features->count, FEATURES);
    ck_assert_int_eq(features->features[FEATURES - 1].side, SL_SIDE_PAIR);
    ck_assert_uint_eq(rows.rows, 2);
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}
END_TEST

/* sl_labels_read gives the labels of the encoded rows. */
START_TEST(labels_without_rows) {
    float labels[3], weights[3];
    columns_text(&c, "a", "x y x");
    columns_text(&c, "w", "0.5 2 0");
    columns_text(&c, "y", "1 0 true");
    sl_features *features = columns_fit("{'name': 'a', 'type': 'categorical'}", &c, 4096);
    ck_ok(sl_labels_read(features, &c.table, labels, weights));
    ck_assert(labels[0] == 1 && labels[1] == 0 && labels[2] == 1);
    ck_assert(weights[0] == 1 && weights[1] == 1 && weights[2] == 1);
    features->spec->weight = "w";
    ck_ok(sl_labels_read(features, &c.table, labels, weights));
    ck_assert(weights[0] == 0.5f && weights[1] == 2 && weights[2] == 0);
    features->spec->weight = "none";
    ck_assert_int_eq(sl_labels_read(features, &c.table, labels, weights), SL_ENOTFOUND);
    sl_features_free(features);
    columns_start(&c);
    columns_text(&c, "a", "x y");
    columns_text(&c, "y", "1 maybe");
    columns label = c;
    label.table.columns = label.list;
    features = columns_fit("{'name': 'a', 'type': 'categorical'}", &c, 4096);
    ck_assert_int_eq(sl_labels_read(features, &label.table, labels, weights), SL_EVALUE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "row 1: column 'y'"));
    sl_features_free(features);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("features")};
    tcase_add_checked_fixture(cases[0], set_up, NULL);
    tcase_add_test(cases[0], numeric);
    tcase_add_test(cases[0], logarithms);
    tcase_add_test(cases[0], columns_without_spread);
    tcase_add_test(cases[0], buckets);
    tcase_add_test(cases[0], fitted_vocabularies);
    tcase_add_test(cases[0], identities);
    tcase_add_test(cases[0], types_of_columns_agree);
    tcase_add_test(cases[0], numbers_of_all_types_agree);
    tcase_add_test(cases[0], groups_of_rows);
    tcase_add_test(cases[0], multi);
    tcase_add_test(cases[0], lists_that_fall_are_refused);
    tcase_add_test(cases[0], crosses);
    tcase_add_test(cases[0], vectors);
    tcase_add_test(cases[0], ids_of_64_bits_are_looked_up);
    tcase_add_test(cases[0], layout);
    tcase_add_test(cases[0], sides);
    tcase_add_test(cases[0], the_missing_row);
    tcase_add_test(cases[0], columns_are_found_anew);
    tcase_add_test(cases[0], validity);
    tcase_add_test(cases[0], crosses_of_crosses);
    tcase_add_test(cases[0], labels_without_rows);
    return check_main("features", cases, 1);
}
