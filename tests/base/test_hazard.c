/* Hazard pointers: an announced object stays, whatever the writer does at any moment; an object that nobody announces
 * is freed. The linker wraps sl_hazard_announce, so that a test can replace the object just before and just after
 * it. */
#include "base/hazard.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"

#include <pthread.h>
#include <time.h>

enum { SOUND = 0x50DA, FREED = 0xDEAD };

typedef struct thing {
    sl_guarded guarded;
    int state;  /* atomic: SOUND or FREED */
    int number; /* of the object, from 0 */
} thing;

static fault_allocator memory;
static sl_hazards hazards;
static int made, freed; /* how many objects */

/* ctx is the allocator. */
static void free_thing(const void *ctx, sl_guarded *object) {
    thing *t = (thing *)object;
    ck_assert_int_eq(t->state, SOUND);
    __atomic_store_n(&t->state, FREED, __ATOMIC_RELAXED);
    freed++;
    sl_mem_free(ctx, t, sizeof *t);
}

static thing *make_thing(void) {
    void *block;
    ck_assert_int_eq(sl_mem_alloc(&memory.allocator, sizeof(thing), &block), SL_OK);
    thing *t = block;
    t->number = made++;
    t->state = SOUND;
    return t;
}

static void replace(void) {
    sl_hazards_replace(&hazards, &make_thing()->guarded);
}

static sl_hazard *take_hazard(void) {
    sl_hazard *hazard;
    ck_assert_int_eq(sl_hazards_take(&hazards, &hazard), SL_OK);
    return hazard;
}

static int protect(sl_hazard *hazard) {
    const thing *t = (const thing *)sl_hazards_protect(&hazards, hazard);
    return t->number;
}

static void set_up(void) {
    fault_allocator_init(&memory, 0);
    made = freed = 0;
    sl_hazards_init(&hazards, &memory.allocator, free_thing, &memory.allocator);
    replace();
}

static void tear_down(void) {
    sl_hazards_free(&hazards);
    ck_assert_int_eq(freed, made);
    ck_assert_uint_eq(memory.live_blocks, 0);
}

/* How many of the next announcements get a replacement and a collection just before them, or just after. */
static struct { int before, after; } between;

void __real_sl_hazard_announce(sl_hazard *hazard, const sl_guarded *object);
void __wrap_sl_hazard_announce(sl_hazard *hazard, const sl_guarded *object);

static void replace_and_collect(int *times) {
    if (!*times) return;
    --*times;
    replace();
    (void)sl_hazards_collect(&hazards);
}

void __wrap_sl_hazard_announce(sl_hazard *hazard, const sl_guarded *object) {
    replace_and_collect(&between.before);
    __real_sl_hazard_announce(hazard, object);
    replace_and_collect(&between.after);
}

/* ---------------------------------------------------------------------------------------------------------------
 * One thread
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(what_is_announced_stays) {
    sl_hazard *hazard = take_hazard();
    ck_assert_int_eq(protect(hazard), 0);
    for (int i = 1; i < 5; i++) {
        replace();
        ck_assert_int_eq(((thing *)sl_hazards_current(&hazards))->number, i);
        ck_assert_uint_eq(sl_hazards_collect(&hazards), 1);
        ck_assert_int_eq(freed, i - 1);
    }
    sl_hazard_release(hazard);
    ck_assert_uint_eq(sl_hazards_collect(&hazards), 0);
    ck_assert_int_eq(freed, 4);
    ck_assert_int_eq(protect(hazard), 4);
    ck_assert_uint_eq(sl_hazards_collect(&hazards), 0);
    ck_assert_int_eq(freed, 4);
    sl_hazard_release(hazard);
    sl_hazard_give_back(hazard);
    sl_hazard_give_back(NULL);
}
END_TEST

/* Each reader keeps its own object. The object goes with its last reader. */
START_TEST(each_reader_keeps_its_own) {
    sl_hazard *readers[6];
    for (int i = 0; i < 6; i++) {
        readers[i] = take_hazard();
        ck_assert_int_eq(protect(readers[i]), i / 2);
        if (i % 2) replace();
    }
    ck_assert_uint_eq(sl_hazards_collect(&hazards), 3);
    sl_hazard_release(readers[2]);
    ck_assert_uint_eq(sl_hazards_collect(&hazards), 3);
    sl_hazard_release(readers[3]);
    ck_assert_uint_eq(sl_hazards_collect(&hazards), 2);
    ck_assert_int_eq(freed, 1);
    ck_assert_int_eq(protect(readers[3]), 3);
    for (int i = 0; i < 6; i++)
        sl_hazard_release(readers[i]);
    ck_assert_uint_eq(sl_hazards_collect(&hazards), 0);
    ck_assert_int_eq(freed, 3);
}
END_TEST

