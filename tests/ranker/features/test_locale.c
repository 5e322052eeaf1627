/* Specs, models, tables and CSV files have the same numbers under every locale of the process or of a thread. */
#define _GNU_SOURCE
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ROWS = 300, FILES = 3, SKIPPED = 77 };

#define SPEC                                                                                                           \
    "{\"label\": {\"column\": \"y\", \"at_least\": 0.25}, \"features\": ["                                             \
    "{\"name\": \"x\", \"type\": \"numeric\", \"missing\": -0.125},"                                                   \
    "{\"name\": \"b\", \"type\": \"bucket\", \"column\": \"x\", \"boundaries\": [-0.75, 0.1, 1.5e0]},"                 \
    "{\"name\": \"c\", \"type\": \"categorical\", \"column\": \"x\", \"vocabulary\": [0.5, 2.75, \"0.1\"]}],"          \
    "\"wide\": {\"rate\": 0.05, \"l1\": 1e-3}, \"deep\": {\"hidden\": [8, 4], \"rate\": 0.015, \"dropout\": 0.25},"    \
    "\"train\": {\"epochs\": 1, \"validation\": 0.125}}"

static char folder[SCRATCH_PATH];
static const char *const names[] = {"comma", "arabic", "wide"};
enum { LOCALES = sizeof names / sizeof *names };

/* ---------------------------------------------------------------------------------------------------------------
 * Work with numbers
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct made {
    unsigned char *bytes[FILES];
    size_t sizes[FILES];
    float scores[ROWS];
    char text[64];
} made;

static void made_free(made *m) {
    for (size_t i = 0; i < FILES; i++)
        free(m->bytes[i]);
}

static void keep(made *m, size_t i, const scratch *place) {
    m->bytes[i] = file_read(place->path, &m->sizes[i]);
}

/* 300 rows of x, from -1.5 on. A comma is no number's decimal point. */
static sl_csv *csv_of(const scratch *place, sl_rows *source) {
    char name[SCRATCH_PATH];
    static char text[64 * ROWS];
    size_t size = (size_t)sprintf(text, "id,x,y\n");
    for (int i = 0; i < ROWS; i++)
        size += (size_t)sprintf(text + size, "%d,%s%d.%02d5,0.%d\n", i, i < 150 ? "-" : "", abs(i - 150) / 100,
                                abs(i - 150) % 100, i * 7 % 10);
    sl_csv *csv;
    scratch_name(place, "rows.csv", name);
    file_write(name, text, size);
    source->struct_size = sizeof *source;
    ck_ok(sl_csv_open(name, NULL, &csv));
    ck_ok(sl_csv_rows(csv, source));
    return csv;
}

static void predict(const sl_ranker *ranker, sl_rows *source, made *m) {
    sl_table block = {.struct_size = sizeof block};
    sl_predictor *predictor;
    ck_ok(source->rewind(source->ctx));
    ck_ok(source->next(source->ctx, ROWS, &block));
    ck_assert_uint_eq(block.rows, ROWS);
    ck_ok(sl_predictor_create(ranker, NULL, &predictor));
    ck_ok(sl_predictor_predict(predictor, &block, m->scores));
    sl_predictor_free(predictor);
}

static void make_items(const scratch *place, sl_rows *source, made *m) {
    sl_items *items;
    size_t length;
    ck_ok(source->rewind(source->ctx));
    ck_ok(sl_items_create(source, NULL, &items));
    ck_ok(sl_items_text(items, 7, "x", m->text, sizeof m->text, &length));
    ck_ok(sl_items_save(items, place->path, NULL));
    sl_items_free(items);
    keep(m, 0, place);
}

/* cJSON writes a smaller model's spec. */
static void make_models(const scratch *place, sl_rows *source, made *m) {
    sl_ranker *ranker, *opened, *smaller;
    sl_prune_params params;
    ck_ok(sl_ranker_create(SPEC, source, NULL, &ranker));
    ck_ok(sl_ranker_save(ranker, place->path, NULL));
    keep(m, 1, place);
    ck_ok(sl_ranker_open(place->path, NULL, &opened));
    predict(opened, source, m);
    sl_prune_params_init(&params);
    params.units = 0.25;
    params.criterion = SL_PRUNE_NORM;
    ck_ok(sl_ranker_prune(opened, NULL, NULL, &params, NULL, &smaller, NULL));
    ck_ok(sl_ranker_save(smaller, place->path, NULL));
    keep(m, 2, place);
    sl_ranker_free(smaller);
    sl_ranker_free(opened);
    sl_ranker_free(ranker);
}

