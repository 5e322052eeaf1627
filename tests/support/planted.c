#include "tests/support/planted.h"

#include "base/random.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS_OF_A = 15, KINDS_OF_B = 10, TAGS = 6, LONGEST_TAGS = 3 * TAGS, LONGEST_KIND = 3 };

#define RULE 4711u

static double uniform(uint64_t seed, uint64_t counter) {
    return 2 * sl_random_unit(seed, counter) - 1;
}

static void *array(size_t count, size_t element) {
    void *made = calloc(count + 1, element);
    ck_assert_ptr_nonnull(made);
    return made;
}

/* Tags that a row has, and their part of the score. */
static double put_tags(planted *p, size_t r, uint64_t bits) {
    char *at = p->tags + p->tag_offsets[r];
    double score = 0;
    for (unsigned tag = 0; tag < TAGS; tag++) {
        if (bits >> (2 * tag) & 3) continue;
        at += sprintf(at, "%st%u", at > p->tags + p->tag_offsets[r] ? "|" : "", tag);
        score += 0.5 * uniform(RULE + 1, tag);
    }
    p->tag_offsets[r + 1] = at - p->tags;
    return score;
}

static void put_row(planted *p, size_t r, uint64_t seed) {
    static const char *const kinds[] = {"low", "mid", "top"};
    uint64_t at = 8 * r;
    p->x[r] = (float)(2 * uniform(seed, at));
    p->y[r] = (float)(2 * uniform(seed, at + 1));
    p->a[r] = (int32_t)(sl_random_at(seed, at + 2) % KINDS_OF_A);
    p->b[r] = (int32_t)(sl_random_at(seed, at + 3) % KINDS_OF_B);
    double score = put_tags(p, r, sl_random_at(seed, at + 4));
    score += 3 * uniform(RULE, (uint64_t)(p->a[r] * KINDS_OF_B + p->b[r]));
    score += 1.5 * sin(2 * (double)p->x[r]) * (double)p->y[r];
    p->click[r] = sl_random_unit(seed, at + 5) < 1 / (1 + exp(-score));
    p->value[r] = (float)(10 + score + 0.2 * uniform(seed, at + 6));
    p->weight[r] = sl_random_at(seed, at + 7) % 2 ? 3 : 1;
    memcpy(p->kinds + LONGEST_KIND * r, kinds[score < -0.8 ? 0 : score < 0.8 ? 1 : 2], LONGEST_KIND);
    p->kind_offsets[r + 1] = (int64_t)(LONGEST_KIND * (r + 1));
}

void planted_make(planted *p, size_t rows, uint64_t seed) {
    *p = (planted){.rows = rows};
    p->x = array(rows, sizeof *p->x);
    p->y = array(rows, sizeof *p->y);
    p->click = array(rows, sizeof *p->click);
    p->value = array(rows, sizeof *p->value);
    p->weight = array(rows, sizeof *p->weight);
    p->a = array(rows, sizeof *p->a);
    p->b = array(rows, sizeof *p->b);
    p->tags = array(rows, LONGEST_TAGS);
    p->kinds = array(rows, LONGEST_KIND);
    p->tag_offsets = array(rows + 1, sizeof *p->tag_offsets);
    p->kind_offsets = array(rows + 1, sizeof *p->kind_offsets);
    for (size_t r = 0; r < rows; r++)
        put_row(p, r, seed);
    const sl_column columns[PLANTED_COLUMNS] = {
        {.name = "x", .type = SL_COLUMN_F32, .values = p->x},
        {.name = "y", .type = SL_COLUMN_F32, .values = p->y},
        {.name = "a", .type = SL_COLUMN_I32, .values = p->a},
        {.name = "b", .type = SL_COLUMN_I32, .values = p->b},
        {.name = "tags", .type = SL_COLUMN_TEXT, .values = p->tags, .offsets = p->tag_offsets},
        {.name = "click", .type = SL_COLUMN_F32, .values = p->click},
        {.name = "value", .type = SL_COLUMN_F32, .values = p->value},
        {.name = "kind", .type = SL_COLUMN_TEXT, .values = p->kinds, .offsets = p->kind_offsets},
        {.name = "weight", .type = SL_COLUMN_F32, .values = p->weight},
    };
    memcpy(p->columns, columns, sizeof columns);
    p->table = (sl_table){
        .struct_size = sizeof p->table, .rows = rows, .column_count = PLANTED_COLUMNS, .columns = p->columns};
    p->cursor = malloc(sl_table_cursor_size(PLANTED_COLUMNS));
    ck_assert_ptr_nonnull(p->cursor);
    p->source.struct_size = sizeof p->source;
    ck_assert_int_eq(sl_table_rows(&p->table, p->cursor, &p->source), SL_OK);
}

