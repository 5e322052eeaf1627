/* Prints, a JSON object a line, how long making a filter takes: from ids in a list, from a bitmap, and from ids that
 * are excluded. */
#include "shortlist.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MILLION = 1000000, EXCLUDED = 10000 };

typedef struct bench {
    sl_index *index;
    size_t n;
    uint64_t *ids; /* MILLION ids in a random order, those of the index among them */
    uint64_t *bits;
} bench;

static void must(sl_status status) {
    if (status == SL_OK) return;
    fprintf(stderr, "bench_filters: %s\n", sl_last_error());
    exit(1);
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Fisher and Yates, by a multiplicative generator: the same order every time. */
static void fill(bench *b) {
    uint64_t state = 1;
    for (size_t i = 0; i < MILLION; i++)
        b->ids[i] = i;
    for (size_t i = MILLION - 1; i > 0; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t j = (size_t)(state >> 33) % (i + 1);
        uint64_t id = b->ids[i];
        b->ids[i] = b->ids[j];
        b->ids[j] = id;
    }
    for (size_t i = 0; i < (MILLION + 63) / 64; i++)
        b->bits[i] = UINT64_MAX;
}

static void time_one(const bench *b, size_t round, const char *name, const sl_filter_params *params) {
    sl_filter *filter;
    double start = now_ms();
    must(sl_filter_create(b->index, params, &filter));
    double ms = now_ms() - start;
    printf("{\"round\": %zu, \"made\": \"%s\", \"ms\": %.4f, \"allowed\": %zu}\n", round, name, ms,
           sl_filter_count(filter));
    sl_filter_free(filter);
}

static void time_all(const bench *b, size_t round) {
    sl_filter_params params;
    sl_filter_params_init(&params);
    params.allow = b->ids;
    params.allow_count = MILLION;
    time_one(b, round, "a list of 1,000,000 ids", &params);
    params.allow_count = EXCLUDED;
    time_one(b, round, "a list of 10,000 ids", &params);
    sl_filter_params_init(&params);
    params.bits = b->bits;
    params.bits_count = MILLION;
    time_one(b, round, "a bitmap over 1,000,000 ids", &params);
    sl_filter_params_init(&params);
    params.exclude = b->ids;
    params.exclude_count = EXCLUDED;
    time_one(b, round, "10,000 ids excluded", &params);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: bench_filters INDEX ROUNDS\n");
        return 2;
    }
    bench b = {.ids = malloc(MILLION * sizeof *b.ids), .bits = malloc((MILLION + 63) / 64 * sizeof *b.bits)};
    if (!b.ids || !b.bits) return 1;
    must(sl_index_open(argv[1], NULL, &b.index));
    fill(&b);
    for (size_t round = 0; round < strtoul(argv[2], NULL, 10); round++)
        time_all(&b, round);
    sl_index_free(b.index);
    free(b.ids);
    free(b.bits);
    return 0;
}
