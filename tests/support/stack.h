/* Measures how many bytes of its thread's stack a call takes: paints the stack below the call, and counts the paint
 * that is gone afterwards. */
#ifndef SL_TESTS_STACK_H
#define SL_TESTS_STACK_H

#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"

/* Bytes of stack that the header grants a call, and the smallest stack of a thread that may make every call. */
enum { STACK_BOUND = 48 << 10, STACK_THREAD = 64 << 10 };

/* The bound is that of a library built with optimisation, which lets variables share their places on the stack. */
#ifdef __OPTIMIZE__
enum { STACK_IS_MEASURED = !SANITIZED };
#else
enum { STACK_IS_MEASURED = 0 };
#endif

/* A call's name is the text up to its parenthesis. STACK_OK and STACK_FAILS assert the status of a call, STACK_TRY
 * takes any, STACK_DO is for calls without one. */
#define STACK_DO(call)                                                                                                 \
    do {                                                                                                               \
        stack_paint();                                                                                                 \
        call;                                                                                                          \
        stack_tell(#call);                                                                                             \
    } while (0)
#define STACK_CALL(call, right)                                                                                        \
    do {                                                                                                               \
        stack_paint();                                                                                                 \
        const sl_status gave_ = (call);                                                                                \
        stack_tell(#call);                                                                                             \
        ck_assert_msg(right, "%s gave %s: %s", #call, sl_status_name(gave_), sl_last_error());                         \
    } while (0)
#define STACK_OK(call)            STACK_CALL(call, gave_ == SL_OK)
#define STACK_FAILS(call, status) STACK_CALL(call, gave_ == (status))
#define STACK_TRY(call)           STACK_CALL(call, gave_ >= SL_OK)

/* Runs `calls` in a thread that has a stack of `size` bytes, the guard page aside. */
void stack_run(void (*calls)(void), size_t size);

void stack_paint(void);
void stack_tell(const char *call);

/* Prints the most that each call took, and asserts that it is below STACK_BOUND. Each function that the public header
 * at `path` declares with SL_API was called. */
void stack_report(const char *header);

/* All calls of a public header, in parts. */
typedef struct stack_suite {
    const char *name, *header;
    void (*set_up)(void), (*tear_down)(void);
    void (*const *parts)(void);
    size_t count;    /* of parts */
    size_t *threads; /* that the parts' calls take; set before they run */
} stack_suite;

/* Runs the parts in a large stack, reports, and runs them again in a stack of STACK_THREAD bytes on two threads. The
 * test's environment gives OpenMP's threads such stacks too. Returns a program's status: 77 if the stack can't be
 * measured. */
int stack_main(const stack_suite *suite);

#endif
