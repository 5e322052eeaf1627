#include "tests/support/check_main.h"

enum { SECONDS = 500 };

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
