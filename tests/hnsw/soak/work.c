/* The worker: the process that has the index. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "tests/hnsw/soak/soak.h"
#include "tests/support/indexes.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct worker {
    soak *soak;
    sl_index *index;
    uint64_t life;
    size_t number;
    pthread_t thread;
} worker;

static void *write_on(void *ctx) {
    worker *w = ctx;
    soak_write(w->soak, w->index, w->life, w->number);
    return NULL;
}

static void *search_on(void *ctx) {
    worker *w = ctx;
    soak_looker *looker = calloc(1, sizeof *looker);
    if (!looker) abort();
    looker->soak = w->soak;
    looker->who = "the worker";
    looker->index = w->index;
    looker->seed = 1000 * w->life + 500 + w->number;
    while (soak_goes_on(w->soak))
        soak_look(looker);
    soak_looker_free(looker);
    free(looker);
    return NULL;
}

static uint64_t resident_bytes(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*u %llu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_measure(const soak *s, soak_memory *memory, uint64_t bytes) {
    const int64_t tenth = (sl_now_ns() - s->begun) * TENTHS / (s->ends - s->begun);
    if (tenth >= TENTHS) return;
    memory->sums[tenth] += bytes;
    memory->counts[tenth]++;
}

static void measure(soak *s, sl_index *index) {
    sl_index_stats stats = {.struct_size = sizeof stats};
    if (soak_fails(s, sl_index_get_stats(index, &stats), "sl_index_get_stats")) return;
    add_measure(s, &s->stored, stats.bytes_total);
    add_measure(s, &s->resident, resident_bytes());
    const struct mallinfo2 heap = mallinfo2();
    add_measure(s, &s->allocated, heap.uordblks + heap.hblkhd);
}

sl_status soak_keep(soak *s, sl_index *index) {
    static _Thread_local uint32_t counts[IDS];
    oracle_look(s->oracle, counts);
    sl_status status = s->kind == SOAK_FILE ? sl_index_sync(index) : sl_index_save(index, s->place.path, NULL);
    if (status != SL_OK) return status;
    oracle_synced(s->oracle, counts);
    soak_count(s, SOAK_SYNCS, 1);
    return SL_OK;
}

void soak_check(soak *s, sl_index *index, const char *which) {
    sl_check_params params;
    sl_check_report report = {.struct_size = sizeof report};
    sl_check_params_init(&params);
    params.sample = 20;
    params.threads = 1;
    params.scrub = s->kind == SOAK_FILE;
    soak_count(s, SOAK_CHECKS, 1);
    if (soak_fails(s, sl_index_check(index, &params, &report), which)) return;
    if (report.unreachable || report.no_in_link)
        soak_differ(s, "%s: %zu vectors are unreachable, and %zu in no list", which, report.unreachable,
                    report.no_in_link);
}

static void compact(soak *s, sl_index *index) {
    if (!soak_fails(s, sl_index_compact(index, NULL), "sl_index_compact")) soak_count(s, SOAK_COMPACTIONS, 1);
}

/* Saves, compacts, checks and measures beside the others. */
static void *keep_on(void *ctx) {
    worker *w = ctx;
    sl_recall_params params;
    sl_recall_params_init(&params);
    params.sample = 5;
    for (size_t turn = 1; soak_goes_on(w->soak); turn++) {
        sl_recall_report recall = {.struct_size = sizeof recall};
        if (w->soak->kind != SOAK_FILE) soak_fails(w->soak, soak_keep(w->soak, w->index), "sl_index_save");
        if (turn % 16 == 8) compact(w->soak, w->index);
        if (turn % 16 == 0) soak_check(w->soak, w->index, "the check beside the worker's threads");
        soak_fails(w->soak, sl_index_recall(w->index, &params, &recall), "sl_index_recall");
        measure(w->soak, w->index);
        soak_sleep(0.05);
    }
    return NULL;
}

static sl_status make(sl_index **out) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = SL_CODES_F32;
    params.tags = 1;
    return sl_index_create(&params, out);
}

sl_status soak_open(const char *path, sl_place place, int writable, sl_index **out) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = place;
    params.writable = writable;
    params.threads = 1;
    params.log_bytes = 1 << 20;
    params.wait_s = 5;
    return sl_index_open(path, &params, out);
}

static sl_index *begin_life(soak *s) {
    sl_index *index = NULL;
    sl_status status = s->kind == SOAK_MEMORY
                           ? make(&index)
                           : soak_open(s->place.path, s->kind == SOAK_FILE ? SL_PLACE_MAP : SL_PLACE_DRAM,
                                       s->kind == SOAK_FILE, &index);
    if (soak_fails(s, status, "opening the index to change it")) _exit(1);
    soak_count(s, SOAK_OPENED, 1);
    return index;
}

/* Nothing changes any more: the oracle knows every state. A short life leaves deleted vectors for the next, so this
 * takes them out. */
static void end_life(soak *s, sl_index *index) {
    static soak_looker looker;
    looker.soak = s;
    looker.who = "the worker's end";
    looker.index = index;
    soak_look_at_all(&looker);
    compact(s, index);
    soak_look_at_all(&looker);
    soak_check(s, index, "the check at the worker's end");
    soak_fails(s, soak_keep(s, index), "the last save or sync");
    sl_index_free(index);
}

_Noreturn void soak_work(soak *s, uint64_t life) {
    enum { THREADS = WRITERS + SEARCHERS + 1 };
    worker workers[THREADS];
    sl_index *index = begin_life(s);
    for (size_t t = 0; t < THREADS; t++) {
        workers[t] = (worker){.soak = s, .index = index, .life = life, .number = t};
        if (pthread_create(&workers[t].thread, NULL,
                           t < WRITERS               ? write_on
                           : t < WRITERS + SEARCHERS ? search_on
                                                     : keep_on,
                           &workers[t]) != 0)
            _exit(2);
    }
    for (size_t t = 0; t < THREADS; t++)
        if (pthread_join(workers[t].thread, NULL) != 0) _exit(2);
    end_life(s, index);
    _exit(0);
}
