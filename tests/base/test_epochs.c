/* Epochs: what was there when a reader began stays until it ends; what nobody can hold is freed. */
#define _GNU_SOURCE
#include "base/epochs.h"
#include "base/thread.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static fault_allocator memory;
static sl_epochs epochs;

static void set_up(void) {
    fault_allocator_init(&memory, 0);
    sl_epochs_init(&epochs, &memory.allocator);
}

static void tear_down(void) {
    sl_epochs_free(&epochs);
    ck_assert_uint_eq(memory.live_blocks, 0);
}

/* ---------------------------------------------------------------------------------------------------------------
 * One thread
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(the_oldest_reader_counts) {
    sl_epoch_reader *a = sl_epochs_join(&epochs), *b = sl_epochs_join(&epochs);
    const uint64_t first = sl_epochs_now(&epochs);
    ck_assert_uint_eq(sl_epochs_oldest(&epochs), first);
    ck_assert_uint_eq(sl_epochs_advance(&epochs), first + 1);
    ck_assert_uint_eq(sl_epochs_oldest(&epochs), first + 1);
    sl_epoch_enter(&epochs, a);
    ck_assert_uint_eq(sl_epochs_advance(&epochs), first + 2);
    sl_epoch_enter(&epochs, b);
    ck_assert_uint_eq(sl_epochs_advance(&epochs), first + 3);
    ck_assert_uint_eq(sl_epochs_now(&epochs), first + 3);
    ck_assert_uint_eq(sl_epochs_oldest(&epochs), first + 1);
    sl_epoch_exit(&epochs, a);
    ck_assert_uint_eq(sl_epochs_oldest(&epochs), first + 2);
    sl_epoch_enter(&epochs, a);
    sl_epoch_exit(&epochs, b);
    ck_assert_uint_eq(sl_epochs_oldest(&epochs), first + 3);
    sl_epoch_exit(&epochs, a);
    sl_epochs_leave(a);
    sl_epochs_leave(b);
    sl_epochs_leave(NULL);
}
END_TEST

/* Some announcements need no memory. Each reader has its own, and those given back are taken again. */
START_TEST(announcements_are_used_again) {
    enum { ALL = SL_EPOCH_READERS + 3 };
    sl_epoch_reader *readers[ALL];
    for (int i = 0; i < ALL; i++) {
        readers[i] = sl_epochs_join(&epochs);
        ck_assert_ptr_nonnull(readers[i]);
        for (int j = 0; j < i; j++)
            ck_assert_ptr_ne(readers[i], readers[j]);
        ck_assert_uint_eq(memory.live_blocks, i < SL_EPOCH_READERS ? 0 : (size_t)(i + 1 - SL_EPOCH_READERS));
    }
    for (int i = 0; i < ALL; i++) {
        sl_epochs_leave(readers[i]);
        ck_assert_ptr_eq(sl_epochs_join(&epochs), readers[i]);
    }
    ck_assert_uint_eq(memory.live_blocks, ALL - SL_EPOCH_READERS);
}
END_TEST

/* A reader without memory holds everything. */
START_TEST(readers_without_memory) {
    for (int i = 0; i < SL_EPOCH_READERS; i++)
        (void)sl_epochs_join(&epochs);
    memory.fail_at = memory.calls + 1;
    ck_assert_ptr_null(sl_epochs_join(&epochs));
    sl_epoch_enter(&epochs, NULL);
    sl_epoch_enter(&epochs, NULL);
    ck_assert_uint_eq(sl_epochs_oldest(&epochs), 0);
    sl_epoch_exit(&epochs, NULL);
    ck_assert_uint_eq(sl_epochs_oldest(&epochs), 0);
    sl_epoch_exit(&epochs, NULL);
    ck_assert_uint_eq(sl_epochs_oldest(&epochs), sl_epochs_now(&epochs));
}
END_TEST

