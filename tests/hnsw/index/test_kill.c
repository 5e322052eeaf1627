/* A writer that is killed at any moment, again and again, on the same file. Whoever opens the file next finds all that
 * was acknowledged, and goes on from there.
 *   test_kill            as many kills as a test run has time for
 *   test_kill KILLS      so many, saying how many there were */
#include "base/random.h"
#include "base/status.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    KILLS = SANITIZED ? 12 : 40,
    THREADS = 3,
    MANY = 60,
    REPLACED = 8,
    DIM = 8,
    START = 200,
    A_LIFE = 400,
    QUERIES = 50,
    K = 5
};

static size_t kills = KILLS;

/* Vectors by id, however many there come to be: those of the set again and again, each time moved a little. */
static void vector_of(const float *x, uint64_t id, float *out) {
    for (size_t i = 0; i < DIM; i++)
        out[i] = x[id % START * DIM + i] + 1e-4F * (float)(id / START);
}

/* Many by several threads. */
static sl_status add(sl_index *index, const float *rows, size_t count) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = count == MANY ? THREADS : 1;
    return sl_index_add(index, rows, SL_F32, count, 0, NULL, &params);
}

/* Gives ids their vectors again, in other places. */
static sl_status replace_some(sl_index *index, const float *x, uint64_t n, size_t turn) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.replace = 1;
    params.threads = 1;
    float row[DIM];
    for (size_t i = 0; i < REPLACED; i++) {
        const uint64_t id = sl_random_at(turn, i) % n;
        vector_of(x, id, row);
        SL_TRY(sl_index_add(index, row, SL_F32, 1, 0, &id, &params));
    }
    return SL_OK;
}

/* Adds, replaces and syncs for as long as it lives; each number of vectors that is safe goes into the pipe. */
static void write_on(const char *path, const float *x, int pipe) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = 1;
    params.log_bytes = 200000;
    sl_index *index;
    float rows[MANY * DIM];
    if (sl_index_open(path, &params, &index) != SL_OK) _exit(2);
    uint64_t n = sl_index_size(index);
    for (size_t turn = 0; turn < A_LIFE; turn++) {
        uint64_t more = turn % 4 ? 1 + turn % 16 : MANY;
        for (uint64_t i = 0; i < more; i++)
            vector_of(x, n + i, rows + i * DIM);
        if (add(index, rows, more) != SL_OK || replace_some(index, x, n, turn) != SL_OK ||
            sl_index_sync(index) != SL_OK)
            _exit(3);
        n += more;
        if (write(pipe, &n, sizeof n) != (ssize_t)sizeof n) _exit(4);
    }
    for (;;)
        pause();
}

/* The last number that came through before the writer, who has so many nanoseconds to live, was killed. */
static uint64_t one_life(const char *path, const float *x, long life) {
    int ends[2];
    uint64_t n = 0, safe = 0;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(ends[0]);
        write_on(path, x, ends[1]);
    }
    close(ends[1]);
    nanosleep(&(struct timespec){0, life}, NULL);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    while (read(ends[0], &n, sizeof n) == (ssize_t)sizeof n)
        safe = n;
    close(ends[0]);
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_msg(WIFSIGNALED(how), "the writer ended by itself, with %d", WEXITSTATUS(how));
    return safe;
}

static void check_all(const char *path, const float *x, uint64_t safe) {
    sl_index *index;
    ck_ok(sl_index_open(path, NULL, &index));
    uint64_t n = sl_index_size(index);
    ck_assert_msg(n >= safe, "%llu vectors, where %llu were acknowledged", (unsigned long long)n,
                  (unsigned long long)safe);
    float wanted[DIM], got[DIM];
    for (uint64_t id = 0; id < n; id++) {
        ck_ok(sl_index_get(index, &id, 1, SL_F32, got));
        vector_of(x, id, wanted);
        for (size_t i = 0; i < DIM; i++)
            ck_assert_float_eq_tol(got[i], wanted[i], 0.05F);
    }
    sl_index_free(index);
    /* A writer first links what the last adds have left for no search to reach. */
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = 1;
    ck_ok(sl_index_open(path, &params, &index));
    indexes_sound(index);
    sl_index_free(index);
}

START_TEST(killed_again_and_again) {
    scratch place;
    scratch_open(&place);
    float *x = clusters_make(START, DIM, 0.3, 9);
    sl_index_params params;
    sl_save_params save;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, START, NULL, 1);
    indexes_save_params(&save);
    save.room = 2000000;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
    uint64_t safe = START;
    size_t cut = 0;
    for (size_t life = 0; life < kills; life++) {
        uint64_t now = one_life(place.path, x, (long)(life * 7919 % 60 + 1) * 500000);
        if (now > safe) safe = now;
        check_all(place.path, x, safe);
        ck_ok(sl_index_open(place.path, NULL, &index));
        cut += sl_index_size(index) > safe;
        safe = sl_index_size(index);
        sl_index_free(index);
        /* Begins anew after some rounds, so that looking at all of it stays quick. */
        if (safe < 6000) continue;
        index = indexes_make(&params, x, SL_F32, START, NULL, 1);
        ck_ok(sl_index_save(index, place.path, &save));
        sl_index_free(index);
        safe = START;
    }
    printf("%zu kills: nothing acknowledged was lost; %zu had synced more than they lived to tell\n", kills, cut);
    free(x);
    scratch_close(&place);
}
END_TEST

int main(int argc, char **argv) {
    if (argc > 1) kills = strtoul(argv[1], NULL, 10);
    TCase *cases[] = {tcase_create("kill")};
    tcase_set_timeout(cases[0], argc > 1 ? 0 : 500);
    tcase_add_test(cases[0], killed_again_and_again);
    return check_main("kill", cases, 1);
}
