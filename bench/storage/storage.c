/*
 * One stage of the storage measurements a process; prints a JSON object a line. run.py has the order of them.
 *   make BASE ROWS OUT=ROOM[,LAYOUT]...  an index of the first rows, saved with room for so many, 0: with none
 *   open INDEX PLACE QUERIES             from nothing to the first answer, and the queries about the 1,000th
 *   copy INDEX                           place dram, by all threads and by one, beside memcpy of as many bytes
 *   insert INDEX PLACE BASE FIRST GROUPS groups of rows from FIRST on, each made durable where the place is not dram
 */
#define _DEFAULT_SOURCE
#include "bench/limit/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/* Queries ABOUT - NEAR to ABOUT + NEAR are those about the 1,000th. */
enum { K = 10, EF = 64, GROUP = 1000, ABOUT = 1000, NEAR = 50, WARM_PASSES = 5, COPIES = 5 };
#define HUGE_PAGE ((size_t)2 << 20)

static double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t number(const char *text) {
    return (size_t)strtoull(text, NULL, 10);
}

static sl_place place_of(const char *name) {
    for (int place = SL_PLACE_DRAM; place <= SL_PLACE_PMEM; place++)
        if (strcmp(name, sl_place_name((sl_place)place)) == 0) return (sl_place)place;
    fprintf(stderr, "bench storage: no place '%s'\n", name);
    exit(1);
}

