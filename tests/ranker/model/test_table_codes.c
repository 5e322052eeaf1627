/* Embedding tables in codes of 8 and 4 bits, against their definition. Each code is the nearest to its element. A row's
 * range has all elements, or the least error. No record decodes to numbers that are not finite. */
#include "base/random.h"
#include "ranker/model/table_codes.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <stdlib.h>

enum { SIZE = 37, MOST_DIM = 70 };

static const size_t dims[] = {1, 2, 3, 4, 6, 7, 8, 15, 16, 17, 24, 32, 33, 50, 64, MOST_DIM};
enum { DIMS = sizeof dims / sizeof *dims };
static const sl_table_type types[] = {SL_TABLE_I8, SL_TABLE_I4};

/* Makes rows of sums of uniform numbers. Each row has its own scale and mean. */
static void make_weights(float *weights, size_t dim, uint64_t seed) {
    for (size_t i = 0; i < SIZE * dim; i++) {
        double x = 0, spread = 0.01 + sl_random_unit(seed + 1, i / dim),
               place = sl_random_unit(seed + 2, i / dim) - 0.5;
        for (uint64_t part = 0; part < 6; part++)
            x += sl_random_unit(seed, 6 * i + part) - 0.5;
        weights[i] = (float)(x * spread + 0.3 * place);
    }
}

typedef struct coded {
    sl_table_codes table;
    size_t dim, bytes;
    uint8_t *rows;
} coded;

static coded encode(const float *weights, size_t size, size_t dim, sl_table_type type, sl_row_range range) {
    coded c = {.dim = dim, .bytes = sl_row_bytes(type, dim)};
    ck_assert_int_eq(sl_table_codes_fit(weights, size, dim, type, &c.table), SL_OK);
    ck_assert_ptr_null(sl_table_codes_fault(&c.table));
    c.rows = malloc(size * c.bytes + SL_CODES_SLACK);
    sl_table_codes_encode(&c.table, weights, size, dim, range, c.rows);
    return c;
}

/* Decodes a row by the layout in ranker/model/table_codes.h, in plain C. */
typedef struct plain_row {
    double scale, offset;
    unsigned top, codes[MOST_DIM];
} plain_row;

static plain_row read_plainly(const coded *c, size_t r) {
    const uint8_t *row = c->rows + r * c->bytes;
    int wide = c->table.type == SL_TABLE_I8;
    unsigned scale = wide ? row[0] | (unsigned)row[1] << 8 : row[0];
    unsigned offset = wide ? row[2] | (unsigned)row[3] << 8 : row[1];
    plain_row plain = {.scale = (double)c->table.scale_step * scale,
                       .offset = (double)c->table.offset + (double)c->table.offset_step * offset,
                       .top = wide ? 255 : 15};
    row += wide ? 4 : 2;
    for (size_t i = 0; i < c->dim; i++)
        plain.codes[i] = wide ? row[i] : (unsigned)row[i / 2] >> 4 * (i % 2) & 15u;
    return plain;
}

static double squared_error(const coded *c, const float *weights, size_t r) {
    plain_row plain = read_plainly(c, r);
    double sum = 0;
    for (size_t i = 0; i < c->dim; i++) {
        double error = plain.offset + plain.scale * plain.codes[i] - (double)weights[r * c->dim + i];
        sum += error * error;
    }
    return sum;
}

