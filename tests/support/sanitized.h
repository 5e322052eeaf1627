/* Tells tests that a sanitizer watches. It makes system calls of its own, and everything takes some ten times as long.
 */
#ifndef SL_TESTS_SANITIZED_H
#define SL_TESTS_SANITIZED_H

#if defined(__has_feature)
#define CLANG_HAS(feature) __has_feature(feature)
#else
#define CLANG_HAS(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || CLANG_HAS(address_sanitizer) ||                   \
    CLANG_HAS(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* For a loop over kinds of index and, within each, over three metrics. Under a sanitizer, each kind with one metric, in
 * turns, stands for all. */
static inline int stands_for_others(int i) {
    return !SANITIZED || i % 3 == i / 3 % 3;
}

#endif