void planted_free(planted *p) {
    free(p->x);
    free(p->y);
    free(p->click);
    free(p->value);
    free(p->weight);
    free(p->a);
    free(p->b);
    free(p->tags);
    free(p->kinds);
    free(p->tag_offsets);
    free(p->kind_offsets);
    free(p->cursor);
}

void planted_spec(char out[PLANTED_SPEC], const char *label, const char *wide, const char *deep, const char *train,
                  const char *extra) {
    int length = snprintf(out, PLANTED_SPEC,
                          "{\"label\": {%s}, \"features\": ["
                          "{\"name\": \"x\", \"type\": \"numeric\"},"
                          "{\"name\": \"y\", \"type\": \"numeric\", \"side\": \"item\"},"
                          "{\"name\": \"a\", \"type\": \"categorical\", \"dim\": 4},"
                          "{\"name\": \"b\", \"type\": \"categorical\", \"dim\": 4, \"side\": \"item\"},"
                          "{\"name\": \"tags\", \"type\": \"multi\", \"dim\": 3, " PLANTED_COMBINE "\"mean\"},"
                          "{\"name\": \"ab\", \"type\": \"cross\", \"of\": [\"a\", \"b\"], \"hash\": 5000}],"
                          "\"wide\": %s%s%s, \"deep\": %s%s%s, \"train\": {%s}%s%s}",
                          label, wide ? "{" : "null", wide ? wide : "", wide ? "}" : "", deep ? "{" : "null",
                          deep ? deep : "", deep ? "}" : "", train, *extra ? ", " : "", extra);
    ck_assert_int_lt(length, PLANTED_SPEC);
}

sl_ranker *planted_ranker(const planted *p, const char *label, const char *wide, const char *deep) {
    char spec[PLANTED_SPEC];
    sl_ranker *made;
    planted_spec(spec, label, wide, deep, "\"epochs\": 1", "");
    ck_ok(sl_ranker_create(spec, &p->source, NULL, &made));
    return made;
}

void planted_predict(const planted *p, const sl_ranker *ranker, float *scores) {
    sl_predictor *predictor;
    ck_ok(sl_predictor_create(ranker, NULL, &predictor));
    ck_ok(sl_predictor_predict(predictor, &p->table, scores));
    sl_predictor_free(predictor);
}

sl_ranker *planted_changed(const sl_ranker *base, const char *name,
                           float (*change)(float value, size_t i, size_t columns)) {
    sl_ranker *made = NULL;
    sl_tensor tensor;
    for (size_t t = 0; sl_ranker_get_tensor(base, t, &tensor) == SL_OK; t++) {
        if (strcmp(tensor.name, name) != 0) continue;
        size_t count = tensor.rows * tensor.columns;
        float *values = malloc(count * sizeof *values);
        for (size_t i = 0; i < count; i++)
            values[i] = change(tensor.data[i], i, tensor.columns);
        tensor.data = values;
        ck_ok(sl_ranker_with_tensors(base, &tensor, 1, &made));
        free(values);
        break;
    }
    ck_assert_ptr_nonnull(made);
    return made;
}

sl_train_params planted_one_thread(void) {
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = 1;
    return params;
}

void planted_check_memory(const char *spec, sl_train_params params) {
    planted few;
    fault_allocator faults;
    sl_status status = SL_ENOMEM;
    size_t fail_at = 1;
    planted_make(&few, 120, 3);
    fault_allocator_init(&faults, 0);
    params.allocator = &faults.allocator;
    for (; status != SL_OK; fail_at++) {
        sl_ranker *ranker;
        faults.calls = 0;
        faults.fail_at = fail_at;
        status = sl_ranker_train(spec, &few.source, NULL, &params, &ranker, NULL);
        ck_assert_msg(status == SL_OK || status == SL_ENOMEM, "allocation %zu: %s", fail_at, sl_last_error());
        sl_ranker_free(ranker);
        ck_assert_msg(faults.live_blocks == 0, "allocation %zu: %zu blocks are lost", fail_at, faults.live_blocks);
        ck_assert_uint_lt(fail_at, 5000);
    }
    ck_assert_uint_gt(fail_at, 30);
    planted_free(&few);
}