/* Holders come oldest first, whatever the order and the number of announcements, and however few are asked for. */
START_TEST(holders_are_listed_oldest_first) {
    enum { ALL = SL_EPOCH_READERS + 2 };
    static const size_t order[ALL] = {3, 0, 5, 1, 4, 2};
    sl_epoch_reader *readers[ALL];
    sl_epoch_holder holders[ALL + 2];
    ck_assert_uint_eq(sl_epochs_holders(&epochs, holders, ALL), 0);
    for (size_t i = 0; i < ALL; i++)
        readers[i] = sl_epochs_join(&epochs);
    for (size_t i = 0; i < ALL; i++) {
        sl_epoch_enter(&epochs, readers[order[i]]);
        (void)sl_epochs_advance(&epochs);
    }
    for (size_t room = 0; room <= ALL; room++) {
        ck_assert_uint_eq(sl_epochs_holders(&epochs, room ? holders : NULL, room), ALL);
        for (size_t i = 0; i < room; i++) {
            ck_assert_uint_eq(holders[i].epoch, i + 1);
            ck_assert_int_eq(holders[i].pid, getpid());
            ck_assert_int_eq(holders[i].tid, (int)syscall(SYS_gettid));
        }
    }
    sl_epoch_exit(&epochs, readers[order[0]]);
    sl_epoch_enter(&epochs, NULL);
    ck_assert_uint_eq(sl_epochs_holders(&epochs, holders, ALL + 2), ALL);
    ck_assert_uint_eq(holders[0].epoch, 0);
    ck_assert_int_eq(holders[0].pid, getpid());
    ck_assert_int_eq(holders[0].tid, 0);
    ck_assert_uint_eq(holders[1].epoch, 2);
    sl_epoch_exit(&epochs, NULL);
}
END_TEST

static void *enter_here(void *reader) {
    sl_epoch_enter(&epochs, reader);
    return (void *)(uintptr_t)sl_thread_self();
}

/* A holder is the thread that entered, not the one that joined. In a child that is the child. */
START_TEST(holders_are_those_that_entered) {
    sl_epoch_holder holder[2];
    pthread_t thread;
    void *self;
    sl_epoch_reader *reader = sl_epochs_join(&epochs);
    ck_assert_int_eq(pthread_create(&thread, NULL, enter_here, reader), 0);
    pthread_join(thread, &self);
    ck_assert_uint_eq(sl_epochs_holders(&epochs, holder, 1), 1);
    ck_assert_int_eq(holder->pid, getpid());
    ck_assert_int_ne(holder->tid, getpid());
    ck_assert_uint_eq((uint64_t)(uintptr_t)self, (uint64_t)holder->pid << 32 | (uint32_t)holder->tid);
    (void)sl_thread_self();
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        (void)sl_epochs_advance(&epochs);
        sl_epoch_enter(&epochs, sl_epochs_join(&epochs));
        const int two = sl_epochs_holders(&epochs, holder, 2) == 2;
        const int left = holder[0].pid == parent && holder[0].tid != parent;
        _exit(!(two && left && holder[1].pid == getpid() && holder[1].tid == getpid()));
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sl_epoch_exit(&epochs, reader);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Several threads
 * ------------------------------------------------------------------------------------------------------------- */

enum { READERS = 3, REPLACEMENTS = 30000, KEPT = 64 };
enum { SOUND = 0x50DA, FREED = 0xDEAD };

/* Things in a ring: the current one, and replaced ones that aren't freed yet. */
typedef struct thing {
    int state; /* atomic */
    uint64_t retired;
} thing;

static thing ring[KEPT];
static thing *current; /* atomic */
static int over;       /* atomic */

static void *read_on(void *ctx) {
    size_t *gone = ctx;
    for (int i = 0; !i || !__atomic_load_n(&over, __ATOMIC_RELAXED); i++) {
        sl_epoch_reader *reader = sl_epochs_join(&epochs);
        sl_epoch_enter(&epochs, reader);
        const thing *t = __atomic_load_n(&current, __ATOMIC_SEQ_CST);
        for (int look = 0; look < 20; look++)
            *gone += __atomic_load_n(&t->state, __ATOMIC_RELAXED) != SOUND;
        sl_epoch_exit(&epochs, reader);
        sl_epochs_leave(reader);
    }
    return NULL;
}

/* Replaces the current thing by the next of the ring, and frees what nobody can hold. A writer that finds the next one
 * held waits for its readers. */
static void replace(int i) {
    thing *old = &ring[i % KEPT], *next = &ring[(i + 1) % KEPT];
    while (i >= KEPT - 1 && next->retired > sl_epochs_oldest(&epochs))
        ;
    __atomic_store_n(&next->state, SOUND, __ATOMIC_RELAXED);
    __atomic_store_n(&current, next, __ATOMIC_SEQ_CST);
    old->retired = sl_epochs_advance(&epochs);
    const uint64_t oldest = sl_epochs_oldest(&epochs);
    for (int j = 0; j < KEPT; j++)
        if (&ring[j] != next && ring[j].retired && ring[j].retired <= oldest)
            __atomic_store_n(&ring[j].state, FREED, __ATOMIC_RELAXED);
}

START_TEST(readers_meet_nothing_freed) {
    pthread_t threads[READERS];
    size_t gone[READERS] = {0};
    ring[0].state = SOUND;
    current = &ring[0];
    for (size_t t = 0; t < READERS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, read_on, &gone[t]), 0);
    for (int i = 0; i < REPLACEMENTS; i++)
        replace(i);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (size_t t = 0; t < READERS; t++) {
        pthread_join(threads[t], NULL);
        ck_assert_uint_eq(gone[t], 0);
    }
    ck_assert_uint_eq(sl_epochs_oldest(&epochs), sl_epochs_now(&epochs));
}
END_TEST