static sl_index *open_as(const char *path, sl_place place, int writable) {
    sl_index *index;
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = place;
    params.writable = writable;
    must(sl_index_open(path, &params, &index), path);
    return index;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Making
 * ------------------------------------------------------------------------------------------------------------- */

/* "OUT=ROOM", or "OUT=ROOM,records" */
static void save_as(sl_index *index, char *target) {
    sl_save_params params;
    sl_save_params_init(&params);
    char *room = strrchr(target, '=');
    if (!room) {
        fprintf(stderr, "bench storage: '%s' is not OUT=ROOM\n", target);
        exit(1);
    }
    *room++ = '\0';
    params.room = number(room);
    const char *layout = strchr(room, ',');
    if (layout && strcmp(layout + 1, sl_layout_name(SL_LAYOUT_RECORDS)) != 0) {
        fprintf(stderr, "bench storage: no layout '%s'\n", layout + 1);
        exit(1);
    }
    if (layout) params.layout = SL_LAYOUT_RECORDS;
    must(sl_index_save(index, target, &params), target);
}

static void make(int argc, char **argv) {
    matrix base = matrix_read(argv[0], sizeof(float));
    sl_index_params params;
    sl_index *index;
    sl_index_params_init(&params);
    params.dim = base.columns;
    must(sl_index_create(&params, &index), argv[0]);
    must(sl_index_add(index, base.at, SL_F32, number(argv[1]), 0, NULL, NULL), argv[0]);
    for (int i = 2; i < argc; i++)
        save_as(index, argv[i]);
    sl_index_free(index);
    free(base.at);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Opening
 * ------------------------------------------------------------------------------------------------------------- */

static double ask(sl_searcher *searcher, const matrix *queries, size_t i) {
    uint64_t ids[K];
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = EF;
    double start = now_seconds();
    must(sl_searcher_search(searcher, matrix_row(queries, i), SL_F32, K, &params, ids, NULL, NULL), "search");
    return 1e6 * (now_seconds() - start);
}

/* Prints the first time of each query about the 1,000th, and the least time of later passes over all. */
static void print_about(sl_searcher *searcher, const matrix *queries) {
    double first[2 * NEAR + 1], warm[2 * NEAR + 1];
    for (size_t pass = 0; pass <= WARM_PASSES; pass++)
        for (size_t i = 0; i <= ABOUT + NEAR; i++) {
            double us = ask(searcher, queries, i);
            if (i < ABOUT - NEAR) continue;
            size_t at = i - (ABOUT - NEAR);
            if (pass == 0) first[at] = us;
            if (pass == 1 || (pass > 1 && us < warm[at])) warm[at] = us;
        }
    for (size_t i = 0; i <= 2 * NEAR; i++)
        printf("%s[%.3f, %.3f]", i ? ", " : "", first[i], warm[i]);
}

static void open_first(char **argv) {
    matrix queries = matrix_read(argv[2], sizeof(float));
    sl_index_storage storage = {.struct_size = sizeof storage};
    sl_searcher *searcher;
    if (queries.rows <= ABOUT + NEAR) {
        fprintf(stderr, "bench storage: %s has no more than %d queries\n", argv[2], ABOUT + NEAR);
        exit(1);
    }
    double start = now_seconds();
    sl_index *index = open_as(argv[0], place_of(argv[1]), 0);
    double opened = now_seconds();
    must(sl_searcher_create(index, EF, &searcher), argv[0]);
    (void)ask(searcher, &queries, queries.rows - 1);
    double answered = now_seconds();
    printf("{\"event\": \"open\", \"place\": \"%s\", \"open_ms\": %.4f, \"answer_ms\": %.4f, \"about\": [", argv[1],
           1e3 * (opened - start), 1e3 * (answered - start));
    print_about(searcher, &queries);
    must(sl_index_get_storage(index, &storage), argv[0]);
    printf("], \"mapping\": \"%s\", \"dax\": %s}\n", sl_mapping_name(storage.mapping), storage.dax ? "true" : "false");
    sl_searcher_free(searcher);
    sl_index_free(index);
    free(queries.at);
}

/* As the library's memory is: in huge pages where the system grants them. */
static char *new_block(size_t size) {
    char *block = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (!block) exit(1);
    (void)madvise(block, size, MADV_HUGEPAGE);
    return block;
}

static double opening(const char *path, size_t threads) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = SL_PLACE_DRAM;
    params.threads = threads;
    sl_index *index;
    double start = now_seconds();
    must(sl_index_open(path, &params, &index), path);
    double took = now_seconds() - start;
    sl_index_free(index);
    return took;
}

/* Into memory that has no pages yet, as a copy of a file's, and once more into the same. */
static void copying(const char *from, size_t size, double *fresh, double *present) {
    char *to = new_block(size);
    double start = now_seconds();
    memcpy(to, from, size);
    *fresh = now_seconds() - start;
    start = now_seconds();
    memcpy(to, from + 1, size - 1);
    *present = now_seconds() - start;
    if (to[size / 2] != 1) exit(1);
    free(to);
}

/* Measures copies by turns, so that all get memory that was given back a moment ago. A virtual machine's host may take
 * memory that nobody has for some seconds, and gives it again slowly: the turn numbered 0 waits for that memory. */
static void copy(char **argv) {
    struct stat info;
    if (stat(argv[0], &info) != 0) {
        perror(argv[0]);
        exit(1);
    }
    size_t size = (size_t)info.st_size;
    char *from = new_block(size);
    memset(from, 1, size);
    for (int turn = 0; turn <= COPIES; turn++) {
        double fresh, present, all = opening(argv[0], 0), one = opening(argv[0], 1);
        copying(from, size, &fresh, &present);
        printf("{\"event\": \"copy\", \"turn\": %d, \"bytes\": %zu, \"open_s\": %.6f, \"open_one_s\": %.6f, "
               "\"memcpy_fresh_s\": %.6f, \"memcpy_s\": %.6f}\n",
               turn, size, all, one, fresh, present);
    }
    free(from);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Adding
 * ------------------------------------------------------------------------------------------------------------- */

static void insert(char **argv) {
    sl_place place = place_of(argv[1]);
    matrix base = matrix_read(argv[2], sizeof(float));
    size_t first = number(argv[3]), groups = number(argv[4]);
    sl_index_storage storage = {.struct_size = sizeof storage};
    sl_index *index = open_as(argv[0], place, place != SL_PLACE_DRAM);
    if (sl_index_size(index) != first || base.rows < first + groups * GROUP) {
        fprintf(stderr, "bench storage: %s does not hold the first %zu rows, or %s not enough\n", argv[0], first,
                argv[2]);
        exit(1);
    }
    must(sl_index_get_storage(index, &storage), argv[0]);
    /* A file has its room already. */
    must(sl_index_reserve(index, first + groups * GROUP), argv[0]);
    for (size_t i = 0; i < groups; i++) {
        double start = now_seconds();
        must(sl_index_add(index, matrix_row(&base, first + i * GROUP), SL_F32, GROUP, 0, NULL, NULL), "add");
        double added = now_seconds();
        if (place != SL_PLACE_DRAM) must(sl_index_sync(index), "sync");
        double synced = now_seconds();
        printf("{\"event\": \"group\", \"rows\": %d, \"add_s\": %.6f, \"durable_s\": %.6f, \"mapping\": \"%s\"}\n",
               GROUP, added - start, synced - added, sl_mapping_name(storage.mapping));
    }
    sl_index_free(index);
    free(base.at);
}

int main(int argc, char **argv) {
    const char *stage = argc > 1 ? argv[1] : "";
    if (argc > 4 && strcmp(stage, "make") == 0)
        make(argc - 2, argv + 2);
    else if (argc == 5 && strcmp(stage, "open") == 0)
        open_first(argv + 2);
    else if (argc == 3 && strcmp(stage, "copy") == 0)
        copy(argv + 2);
    else if (argc == 7 && strcmp(stage, "insert") == 0)
        insert(argv + 2);
    else
        return fputs("bench storage: see the head of storage.c\n", stderr), 2;
    return 0;
}
