/* The gate: one thread passes at a time, and a forked child does not wait for its parent's threads. */
#include "base/gate.h"
#include "tests/support/check_main.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sl_gate gate;

/* Threads note here, in turn. */
static char notes[64];
static size_t noted; /* atomic */
static void note(char what) {
    notes[__atomic_fetch_add(&noted, 1, __ATOMIC_SEQ_CST)] = what;
}

static void set_up(void) {
    noted = 0;
    sl_gate_init(&gate);
}

static void tear_down(void) {
    sl_gate_free(&gate);
}

static void ck_ok(sl_status status) {
    ck_assert_msg(status == SL_OK, "%s", sl_last_error());
}

static void *go_in(void *ctx) {
    (void)ctx;
    if (sl_gate_enter(&gate) != SL_OK) return NULL;
    note('i');
    sl_gate_leave(&gate);
    return NULL;
}

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

START_TEST(keeps_others_out) {
    pthread_t threads[2];
    ck_ok(sl_gate_enter(&gate));
    for (int t = 0; t < 2; t++)
        pthread_create(&threads[t], NULL, go_in, NULL);
    pause_ms(20);
    ck_assert_uint_eq(noted, 0);
    sl_gate_leave(&gate);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    ck_assert_uint_eq(noted, 2);
}
END_TEST

START_TEST(knows_whether_it_is_shared) {
    pthread_t thread;
    for (int round = 0; round < 2; round++) {
        ck_ok(sl_gate_enter(&gate));
        sl_gate_leave(&gate);
        ck_assert_int_eq(sl_gate_is_shared(&gate), 0);
    }
    pthread_create(&thread, NULL, go_in, NULL);
    pthread_join(thread, NULL);
    ck_assert_int_eq(sl_gate_is_shared(&gate), 1);
}
END_TEST

enum { THREADS = 4, TURNS = 3000 };
static size_t inside; /* atomic: threads inside */
static size_t met;    /* atomic: threads that met another inside */

static void *pass_on(void *ctx) {
    (void)ctx;
    for (int i = 0; i < TURNS; i++) {
        if (sl_gate_enter(&gate) != SL_OK) return NULL;
        if (__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST)) __atomic_fetch_add(&met, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
        sl_gate_leave(&gate);
    }
    note('d');
    return NULL;
}

START_TEST(passes_all) {
    pthread_t threads[THREADS];
    for (size_t t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, pass_on, NULL);
    for (size_t t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    ck_assert_uint_eq(noted, THREADS);
    ck_assert_uint_eq(met, 0);
}
END_TEST

/* Returns what a child found: 0: it passed the gate; 1: it was refused in words; else 2. */
static int pass_in_child(void) {
    const pid_t child = fork();
    if (!child) {
        alarm(30);
        const sl_status status = sl_gate_enter(&gate);
        if (status != SL_OK) _exit(status == SL_EBUSY && strstr(sl_last_error(), "forked while") ? 1 : 2);
        sl_gate_leave(&gate);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

START_TEST(children_do_not_wait) {
    ck_assert_int_eq(pass_in_child(), 0);
    ck_ok(sl_gate_enter(&gate));
    ck_assert_int_eq(pass_in_child(), 1);
    sl_gate_leave(&gate);
    ck_assert_int_eq(pass_in_child(), 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("gate");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, keeps_others_out);
    tcase_add_test(tests, knows_whether_it_is_shared);
    tcase_add_test(tests, passes_all);
    tcase_add_test(tests, children_do_not_wait);
    return check_main("gate", &tests, 1);
}