static made make_model(void) {
    made m = {.sizes = {0}};
    scratch place;
    sl_rows source;
    scratch_open(&place);
    sl_csv *csv = csv_of(&place, &source);
    make_models(&place, &source, &m);
    make_items(&place, &source, &m);
    sl_csv_free(csv);
    scratch_close(&place);
    return m;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Locales
 * ------------------------------------------------------------------------------------------------------------- */

static void check_same(void) {
    made m = make_model();
    setlocale(LC_ALL, "C");
    uselocale(LC_GLOBAL_LOCALE);
    made wanted = make_model();
    for (size_t i = 0; i < FILES; i++) {
        ck_assert_uint_eq(m.sizes[i], wanted.sizes[i]);
        ck_assert_mem_eq(m.bytes[i], wanted.bytes[i], wanted.sizes[i]);
    }
    ck_assert_mem_eq(m.scores, wanted.scores, sizeof m.scores);
    ck_assert_str_eq(m.text, "-1.435");
    ck_assert_str_eq(wanted.text, "-1.435");
    made_free(&wanted);
    made_free(&m);
}

/* The locale is in force, also after the call. */
static void check_in_force(const char *name) {
    static const char *const points[LOCALES] = {",", "\xd9\xab", "\xe2\x8e\x96"};
    char text[32], wanted[32];
    size_t i = 0;
    while (strcmp(names[i], name) != 0)
        i++;
    snprintf(text, sizeof text, "%.1f", 0.5);
    snprintf(wanted, sizeof wanted, "0%s5", points[i]);
    ck_assert_str_eq(text, wanted);
}

START_TEST(the_locale_of_the_process_changes_nothing) {
    ck_assert_ptr_nonnull(setlocale(LC_NUMERIC, names[_i]));
    check_in_force(names[_i]);
    made m = make_model();
    made_free(&m);
    check_in_force(names[_i]);
    check_same();
}
END_TEST

START_TEST(the_locale_of_a_thread_changes_nothing) {
    /* newlocale never frees the path of a locale in LOCPATH. */
    ck_assert_ptr_nonnull(setlocale(LC_NUMERIC, names[_i]));
    locale_t own = duplocale(LC_GLOBAL_LOCALE);
    ck_assert_ptr_nonnull(own);
    setlocale(LC_NUMERIC, "C");
    uselocale(own);
    check_in_force(names[_i]);
    made m = make_model();
    made_free(&m);
    check_in_force(names[_i]);
    ck_assert(uselocale((locale_t)0) == own);
    check_same();
    freelocale(own);
}
END_TEST

/* A refused spec restores the locale too. */
START_TEST(refusals_leave_the_locale) {
    planted rows;
    sl_ranker *ranker;
    planted_make(&rows, 10, 1);
    ck_assert_ptr_nonnull(setlocale(LC_NUMERIC, names[_i]));
    ck_fails(sl_ranker_create("{\"label\": 0,5}", &rows.source, NULL, &ranker), SL_EINVAL, "not JSON");
    check_in_force(names[_i]);
    planted_free(&rows);
}
END_TEST

/* Makes the locales once, outside of the cases' processes. Returns 0, or the exit status of the test. */
static int make_locales(void) {
    char command[2 * SCRATCH_PATH];
    const char *place = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/shortlist-locales-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(folder)) return 1;
    snprintf(command, sizeof command, "'%s' '%s'", SL_TEST_MAKE_LOCALES, folder);
    int status = system(command);
    if (!WIFEXITED(status)) return 1;
    if (WEXITSTATUS(status) == 0) setenv("LOCPATH", folder, 1);
    return WEXITSTATUS(status);
}

static void remove_locales(void) {
    char command[2 * SCRATCH_PATH];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) printf("%s is left behind\n", folder);
}

int main(void) {
    int status = make_locales();
    if (status == SKIPPED) puts("skipped: this machine cannot make locales");
    if (status == 0) {
        TCase *cases[] = {tcase_create("locale")};
        tcase_add_loop_test(cases[0], the_locale_of_the_process_changes_nothing, 0, LOCALES);
        tcase_add_loop_test(cases[0], the_locale_of_a_thread_changes_nothing, 0, LOCALES);
        tcase_add_loop_test(cases[0], refusals_leave_the_locale, 0, LOCALES);
        status = check_main("locale", cases, 1);
    }
    remove_locales();
    return status;
}
