#include "tests/support/check_main.h"

#include <stdatomic.h>
#include <stdint.h>

enum { SECONDS = 500, MARKS = 4096 };

static atomic_uchar marked[MARKS];

void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

/* Check writes down the place of each passed check, to name the last one if a test crashes. In loops, that takes most
 * of a test's time. So a place is written once, and a crash names the last new one. Two places of one slot may count as
 * one. */
void __wrap__mark_point(const char *file, int line) {
    size_t slot = ((uintptr_t)file + (unsigned)line) % MARKS;
    if (atomic_load_explicit(&marked[slot], memory_order_relaxed)) return;
    atomic_store_explicit(&marked[slot], 1, memory_order_relaxed);
    __real__mark_point(file, line);
}

int check_main(const char *name, TCase *const *cases, size_t count) {
    Suite *suite = suite_create(name);
    for (size_t i = 0; i < count; i++) {
        tcase_set_timeout(cases[i], SECONDS);
        suite_add_tcase(suite, cases[i]);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    /* CK_RUN_CASE may name a case that is not here. */
    int failed = srunner_ntests_failed(runner) != 0 || srunner_ntests_run(runner) == 0;
    srunner_free(runner);
    return failed;
}
