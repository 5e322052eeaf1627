/* Do the sanitizers see what they are for, and only that? Built in sanitizer builds alone. `clean` does legal work with
 * OpenMP's barriers, reductions and critical sections, and must end well. It would not without a runtime that tells the
 * thread sanitizer of its barriers. `address`, `thread` and `undefined` each make that fault, and must be stopped. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 100000, LOCKED = 5000 };

static int clean(void) {
    long *values = malloc(COUNT * sizeof *values);
    if (!values) return 1;
    long sum = 0, again = 0;
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < COUNT; i++)
            values[i] = i;
#pragma omp for reduction(+ : sum)
        for (int i = 0; i < COUNT; i++)
            sum += values[COUNT - 1 - i];
    }
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < LOCKED; i++) {
#pragma omp critical
        again += values[i];
    }
    free(values);
    return sum != (long)COUNT * (COUNT - 1) / 2 || again != (long)LOCKED * (LOCKED - 1) / 2;
}

/* Each fault ends with 0 where nothing stops it. */
static int make_address_fault(void) {
    volatile size_t past_end = 16;
    volatile char *block = calloc(16, 1);
    if (block) (void)block[past_end];
    free((void *)block);
    return 0;
}

static int make_thread_fault(void) {
    long sum = 0;
#pragma omp parallel for
    for (int i = 0; i < COUNT; i++)
        sum += i;
    return sum < 0;
}

static int make_undefined_fault(void) {
    volatile int large = INT_MAX;
    large = large + 1;
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "clean") == 0) return clean();
    if (strcmp(what, "address") == 0) return make_address_fault();
    if (strcmp(what, "thread") == 0) return make_thread_fault();
    if (strcmp(what, "undefined") == 0) return make_undefined_fault();
    fprintf(stderr, "usage: sanitizer_probe clean|address|thread|undefined\n");
    return 2;
}