/* A reader and a writer meet at one moment, over and over: the reader begins while the writer replaces. */
enum { ROUNDS = 500000, SECONDS = 2 };

static struct {
    sl_epoch_reader *reader;
    long begun, ended; /* atomic: rounds */
    int last;          /* no round follows */
    thing *got;
} meeting;

static void wait_for(const long *count, long round) {
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < round)
        ;
}

static void *meet(void *ctx) {
    (void)ctx;
    for (long round = 1;; round++) {
        wait_for(&meeting.begun, round);
        if (meeting.last) return NULL;
        sl_epoch_enter(&epochs, meeting.reader);
        meeting.got = __atomic_load_n(&current, __ATOMIC_SEQ_CST);
        __atomic_store_n(&meeting.ended, round, __ATOMIC_RELEASE);
    }
}

/* Runs one round. Returns whether the writer would have freed what the reader got. */
static int overlooks(long round) {
    thing *next = &ring[round % 2];
    sl_epoch_exit(&epochs, meeting.reader);
    __atomic_store_n(&meeting.begun, round, __ATOMIC_RELEASE);
    /* The reader takes some moments to notice; each round hits another one. */
    for (volatile long pause = 0; pause < round % 40; pause++)
        ;
    __atomic_store_n(&current, next, __ATOMIC_SEQ_CST);
    const uint64_t retired = sl_epochs_advance(&epochs), oldest = sl_epochs_oldest(&epochs);
    wait_for(&meeting.ended, round);
    return retired <= oldest && meeting.got != next;
}

static int seconds_since(const struct timespec *start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)(now.tv_sec - start->tv_sec);
}

/* Holds only if the announcement and the load of the pointer keep their order. */
START_TEST(no_announcement_is_overlooked) {
    pthread_t thread;
    struct timespec start;
    int overlooked = 0;
    meeting.reader = sl_epochs_join(&epochs);
    current = &ring[0];
    clock_gettime(CLOCK_MONOTONIC, &start);
    ck_assert_int_eq(pthread_create(&thread, NULL, meet, NULL), 0);
    long round = 1;
    for (; round <= ROUNDS && (round % 64 || seconds_since(&start) < SECONDS); round++)
        overlooked += overlooks(round);
    meeting.last = 1;
    __atomic_store_n(&meeting.begun, round, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    ck_assert_int_eq(overlooked, 0);
    sl_epoch_exit(&epochs, meeting.reader);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("epochs");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_oldest_reader_counts);
    tcase_add_test(tests, announcements_are_used_again);
    tcase_add_test(tests, readers_without_memory);
    tcase_add_test(tests, holders_are_listed_oldest_first);
    tcase_add_test(tests, holders_are_those_that_entered);
    tcase_add_test(tests, readers_meet_nothing_freed);
    tcase_add_test(tests, no_announcement_is_overlooked);
    return check_main("epochs", &tests, 1);
}
