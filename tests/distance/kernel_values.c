#define _GNU_SOURCE
#include "tests/distance/kernel_values.h"

#include "base/random.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void expect(check_count *count, int holds, const char *format, ...) {
    if (holds) {
        count->passed++;
        return;
    }
    if (count->failed++) return;
    va_list args;
    va_start(args, format);
    vsnprintf(count->first, sizeof count->first, format, args);
    va_end(args);
}

static uint64_t random_counter;

uint64_t random_bits(void) {
    return sl_random_at(7, random_counter++);
}

float random_float(void) {
    return (float)(2 * sl_random_unit(7, random_counter++) - 1);
}

float any_score(void) {
    static const float others[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0, -0.0f, FLT_TRUE_MIN, 0.5f};
    uint64_t bits = random_bits();
    return bits % 4 ? random_float() : others[bits / 4 % (sizeof others / sizeof *others)];
}

int falling(const void *a, const void *b) {
    const float *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

guarded guarded_new(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (size + page - 1) / page * page;
    guarded g = {.mapped = body + page};
    g.base = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.base == MAP_FAILED || mprotect(g.base + body, page, PROT_NONE) != 0) {
        perror("guarded_new");
        exit(1);
    }
    g.end = g.base + body;
    return g;
}

void guarded_free(guarded *g) {
    munmap(g->base, g->mapped);
}
