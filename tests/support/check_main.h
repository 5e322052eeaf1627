/* The main of every Check test; sl_add_test links it. */
#ifndef SL_TESTS_CHECK_MAIN_H
#define SL_TESTS_CHECK_MAIN_H

#include <check.h>

/* Runs the cases as one suite and returns the process's exit status. Each test gets a little less time than ctest gives
 * the whole, so that a test that hangs is named. */
int check_main(const char *name, TCase *const *cases, size_t count);

#endif
