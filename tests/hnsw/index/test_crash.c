#define _POSIX_C_SOURCE 200809L
/* Power failures at every point of a workload on an index that is written in place: see tests/support/crash.h.
 *   test_crash            as many images as a test run has time for
 *   test_crash IMAGES     so many, saying how many there were */
#include "tests/support/check_main.h"
#include "tests/support/crash.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 24, IMAGES = SANITIZED ? 400 : 2400, LIES = 200, SAVES = 6 };

static const char *const ways[CRASH_WAYS] = {"by a log", "directly", "recovering", "by saves"};

static size_t images = IMAGES;

/* Violations among so many images; the first goes to stderr. */
static size_t violations(crash_way way, crash_lie lie, sl_codes codes, size_t count, int tell) {
    scratch place;
    crash_record record;
    size_t wrong = 0;
    scratch_open(&place);
    crash_run(&record, place.folder, way == CRASH_SAVED ? SAVES : STEPS, way, lie, codes);
    ck_assert((record.reused && record.compacted) || way != CRASH_LOGGED);
    for (uint64_t number = 0; number < count; number++) {
        char why[256];
        if (crash_try(&record, number, place.folder, why)) continue;
        if (lie == CRASH_HONEST && !wrong) fprintf(stderr, "%s\n", why);
        wrong++;
    }
    if (tell) printf("%s: %zu crash images of %zu operations, %zu violations\n", ways[way], count, record.count, wrong);
    /* Over all images that were linked anew. */
    if (lie == CRASH_HONEST) ck_assert_double_ge(record.recall, record.wanted - 0.002 * (double)count);
    crash_free(&record);
    scratch_close(&place);
    return wrong;
}

START_TEST(nothing_acknowledged_is_lost) {
    ck_assert_uint_eq(violations((crash_way)_i, CRASH_HONEST, SL_CODES_I8, images, 1), 0);
}
END_TEST

START_TEST(nor_while_recovering) {
    ck_assert_uint_eq(violations(CRASH_RECOVERED, CRASH_HONEST, SL_CODES_I8, images / 4, 1), 0);
}
END_TEST

/* The path holds what it held or what was saved, and this once the save has returned. */
START_TEST(saves_are_whole) {
    ck_assert_uint_eq(violations(CRASH_SAVED, CRASH_HONEST, SL_CODES_I8, images / 8, 1), 0);
}
END_TEST

/* Rows in two arrays, or in one and in records. */
START_TEST(nor_of_codes_i4) {
    ck_assert_uint_eq(violations((crash_way)_i, CRASH_HONEST, SL_CODES_I4, images / 4, 0), 0);
}
END_TEST

/* Were these syncs missing, the images would show it. */
static const struct {
    crash_way way;
    crash_lie lie;
} lies[] = {
    {CRASH_LOGGED, CRASH_LOG_NOT_SYNCED},     {CRASH_LOGGED, CRASH_DATA_NOT_SYNCED},
    {CRASH_LOGGED, CRASH_FOLDER_NOT_SYNCED},  {CRASH_DIRECT, CRASH_NOT_DRAINED},
    {CRASH_RECOVERED, CRASH_DATA_NOT_SYNCED}, {CRASH_SAVED, CRASH_DATA_NOT_SYNCED},
    {CRASH_SAVED, CRASH_FOLDER_NOT_SYNCED},
};

START_TEST(a_missing_sync_is_noticed) {
    ck_assert_uint_gt(violations(lies[_i].way, lies[_i].lie, SL_CODES_I8, LIES, 0), 0);
}
END_TEST

int main(int argc, char **argv) {
    if (argc > 1) images = strtoul(argv[1], NULL, 10);
    /* The device under the file is simulated: one that takes no time will do. */
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    TCase *cases[] = {tcase_create("crash")};
    tcase_set_timeout(cases[0], argc > 1 ? 0 : 500);
    tcase_add_loop_test(cases[0], nothing_acknowledged_is_lost, CRASH_LOGGED, CRASH_DIRECT + 1);
    tcase_add_loop_test(cases[0], nor_of_codes_i4, CRASH_LOGGED, CRASH_DIRECT + 1);
    tcase_add_test(cases[0], nor_while_recovering);
    tcase_add_test(cases[0], saves_are_whole);
    tcase_add_loop_test(cases[0], a_missing_sync_is_noticed, 0, sizeof lies / sizeof *lies);
    return check_main("crash", cases, 1);
}
