/* The seed of hashed ids: one for a process and its children, another in the next process, drawn without the system's
 * random numbers too. */
#define _GNU_SOURCE
#include "base/id_hash.h"
#include "tests/support/check_main.h"
#include "tests/support/colliding.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

static int refuses;

ssize_t __real_getrandom(void *out, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags) {
    if (!refuses) return __real_getrandom(out, size, flags);
    errno = EAGAIN;
    return -1;
}

/* Returns the seed that a child of this process sees. */
static uint64_t seed_of_child(void) {
    uint64_t seed = 0;
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        seed = sl_id_seed();
        _exit(write(ends[1], &seed, sizeof seed) != (ssize_t)sizeof seed);
    }
    ck_assert_int_eq(read(ends[0], &seed, sizeof seed), (ssize_t)sizeof seed);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    close(ends[0]);
    close(ends[1]);
    return seed;
}

START_TEST(each_process_has_a_seed) {
    refuses = _i;
    /* Children that draw have seeds of their own, since this process has not drawn. */
    const uint64_t first = seed_of_child(), second = seed_of_child();
    ck_assert(first && second && first != second);
    const uint64_t mine = sl_id_seed();
    ck_assert(mine && mine != first);
    ck_assert_uint_eq(sl_id_seed(), mine);
    ck_assert_uint_eq(seed_of_child(), mine);
}
END_TEST

START_TEST(chosen_ids_meet_without_a_seed_alone) {
    size_t met = 0;
    for (uint64_t i = 0; i < COLLIDING_COUNT; i++) {
        const uint64_t id = colliding_id(i);
        ck_assert_uint_eq(sl_id_hash(0, id), i << 24);
        met += (sl_id_hash(sl_id_seed(), id) & 4095) == 0;
    }
    ck_assert_uint_lt(met, 40);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("id_hash");
    tcase_add_loop_test(tests, each_process_has_a_seed, 0, 2);
    tcase_add_test(tests, chosen_ids_meet_without_a_seed_alone);
    return check_main("id_hash", &tests, 1);
}
