#define _GNU_SOURCE
#include "tests/support/stack.h"

#include "tests/support/check_main.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* KEPT: bytes below the frame of stack_paint that its own calls may take. LARGE: bytes of the stack that is measured.
 */
enum { MOST = 256, NAME = 64, KEPT = 256, LARGE = 512 << 10 };
#define PAINT 0x5ac3a53c96e10f87u

static struct taken {
    char name[NAME];
    size_t most;
    const char *by; /* the call's text */
} taken[MOST];
static size_t names;
static _Thread_local volatile uint64_t *lowest, *painted_to;

static void *run_calls(void *calls) {
    pthread_attr_t attributes;
    void *stack;
    size_t size, guard;
    ck_assert_int_eq(pthread_getattr_np(pthread_self(), &attributes), 0);
    ck_assert_int_eq(pthread_attr_getstack(&attributes, &stack, &size), 0);
    ck_assert_int_eq(pthread_attr_getguardsize(&attributes, &guard), 0);
    pthread_attr_destroy(&attributes);
    lowest = (volatile uint64_t *)(void *)((char *)stack + guard);
    (*(void (**)(void))calls)();
    return NULL;
}

void stack_run(void (*calls)(void), size_t size) {
    pthread_t thread;
    pthread_attr_t attributes;
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, size), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, run_calls, &calls), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

__attribute__((noinline)) void stack_paint(void) {
    painted_to = (volatile uint64_t *)__builtin_frame_address(0);
    for (volatile uint64_t *at = lowest; at < painted_to - KEPT / sizeof *at; at++)
        *at = PAINT;
}

static struct taken *find_call(const char *call) {
    if (strncmp(call, "(void)", 6) == 0) call += 6;
    const size_t length = strcspn(call, "(");
    ck_assert_uint_lt(length, NAME);
    for (size_t i = 0; i < names; i++)
        if (strncmp(taken[i].name, call, length) == 0 && !taken[i].name[length]) return &taken[i];
    ck_assert_uint_lt(names, MOST);
    memcpy(taken[names].name, call, length);
    return &taken[names++];
}

__attribute__((noinline)) void stack_tell(const char *call) {
    volatile uint64_t *at = lowest;
    while (at < painted_to && *at == PAINT)
        at++;
    const size_t bytes = (size_t)(painted_to - at) * sizeof *at;
    struct taken *of = find_call(call);
    if (bytes <= of->most && of->by) return;
    of->most = bytes;
    of->by = call;
}

static int by_size(const void *a, const void *b) {
    const size_t x = ((const struct taken *)a)->most, y = ((const struct taken *)b)->most;
    return (x < y) - (x > y);
}

/* Each name that follows SL_API, up to the parenthesis. */
static void check_all_called(const char *header) {
    char line[512], name[NAME];
    FILE *file = fopen(header, "r");
    ck_assert_ptr_nonnull(file);
    size_t declared = 0;
    while (fgets(line, sizeof line, file)) {
        const char *at = strncmp(line, "SL_API", 6) == 0 ? strstr(line, "sl_") : NULL;
        for (; at; at = strstr(at + 1, "sl_"))
            if (sscanf(at, "%63[a-z0-9_](", name) == 1 && at[strlen(name)] == '(') break;
        if (!at) continue;
        size_t i = 0;
        while (i < names && strcmp(taken[i].name, name) != 0)
            i++;
        ck_assert_msg(i < names, "no test measures the stack of %s", name);
        declared++;
    }
    fclose(file);
    ck_assert_uint_gt(declared, 50);
}

void stack_report(const char *header) {
    qsort(taken, names, sizeof *taken, by_size);
    for (size_t i = 0; i < names; i++)
        printf("%6zu bytes of stack: %.100s\n", taken[i].most, taken[i].by);
    fflush(stdout);
    check_all_called(header);
    for (size_t i = 0; i < names; i++)
        ck_assert_msg(taken[i].most < STACK_BOUND, "%zu bytes of stack in %s", taken[i].most, taken[i].by);
}

static const stack_suite *calls_of;

static void run_parts(size_t threads, size_t size) {
    *calls_of->threads = threads;
    for (size_t i = 0; i < calls_of->count; i++)
        stack_run(calls_of->parts[i], size);
}

START_TEST(calls_take_less_than_the_header_says) {
    run_parts(1, LARGE);
    stack_report(calls_of->header);
}
END_TEST

START_TEST(small_stacks_serve) {
    run_parts(2, STACK_THREAD);
}
END_TEST

int stack_main(const stack_suite *suite) {
    if (!STACK_IS_MEASURED) {
        puts("skipped: without optimisation, or under a sanitizer, calls take more of the stack");
        return 77;
    }
    calls_of = suite;
    TCase *cases[] = {tcase_create("stack")};
    tcase_add_checked_fixture(cases[0], suite->set_up, suite->tear_down);
    tcase_add_test(cases[0], calls_take_less_than_the_header_says);
    tcase_add_test(cases[0], small_stacks_serve);
    return check_main(suite->name, cases, 1);
}