static void check_row(const coded *c, const float *weights, size_t r, sl_row_range range) {
    plain_row plain = read_plainly(c, r);
    float decoded[MOST_DIM];
    sl_row_decode(sl_loops_get(), &c->table, c->rows + r * c->bytes, c->dim, SL_DECODE_SET, decoded);
    for (size_t i = 0; i < c->dim; i++) {
        double x = (double)weights[r * c->dim + i], best = INFINITY;
        double got = plain.offset + plain.scale * plain.codes[i];
        for (unsigned code = 0; code <= plain.top; code++)
            best = fmin(best, fabs(plain.offset + plain.scale * code - x));
        ck_assert_double_eq_tol((double)decoded[i], got, 1e-6);
        ck_assert_msg(fabs(got - x) <= best + 1e-6, "row %zu, element %zu: %g for %g", r, i, got, x);
        if (range == SL_ROW_MINMAX) ck_assert_double_le(fabs(got - x), plain.scale / 2 + 1e-6);
    }
    /* After an odd number of codes of 4 bits, half a byte is left. */
    if (c->table.type == SL_TABLE_I4 && c->dim % 2) ck_assert_uint_eq(c->rows[(r + 1) * c->bytes - 1] >> 4, 0);
}

START_TEST(codes_are_the_nearest) {
    float weights[SIZE * MOST_DIM];
    for (size_t d = 0; d < DIMS; d++) {
        make_weights(weights, dims[d], d);
        for (size_t t = 0; t < 2; t++)
            for (sl_row_range range = SL_ROW_MINMAX; range <= SL_ROW_MSE; range++) {
                coded c = encode(weights, SIZE, dims[d], types[t], range);
                for (size_t r = 0; r < SIZE; r++)
                    check_row(&c, weights, r, range);
                free(c.rows);
            }
    }
}
END_TEST

/* A row's error never exceeds that of its whole range. In codes of 4 bits, the table's is clearly smaller. */
START_TEST(the_search_lessens_the_error) {
    float weights[SIZE * MOST_DIM];
    for (size_t d = 0; d < DIMS; d++)
        for (size_t t = 0; t < 2; t++) {
            make_weights(weights, dims[d], 100 + d);
            coded whole = encode(weights, SIZE, dims[d], types[t], SL_ROW_MINMAX);
            coded least = encode(weights, SIZE, dims[d], types[t], SL_ROW_MSE);
            double of_whole = 0, of_least = 0;
            for (size_t r = 0; r < SIZE; r++) {
                double a = squared_error(&whole, weights, r), b = squared_error(&least, weights, r);
                ck_assert_double_le(b, a * (1 + 1e-3) + 1e-9);
                of_whole += a;
                of_least += b;
            }
            if (types[t] == SL_TABLE_I4 && dims[d] >= 8) ck_assert_double_le(of_least, 0.93 * of_whole);
            free(whole.rows);
            free(least.rows);
        }
}
END_TEST

/* No scale and offset of a row are much better than the search's. */
START_TEST(the_search_is_near_the_best) {
    enum { DIM = 16, TRIED = 4 };
    float weights[SIZE * DIM];
    make_weights(weights, DIM, 7);
    coded c = encode(weights, SIZE, DIM, SL_TABLE_I4, SL_ROW_MSE);
    double found = 0, possible = 0;
    for (size_t r = 0; r < TRIED; r++) {
        double best = INFINITY;
        for (unsigned pair = 0; pair < 65536; pair++) {
            double scale = (double)c.table.scale_step * (pair & 255), sum = 0;
            double offset = (double)c.table.offset + (double)c.table.offset_step * (pair >> 8);
            for (size_t i = 0; i < DIM && sum < best; i++) {
                double x = (double)weights[r * DIM + i];
                double code = scale > 0 ? fmin(fmax(round((x - offset) / scale), 0), 15) : 0;
                double error = offset + scale * code - x;
                sum += error * error;
            }
            best = fmin(best, sum);
        }
        found += squared_error(&c, weights, r);
        possible += best;
    }
    ck_assert_msg(found <= 1.5 * possible, "%g, where %g is possible", found, possible);
    free(c.rows);
}
END_TEST

