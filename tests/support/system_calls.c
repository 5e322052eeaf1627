#include "tests/support/system_calls.h"

static size_t calls; /* atomic */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
void __wrap_free(void *block);

size_t system_calls(void) {
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

static void count(void) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

void *__wrap_malloc(size_t size) {
    count();
    return __real_malloc(size);
}

void *__wrap_calloc(size_t elements, size_t size) {
    count();
    return __real_calloc(elements, size);
}

void *__wrap_realloc(void *block, size_t size) {
    count();
    return __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    count();
    return __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
    count();
    return __real_posix_memalign(out, alignment, size);
}

void __wrap_free(void *block) {
    count();
    __real_free(block);
}
