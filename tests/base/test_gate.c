/* The gate: threads pass it together or alone, in turns, and a forked child does not wait for its parent's threads. */
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

static void *go_alone(void *ctx) {
    (void)ctx;
    if (sl_gate_enter_alone(&gate) != SL_OK) return NULL;
    note('A');
    sl_gate_leave(&gate);
    return NULL;
}

static void *go_together(void *ctx) {
    (void)ctx;
    if (sl_gate_enter(&gate) != SL_OK) return NULL;
    note('t');
    sl_gate_leave(&gate);
    return NULL;
}

static size_t waiting(void) {
    pthread_mutex_lock(&gate.lock);
    const size_t count = gate.waiting;
    pthread_mutex_unlock(&gate.lock);
    return count;
}

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* This thread is inside. Another goes in together. One that wants to be alone waits, and goes before the next. */
START_TEST(takes_turns) {
    pthread_t threads[3];
    ck_ok(sl_gate_enter(&gate));
    pthread_create(&threads[0], NULL, go_together, NULL);
    pthread_join(threads[0], NULL);
    ck_assert_uint_eq(noted, 1);
    pthread_create(&threads[1], NULL, go_alone, NULL);
    for (int i = 0; i < 5000 && !waiting(); i++)
        pause_ms(1);
    ck_assert_uint_eq(waiting(), 1);
    pthread_create(&threads[2], NULL, go_together, NULL);
    pause_ms(20);
    ck_assert_uint_eq(noted, 1);
    sl_gate_leave(&gate);
    pthread_join(threads[1], NULL);
    pthread_join(threads[2], NULL);
    ck_assert_int_eq(memcmp(notes, "tAt", 3), 0);
}
END_TEST

/* A thread alone keeps all others out. */
START_TEST(keeps_others_out) {
    pthread_t threads[2];
    ck_ok(sl_gate_enter_alone(&gate));
    pthread_create(&threads[0], NULL, go_together, NULL);
    pthread_create(&threads[1], NULL, go_alone, NULL);
    pause_ms(20);
    ck_assert_uint_eq(noted, 0);
    sl_gate_leave(&gate);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    ck_assert_uint_eq(noted, 2);
}
END_TEST

/* Only a second thread that is alone makes a gate shared. */
START_TEST(knows_whether_it_is_shared) {
    pthread_t threads[2];
    for (int round = 0; round < 3; round++) {
        ck_ok(sl_gate_enter_alone(&gate));
        ck_assert_int_eq(sl_gate_is_shared(&gate), round == 2);
        sl_gate_leave(&gate);
        if (round < 2) pthread_create(&threads[round], NULL, round ? go_alone : go_together, NULL);
        if (round < 2) pthread_join(threads[round], NULL);
    }
}
END_TEST

enum { THREADS = 4, TURNS = 3000 };
static size_t alone, inside; /* atomic: threads inside */
static size_t met;           /* atomic: threads that met another where they shouldn't */

static void *pass_on(void *ctx) {
    const int alone_first = ctx != NULL;
    for (int i = 0; i < TURNS; i++) {
        const int is_alone = (i + alone_first) % 2;
        if ((is_alone ? sl_gate_enter_alone : sl_gate_enter)(&gate) != SL_OK) return NULL;
        const size_t others = __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
        if (is_alone) __atomic_fetch_add(&alone, 1, __ATOMIC_SEQ_CST);
        if ((is_alone && others) || (!is_alone && __atomic_load_n(&alone, __ATOMIC_SEQ_CST)))
            __atomic_fetch_add(&met, 1, __ATOMIC_SEQ_CST);
        if (is_alone) __atomic_fetch_sub(&alone, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
        sl_gate_leave(&gate);
    }
    note('d');
    return NULL;
}

START_TEST(passes_all) {
    pthread_t threads[THREADS];
    for (size_t t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, pass_on, t % 2 ? &gate : NULL);
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
        for (int i = 0; i < 2; i++) {
            const sl_status status = (i ? sl_gate_enter_alone : sl_gate_enter)(&gate);
            if (status != SL_OK) _exit(status == SL_EBUSY && strstr(sl_last_error(), "forked while") ? 1 : 2);
            sl_gate_leave(&gate);
        }
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
    ck_ok(sl_gate_enter_alone(&gate));
    ck_assert_int_eq(pass_in_child(), 1);
    sl_gate_leave(&gate);
    ck_assert_int_eq(pass_in_child(), 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("gate");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, takes_turns);
    tcase_add_test(tests, keeps_others_out);
    tcase_add_test(tests, knows_whether_it_is_shared);
    tcase_add_test(tests, passes_all);
    tcase_add_test(tests, children_do_not_wait);
    return check_main("gate", &tests, 1);
}
