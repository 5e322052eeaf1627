/* Counts the calls for locks by the library's objects: POSIX's, OpenMP's, and their own. A test that links this is
 * linked with --wrap for each of these functions (tests/CMakeLists.txt). */
#ifndef SL_TESTS_LOCK_CALLS_H
#define SL_TESTS_LOCK_CALLS_H

#include <stddef.h>

/* Calls so far. */
size_t lock_calls(void);

#endif