/* A replacement between a reader's load and its announcement frees the object that the reader loaded, so the reader
 * must look again. A replacement after the announcement must leave the object, and the reader must look again too. */
START_TEST(a_reader_looks_again) {
    int times = _i / 2, after = _i % 2;
    sl_hazard *hazard = take_hazard();
    between.before = after ? 0 : times;
    between.after = after ? times : 0;
    ck_assert_int_eq(protect(hazard), times);
    ck_assert_int_eq(freed, after && times ? times - 1 : times);
    ck_assert_ptr_eq(hazard->used, sl_hazards_current(&hazards));
    replace();
    ck_assert_uint_eq(sl_hazards_collect(&hazards), 1);
    ck_assert_ptr_eq(hazard->used, hazards.retired);
    sl_hazard_release(hazard);
    ck_assert_uint_eq(sl_hazards_collect(&hazards), 0);
}
END_TEST

/* There are as many hazards as readers at once, and each reader has one alone. */
START_TEST(hazards_are_reused) {
    sl_hazard *a = take_hazard(), *b = take_hazard();
    size_t blocks = memory.live_blocks;
    ck_assert_ptr_ne(a, b);
    ck_assert_uint_eq((uintptr_t)a % SL_CACHE_LINE, 0);
    for (int i = 0; i < 10; i++) {
        sl_hazard_give_back(a);
        ck_assert_ptr_eq(take_hazard(), a);
        sl_hazard_give_back(b);
        ck_assert_ptr_eq(take_hazard(), b);
    }
    ck_assert_uint_eq(memory.live_blocks, blocks);
    size_t calls = memory.calls;
    ck_assert_int_eq(protect(a), 0);
    sl_hazard_release(a);
    ck_assert_uint_eq(memory.calls, calls);
}
END_TEST

START_TEST(a_failing_allocation_is_passed_on) {
    sl_hazard *first = take_hazard(), *second;
    memory.fail_at = memory.calls + 1;
    ck_assert_int_eq(sl_hazards_take(&hazards, &second), SL_ENOMEM);
    ck_assert_int_eq(protect(first), 0);
    sl_hazard_release(first);
}
END_TEST

/* No object was ever current. */
START_TEST(an_empty_one_is_freed) {
    sl_hazards empty;
    sl_hazards_init(&empty, &memory.allocator, free_thing, &memory.allocator);
    ck_assert_ptr_null(sl_hazards_current(&empty));
    ck_assert_uint_eq(sl_hazards_collect(&empty), 0);
    sl_hazards_free(&empty);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Several threads
 * ------------------------------------------------------------------------------------------------------------- */

enum { READERS = 3, REPLACEMENTS = 30000 };

typedef struct reader {
    int takes_anew; /* takes a hazard for each use */
    int stop;       /* atomic */
    size_t uses, gone, back;
} reader;

static int is_sound(const thing *t) {
    return __atomic_load_n(&t->state, __ATOMIC_RELAXED) == SOUND;
}

/* Uses objects until it is stopped. Counts objects that were freed meanwhile, and objects older than the one before. */
static void *read_on(void *ctx) {
    reader *me = ctx;
    sl_hazard *hazard = NULL;
    int last = 0;
    while (!__atomic_load_n(&me->stop, __ATOMIC_RELAXED) || !me->uses) {
        if (!hazard && sl_hazards_take(&hazards, &hazard) != SL_OK) break;
        const thing *t = (const thing *)sl_hazards_protect(&hazards, hazard);
        int sound = is_sound(t), number = t->number;
        for (int i = 0; i < 20 && sound; i++)
            sound = is_sound(t);
        me->gone += !sound;
        me->back += number < last;
        last = number;
        sl_hazard_release(hazard);
        me->uses++;
        if (!me->takes_anew) continue;
        sl_hazard_give_back(hazard);
        hazard = NULL;
    }
    sl_hazard_give_back(hazard);
    return NULL;
}

/* The writer frees while readers read. Each reader keeps one object at most. */
START_TEST(readers_meet_no_freed_object) {
    reader readers[READERS] = {{.takes_anew = 1}, {.takes_anew = 1}};
    pthread_t threads[READERS];
    size_t most = 0;
    for (size_t t = 0; t < READERS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, read_on, &readers[t]), 0);
    for (int i = 0; i < REPLACEMENTS; i++) {
        replace();
        size_t left = sl_hazards_collect(&hazards);
        if (left > most) most = left;
    }
    size_t uses = 0;
    for (size_t t = 0; t < READERS; t++) {
        __atomic_store_n(&readers[t].stop, 1, __ATOMIC_RELAXED);
        pthread_join(threads[t], NULL);
        ck_assert_uint_eq(readers[t].gone, 0);
        ck_assert_uint_eq(readers[t].back, 0);
        uses += readers[t].uses;
    }
    ck_assert_uint_ge(uses, READERS);
    ck_assert_uint_le(most, READERS);
    ck_assert_uint_eq(sl_hazards_collect(&hazards), 0);
    ck_assert_int_eq(freed, REPLACEMENTS);
    size_t count = 0;
    for (const sl_hazard *hazard = hazards.first; hazard; hazard = hazard->next)
        count++;
    ck_assert_uint_le(count, READERS);
}
END_TEST