/* Rows without a range, of one element, and of very different sizes. */
START_TEST(unusual_rows_are_coded) {
    enum { DIM = 5, ROWS = 5 };
    static const float weights[ROWS * DIM] = {0,    0,      0,     0,    0,     2.5f,   2.5f, 2.5f, 2.5f,
                                              2.5f, -1e-6f, 1e-6f, 0,    1e-6f, -1e-6f, -3.f, 7.f,  0.5f,
                                              6.9f, -2.f,   -3.f,  -3.f, -3.f,  -3.f,   -3.f};
    for (size_t t = 0; t < 2; t++) {
        double step = types[t] == SL_TABLE_I8 ? 10.0 / 255 : 10.0 / 15;
        for (sl_row_range range = SL_ROW_MINMAX; range <= SL_ROW_MSE; range++) {
            coded c = encode(weights, ROWS, DIM, types[t], range);
            for (size_t r = 0; r < ROWS; r++)
                ck_assert_double_le(squared_error(&c, weights, r), r == 3 ? DIM * step * step / 4 * 1.1 : 1e-3);
            free(c.rows);
            coded zeros = encode(weights, 1, DIM, types[t], range);
            ck_assert(squared_error(&zeros, weights, 0) == 0);
            free(zeros.rows);
            coded one = encode(weights + 6, 1, 1, types[t], range);
            ck_assert(squared_error(&one, weights + 6, 0) == 0);
            free(one.rows);
        }
    }
}
END_TEST

START_TEST(weights_too_large_are_refused) {
    const float weights[] = {-3e38f, 3e38f, 1, 0};
    sl_table_codes table;
    for (size_t t = 0; t < 2; t++) {
        ck_assert_int_eq(sl_table_codes_fit(weights, 2, 2, types[t], &table), SL_EVALUE);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "too large"));
    }
}
END_TEST

START_TEST(bad_records_are_told) {
    static const struct {
        sl_table_codes table;
        const char *fault; /* NULL: none */
    } records[] = {
        {{SL_TABLE_F32, 0, 0, 0}, NULL},
        {{SL_TABLE_I8, 0, 0, 0}, NULL},
        {{SL_TABLE_I4, 0.5f, -3, 0.25f}, NULL},
        {{3, 0, 0, 0}, "type"},
        {{UINT32_MAX, 0, 0, 0}, "type"},
        {{SL_TABLE_F32, 1, 0, 0}, "without codes"},
        {{SL_TABLE_I8, NAN, 0, 0}, "not finite"},
        {{SL_TABLE_I8, INFINITY, 0, 0}, "not finite"},
        {{SL_TABLE_I4, 1, -INFINITY, 0}, "not finite"},
        {{SL_TABLE_I4, 1, 0, NAN}, "not finite"},
        {{SL_TABLE_I8, -1, 0, 0}, "negative"},
        {{SL_TABLE_I4, 1, 0, -1e-9f}, "negative"},
        {{SL_TABLE_I8, 1e33f, 0, 0}, "too large"},
        {{SL_TABLE_I4, 0, 3e38f, 0}, "too large"},
        {{SL_TABLE_I4, 0, 0, 1e36f}, "too large"},
    };
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        const char *fault = sl_table_codes_fault(&records[i].table);
        ck_assert_msg(records[i].fault ? fault && strstr(fault, records[i].fault) : !fault, "record %zu: %s", i,
                      fault ? fault : "sound");
    }
}
END_TEST

START_TEST(bytes_of_a_row) {
    ck_assert_uint_eq(sl_row_bytes(SL_TABLE_F32, 16), 64);
    ck_assert_uint_eq(sl_row_bytes(SL_TABLE_I8, 16), 20);
    ck_assert_uint_eq(sl_row_bytes(SL_TABLE_I4, 16), 10);
    ck_assert_uint_eq(sl_row_bytes(SL_TABLE_I4, 7), 6);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("table codes");
    tcase_add_test(tests, codes_are_the_nearest);
    tcase_add_test(tests, the_search_lessens_the_error);
    tcase_add_test(tests, the_search_is_near_the_best);
    tcase_add_test(tests, unusual_rows_are_coded);
    tcase_add_test(tests, weights_too_large_are_refused);
    tcase_add_test(tests, bad_records_are_told);
    tcase_add_test(tests, bytes_of_a_row);
    return check_main("table codes", &tests, 1);
}
