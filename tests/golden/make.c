/* Saves the index files of cases.h, a model, a checkpoint and an item table into a folder. Their answers go into
 * answers.txt. make.sh compiles this file against an earlier version. The file uses what the public headers of that
 * version have. */
#include "cases.h"
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static FILE *answers;
static const char *folder;

static void must(sl_status status) {
    if (status == SL_OK) return;
    fprintf(stderr, "%s: %s\n", sl_status_name(status), sl_last_error());
    exit(1);
}

static char *path_of(const char *name, const char *ending, char *out, size_t size) {
    snprintf(out, size, "%s/%s%s", folder, name, ending);
    return out;
}

static sl_status add(sl_index *index, const golden_case *it, size_t i) {
    union {
        float floats[GOLDEN_MAX_DIM];
        int16_t words[GOLDEN_MAX_DIM];
    } vector;
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    uint64_t id = golden_id(it, i);
    golden_vector(it, i, &vector);
    return sl_index_add(index, &vector, it->dtype, 1, 0, it->id_width ? &id : NULL, &params);
}

static void delete_some(sl_index *index, const golden_case *it) {
    for (size_t i = 0; i < it->n; i++) {
        uint64_t id = golden_id(it, i);
        if (golden_deleted(it, i)) must(sl_index_delete(index, &id, 1));
    }
}

static void tune(sl_index *index, const golden_case *it) {
    static float queries[GOLDEN_TUNING * GOLDEN_MAX_DIM];
    const double target = 0.9;
    for (size_t q = 0; q < GOLDEN_TUNING; q++)
        golden_query(it, 100 + q, queries + q * it->dim);
    sl_tune_params params;
    sl_tune_params_init(&params);
    params.targets = &target;
    params.target_count = 1;
    params.threads = 1;
    must(sl_index_tune(index, queries, it->dtype, GOLDEN_TUNING, 0, NULL, GOLDEN_K, &params, NULL));
}

static sl_index *build(const golden_case *it) {
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = it->dim;
    params.metric = it->metric;
    params.dtype = it->dtype;
    params.codes = it->codes;
    params.refine = it->refine;
    params.m = GOLDEN_M;
    params.ef_construction = 40;
    sl_index *index;
    must(sl_index_create(&params, &index));
    for (size_t i = 0; i < it->n; i++)
        must(add(index, it, i));
    if (it->deleted) delete_some(index, it);
    if (it->tuned) tune(index, it);
    return index;
}

static void save(sl_index *index, const golden_case *it, const char *path) {
    sl_save_params params;
    sl_save_params_init(&params);
    params.layout = it->layout;
    params.room = it->room;
    must(sl_index_save(index, path, &params));
}

/* A child adds and syncs, and dies before the log is emptied. */
static void log_some(const golden_case *it, const char *path) {
    int status;
    if (fork() == 0) {
        sl_open_params params;
        sl_open_params_init(&params);
        params.writable = 1;
        sl_index *index;
        must(sl_index_open(path, &params, &index));
        for (size_t i = 0; i < GOLDEN_LOGGED; i++)
            must(add(index, it, it->n + i));
        must(sl_index_sync(index));
        _exit(0);
    }
    if (wait(&status) < 0 || status != 0) exit(1);
}

/* "NAME tuned: K EF RERANK N RECALL EVALUATIONS". */
static void tell_tuned(const sl_index *index, const golden_case *it) {
    sl_tuned tuned = {.struct_size = sizeof tuned};
    must(sl_index_get_tuned(index, 0, &tuned));
    fprintf(answers, "%s tuned: %zu %zu %zu %zu %.9g %.9g\n", it->name, tuned.k, tuned.ef, tuned.rerank, tuned.n,
            tuned.recall, tuned.evaluations);
}

/* "NAME query Q: ID=SCORE ..." for each query, and "NAME vector ID: ELEMENT ..." for one vector. */
static void tell(sl_index *index, const golden_case *it) {
    union {
        float floats[GOLDEN_MAX_DIM];
        int8_t bytes[GOLDEN_MAX_DIM];
        uint8_t whole[GOLDEN_MAX_DIM];
        int16_t words[GOLDEN_MAX_DIM];
    } vector;
    uint64_t ids[GOLDEN_K], id = golden_id(it, 20);
    float scores[GOLDEN_K];
    sl_search_params params;
    golden_search_params(it, &params);
    for (size_t q = 0; q < GOLDEN_QUERIES; q++) {
        golden_query(it, q, &vector);
        must(sl_index_search(index, &vector, it->dtype, 1, 0, GOLDEN_K, &params, ids, scores, NULL));
        fprintf(answers, "%s query %zu:", it->name, q);
        for (size_t i = 0; i < GOLDEN_K; i++)
            fprintf(answers, " %llu=%.9g", (unsigned long long)ids[i], (double)scores[i]);
        fputc('\n', answers);
    }
    if (it->tuned) tell_tuned(index, it);
    must(sl_index_get(index, &id, 1, it->dtype, &vector));
    fprintf(answers, "%s vector %llu:", it->name, (unsigned long long)id);
    for (size_t j = 0; j < it->dim; j++)
        fprintf(answers, " %.9g",
                it->dtype == SL_I8    ? (double)vector.bytes[j]
                : it->dtype == SL_U8  ? (double)vector.whole[j]
                : it->dtype == SL_I16 ? (double)vector.words[j]
                                      : (double)vector.floats[j]);
    fputc('\n', answers);
}

