/* Counts the calls of the C library's allocator by the library's objects. A test that links this is linked with WRAP
 * ${SL_ALLOCATIONS} (tests/CMakeLists.txt). */
#ifndef SL_TESTS_SYSTEM_CALLS_H
#define SL_TESTS_SYSTEM_CALLS_H

#include <stddef.h>

/* Calls so far of malloc, calloc, realloc, aligned_alloc, posix_memalign and free. */
size_t system_calls(void);

#endif