/* A reader and a writer meet at one moment, over and over: the reader announces the object that the writer is
 * replacing. */
typedef struct meeting {
    sl_hazards hazards;
    sl_hazard *hazard;
    long begun, ended; /* atomic: rounds */
    int over;          /* no round follows */
    const sl_guarded *got;
} meeting;

enum { ROUNDS = 500000, SECONDS = 2 };

static void wait_for(const long *count, long round) {
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < round)
        ;
}

static void *meet(void *ctx) {
    meeting *m = ctx;
    for (long round = 1;; round++) {
        wait_for(&m->begun, round);
        if (m->over) return NULL;
        m->got = sl_hazards_protect(&m->hazards, m->hazard);
        __atomic_store_n(&m->ended, round, __ATOMIC_RELEASE);
    }
}

/* The objects stay, so that only the two loads and the two stores take time. */
static void keep(const void *ctx, sl_guarded *object) {
    (void)ctx;
    (void)object;
}

static int seconds_since(const struct timespec *start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)(now.tv_sec - start->tv_sec);
}

/* Runs one round. Returns whether the writer would have freed the reader's object. */
static int overlooks(meeting *m, long round, sl_guarded *objects) {
    sl_hazard_release(m->hazard);
    m->hazards.retired = NULL;
    __atomic_store_n(&m->begun, round, __ATOMIC_RELEASE);
    /* The reader takes some moments to notice; each round hits another one. */
    for (volatile long pause = 0; pause < round % 40; pause++)
        ;
    sl_hazards_replace(&m->hazards, &objects[round % 2]);
    size_t kept = sl_hazards_collect(&m->hazards);
    wait_for(&m->ended, round);
    return !kept && m->got != &objects[round % 2];
}

/* Holds only if the announcement and the second look keep their order. If a processor's load overtakes its store, the
 * writer misses the announcement in a few rounds of a hundred thousand. */
START_TEST(no_announcement_is_overlooked) {
    sl_guarded objects[2];
    meeting m = {.begun = 0};
    pthread_t thread;
    struct timespec start;
    int overlooked = 0;
    sl_hazards_init(&m.hazards, &memory.allocator, keep, NULL);
    sl_hazards_replace(&m.hazards, &objects[0]);
    ck_assert_int_eq(sl_hazards_take(&m.hazards, &m.hazard), SL_OK);
    clock_gettime(CLOCK_MONOTONIC, &start);
    ck_assert_int_eq(pthread_create(&thread, NULL, meet, &m), 0);
    long round = 1;
    for (; round <= ROUNDS && (round % 64 || seconds_since(&start) < SECONDS); round++)
        overlooked += overlooks(&m, round, objects);
    m.over = 1;
    __atomic_store_n(&m.begun, round, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    ck_assert_int_eq(overlooked, 0);
    m.hazards.retired = NULL;
    sl_hazards_free(&m.hazards);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("hazard");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_is_announced_stays);
    tcase_add_test(tests, each_reader_keeps_its_own);
    tcase_add_loop_test(tests, a_reader_looks_again, 0, 8);
    tcase_add_test(tests, hazards_are_reused);
    tcase_add_test(tests, a_failing_allocation_is_passed_on);
    tcase_add_test(tests, an_empty_one_is_freed);
    tcase_add_test(tests, readers_meet_no_freed_object);
    tcase_add_test(tests, no_announcement_is_overlooked);
    return check_main("hazard", &tests, 1);
}
