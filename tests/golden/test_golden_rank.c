/* Models, a checkpoint and an item table that earlier versions saved open, pass their checks and answer as they did. */
#include "tests/golden/answers.h"
#include "tests/golden/rows.h"
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static scratch place;
static char path[SCRATCH_PATH];
static golden_rows rows;

static void set_up(void) {
    scratch_open(&place);
    golden_rows_make(&rows);
}

static void tear_down(void) {
    scratch_close(&place);
}

static void ck_scores(const char *name, sl_ranker *ranker) {
    float scores[GOLDEN_ROWS];
    char key[64];
    sl_predictor *predictor;
    ck_ok(sl_predictor_create(ranker, NULL, &predictor));
    ck_ok(sl_predictor_predict(predictor, &rows.table, scores));
    for (int r = 0; r < GOLDEN_SCORES; r++) {
        snprintf(key, sizeof key, "%s score %d", name, r);
        double wanted = strtod(golden_answer(key), NULL);
        ck_assert_msg(fabs((double)scores[r] - wanted) <= 1e-5, "row %d: %.9g instead of %.9g", r, (double)scores[r],
                      wanted);
    }
    sl_predictor_free(predictor);
}

static sl_ranker_check_report check_model(const char *name) {
    sl_ranker_check_report report = {.struct_size = sizeof report};
    golden_copy(&place, name, path);
    ck_ok(sl_ranker_check(path, NULL, &report));
    ck_assert_uint_eq(report.features, 5);
    return report;
}

static void ck_same_files(const char *a, const char *b) {
    size_t size_a, size_b;
    unsigned char *of_a = file_read(a, &size_a), *of_b = file_read(b, &size_b);
    ck_assert_uint_eq(size_a, size_b);
    ck_assert_mem_eq(of_a, of_b, size_a);
    free(of_a);
    free(of_b);
}

START_TEST(a_model_predicts) {
    char again[SCRATCH_PATH];
    ck_assert_int_eq(check_model("model.slr").checkpoint, 0);
    sl_ranker *ranker;
    ck_ok(sl_ranker_open(path, NULL, &ranker));
    ck_scores("model", ranker);
    scratch_name(&place, "again.slr", again);
    ck_ok(sl_ranker_save(ranker, again, NULL));
    ck_same_files(path, again);
    sl_ranker_free(ranker);
}
END_TEST

/* model.slr with tables of each type, as the first version with codes saved and scored it. */
START_TEST(a_coded_model_predicts) {
    static const double wanted[GOLDEN_SCORES] = {0.413495332, 0.511288702, 0.31673494,  0.58970958,  0.43707028,
                                                 0.690083086, 0.293878853, 0.631823957, 0.496531665, 0.630923331};
    static const sl_table_type types[] = {SL_TABLE_I4, SL_TABLE_F32, SL_TABLE_I8};
    char again[SCRATCH_PATH];
    float scores[GOLDEN_ROWS];
    sl_ranker *ranker;
    sl_predictor *predictor;
    ck_assert_int_eq(check_model("coded.slr").checkpoint, 0);
    ck_ok(sl_ranker_open(path, NULL, &ranker));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        sl_embedding_info info = {.struct_size = sizeof info};
        ck_ok(sl_ranker_get_embedding(ranker, i, &info));
        ck_assert_int_eq(info.type, types[i]);
    }
    ck_ok(sl_predictor_create(ranker, NULL, &predictor));
    ck_ok(sl_predictor_predict(predictor, &rows.table, scores));
    for (size_t r = 0; r < GOLDEN_SCORES; r++)
        ck_assert_double_eq_tol((double)scores[r], wanted[r], 1e-5);
    scratch_name(&place, "again.slr", again);
    ck_ok(sl_ranker_save(ranker, again, NULL));
    ck_same_files(path, again);
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
}
END_TEST

/* A checkpoint is a model too. The old version's training differs from today's, which forgets values. */
START_TEST(a_checkpoint_predicts) {
    ck_assert_int_ne(check_model("checkpoint.slr").checkpoint, 0);
    sl_ranker *ranker;
    ck_ok(sl_ranker_open(path, NULL, &ranker));
    ck_scores("checkpoint", ranker);
    sl_ranker_free(ranker);
    sl_rows source = {.struct_size = sizeof source};
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(GOLDEN_COLUMNS));
    ck_assert_ptr_nonnull(cursor);
    ck_ok(sl_table_rows(&rows.table, cursor, &source));
    sl_train_params params;
    sl_train_params_init(&params);
    params.checkpoint = path;
    params.resume = 1;
    sl_status status = sl_ranker_train(golden_spec, &source, NULL, &params, &ranker, NULL);
    if (status != SL_EUNSUPPORTED) ck_fails(status, SL_EFORMAT, "of a training with another spec");
    free(cursor);
}
END_TEST

START_TEST(an_item_table_tells) {
    char again[SCRATCH_PATH], text[16];
    size_t length;
    sl_items_check_report report = {.struct_size = sizeof report};
    golden_copy(&place, "items.sli", path);
    sl_items *items;
    ck_ok(sl_items_open(path, NULL, &items));
    ck_ok(sl_items_check(items, NULL, &report));
    ck_assert_uint_eq(report.bad_ids, 0);
    ck_assert_uint_eq(report.columns, GOLDEN_COLUMNS);
    ck_assert_uint_eq(sl_items_size(items), GOLDEN_ROWS);
    ck_ok(sl_items_text(items, 10 * 17 + 5, "tags", text, sizeof text, &length));
    ck_assert_str_eq(text, "t2|t8");
    ck_ok(sl_items_text(items, 10 * 17 + 5, "a", text, sizeof text, &length));
    ck_assert_str_eq(text, "4");
    ck_ok(sl_items_text(items, 10 * 17 + 5, "click", text, sizeof text, &length));
    ck_assert_str_eq(text, "1");
    scratch_name(&place, "again.sli", again);
    ck_ok(sl_items_save(items, again, NULL));
    ck_same_files(path, again);
    sl_items_free(items);
}
END_TEST

int main(void) {
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, set_up, tear_down);
    tcase_add_test(files, a_model_predicts);
    tcase_add_test(files, a_coded_model_predicts);
    tcase_add_test(files, a_checkpoint_predicts);
    tcase_add_test(files, an_item_table_tells);
    return check_main("golden rank", &files, 1);
}