static void copy(const char *from, const char *to) {
    char command[2048];
    snprintf(command, sizeof command, "cp --sparse=always '%s' '%s'", from, to);
    if (system(command) != 0) exit(1);
}

static void make(const golden_case *it) {
    char path[512], log[512], aside[512], aside_log[512];
    path_of(it->name, ".sl", path, sizeof path);
    sl_index *index = build(it), *opened;
    save(index, it, path);
    sl_index_free(index);
    if (it->logged) log_some(it, path);
    /* Asked of a copy: a handle may replay the log. */
    copy(path, path_of("aside", ".sl", aside, sizeof aside));
    if (it->logged)
        copy(path_of(it->name, ".sl.log", log, sizeof log), path_of("aside", ".sl.log", aside_log, sizeof aside_log));
    must(sl_index_open(aside, NULL, &opened));
    tell(opened, it);
    sl_index_free(opened);
    unlink(aside);
    if (it->logged) unlink(aside_log);
}

static golden_rows rows;

static sl_rows source(sl_table_cursor *cursor) {
    sl_rows out = {.struct_size = sizeof out};
    must(sl_table_rows(&rows.table, cursor, &out));
    return out;
}

/* The training ends behind its first epoch: progress is asked some ten times a second, and cancels. */
static int ended;

static void end_of_epoch(void *ctx, const sl_epoch *epoch) {
    const struct timespec a_while = {0, 500000000};
    (void)ctx, (void)epoch;
    ended = 1;
    nanosleep(&a_while, NULL);
}

static int cancel(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return ended;
}

/* "NAME score ROW: SCORE" for the first rows. */
static void tell_scores(const char *name, sl_ranker *ranker) {
    static float scores[GOLDEN_ROWS];
    sl_predictor *predictor;
    must(sl_predictor_create(ranker, NULL, &predictor));
    must(sl_predictor_predict(predictor, &rows.table, scores));
    for (int r = 0; r < GOLDEN_SCORES; r++)
        fprintf(answers, "%s score %d: %.9g\n", name, r, (double)scores[r]);
    sl_predictor_free(predictor);
}

static void make_model(sl_table_cursor *cursor) {
    char path[512], checkpoint[512];
    sl_rows from = source(cursor);
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = 1;
    sl_ranker *ranker;
    must(sl_ranker_train(golden_spec, &from, NULL, &params, &ranker, NULL));
    must(sl_ranker_save(ranker, path_of("model", ".slr", path, sizeof path), NULL));
    tell_scores("model", ranker);
    sl_ranker_free(ranker);
    params.epoch = end_of_epoch;
    params.progress = cancel;
    params.checkpoint = path_of("checkpoint", ".slr", checkpoint, sizeof checkpoint);
    if (sl_ranker_train(golden_spec, &from, NULL, &params, &ranker, NULL) != SL_ECANCELED) exit(1);
    must(sl_ranker_open(checkpoint, NULL, &ranker));
    tell_scores("checkpoint", ranker);
    sl_ranker_free(ranker);
}

static void make_items(sl_table_cursor *cursor) {
    char path[512];
    sl_rows from = source(cursor);
    sl_items *items;
    must(sl_items_create(&from, NULL, &items));
    must(sl_items_save(items, path_of("items", ".sli", path, sizeof path), NULL));
    sl_items_free(items);
}

int main(int argc, char **argv) {
    char path[512];
    if (argc != 2) return 2;
    folder = argv[1];
    answers = fopen(path_of("answers", ".txt", path, sizeof path), "w");
    if (!answers) return 1;
    for (size_t i = 0; i < GOLDEN_CASES; i++)
        make(&golden_cases[i]);
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(GOLDEN_COLUMNS));
    if (!cursor) return 1;
    golden_rows_make(&rows);
    make_model(cursor);
    make_items(cursor);
    free(cursor);
    return fclose(answers) != 0;
}
